package changes

import (
	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
)

// postgres counts once a statement, by the OID of the table, which outlasts a RENAME.
var postgres = dialect{
	Dialect: pg.Text,
	names:   sqlfence.Postgres,

	count: `EXISTS (SELECT FROM pg_catalog.pg_trigger AS g JOIN pg_catalog.pg_proc AS p ON p.oid = g.tgfoid
	JOIN pg_catalog.pg_class AS c ON c.relnamespace = p.pronamespace
	WHERE g.tgrelid = pg_catalog.to_regclass({'table'}) AND g.tgname = 'sqlfence_changes_v1'
		AND g.tgenabled = 'A' AND g.tgqual IS NULL
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE g.tgrelid IN (i.inhrelid, i.inhparent))
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_subscription_rel AS s WHERE s.srrelid = g.tgrelid)
		AND c.oid = pg_catalog.to_regclass('fencing_changes')
		AND EXISTS (SELECT FROM fencing_changes AS b WHERE b.relation = g.tgrelid AND b.slot = -1)),
	(SELECT pg_catalog.sum(b.n)::bigint FROM fencing_changes AS b
		WHERE b.relation = pg_catalog.to_regclass({'table'}))`,

	// A statement trigger fires only for the table that the statement names, not for its partitions, parents or
	// children, and doesn't fire for the changes that a subscription of logical replication applies.
	obstacles: `SELECT 'there is no such table' WHERE pg_catalog.to_regclass({'table'}) IS NULL
UNION ALL SELECT 'it is no table, or it has partitions, parents or children'
FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass({'table'})
	AND (c.relkind <> 'r' OR EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent)))
UNION ALL SELECT 'a subscription writes to it'
FROM pg_catalog.pg_subscription_rel AS s WHERE s.srrelid = pg_catalog.to_regclass({'table'})`,

	install: []string{installPostgres},
}

// installPostgres creates fencing_changes, the trigger function sqlfence_changes_v1 and the table's trigger. The
// function runs with its owner's powers, so writers need no privilege on fencing_changes; therefore no name in it
// depends on the search_path. A connection counts in the row of its backend number, which no other live connection has,
// so it waits for none. Only a prepared transaction keeps its row locked while a later transaction has the same backend
// number; if the server allows prepared transactions, the function skips a locked row and counts in another one.
//
// A table's count starts at the current time in ms, above any count of a dropped table with the same name. Reinstalling
// the trigger increases the count, because the table may have changed without the trigger.
const installPostgres = `DO $install$
DECLARE
	counted pg_catalog.regclass := pg_catalog.to_regclass({'table'});
	home pg_catalog.text;
	other pg_catalog.text;
	patience pg_catalog.text := pg_catalog.current_setting('lock_timeout');
	path pg_catalog.text := ` + pg.CurrentPath + `;
BEGIN
	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE pg_catalog.texteq(patience, '0');
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	IF pg_catalog.to_regclass('fencing_changes') IS NULL THEN
		CREATE TABLE fencing_changes (
			relation pg_catalog.oid NOT NULL, slot bigint NOT NULL, n bigint NOT NULL, PRIMARY KEY (relation, slot)
		) WITH (fillfactor = 50);
	END IF;
	` + pg.CatalogueFirst + `
	SELECT n.nspname INTO home
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	WHERE c.oid = pg_catalog.to_regclass('fencing_changes');
	IF pg_catalog.to_regprocedure(pg_catalog.format('%I.sqlfence_changes_v1()', home)) IS NULL THEN
		EXECUTE pg_catalog.format($create$CREATE FUNCTION %1$I.sqlfence_changes_v1()
RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $function$
DECLARE
	mine pg_catalog.text := pg_catalog.current_setting('sqlfence.changes_slot', true);
	place pg_catalog.int8;
BEGIN
	IF mine IS NULL OR pg_catalog.length(mine) OPERATOR(pg_catalog.=) 0 THEN
		SELECT pg_catalog.set_config('sqlfence.changes_slot',
			pg_catalog.split_part(l.virtualtransaction, '/', 1), false) INTO mine
		FROM pg_catalog.pg_locks AS l WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() LIMIT 1;
	END IF;
	place := mine;
	IF pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.<>) '0' THEN
		WHILE NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(
			pg_catalog.concat('sqlfence-changes:', TG_RELID, ':', place), 0)) LOOP
			place := place OPERATOR(pg_catalog.+) 1048576;
		END LOOP;
	END IF;
	INSERT INTO %1$I.fencing_changes AS c (relation, slot, n) VALUES (TG_RELID, place, 1)
	ON CONFLICT (relation, slot) DO UPDATE SET n = c.n OPERATOR(pg_catalog.+) 1;
	RETURN NULL;
END
$function$$create$, home);
	END IF;
	-- The owner of these can have all writers run code of its own.
	SELECT pg_catalog.pg_get_userbyid(o.owner) INTO other
	FROM (SELECT c.relowner FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass('fencing_changes')
		UNION ALL SELECT p.proowner FROM pg_catalog.pg_proc AS p
		WHERE p.oid = pg_catalog.to_regprocedure(pg_catalog.format('%I.sqlfence_changes_v1()', home))) AS o (owner)
	JOIN pg_catalog.pg_class AS t ON t.oid = counted
	WHERE pg_catalog.pg_get_userbyid(o.owner) <> current_user
		AND NOT pg_catalog.pg_has_role(o.owner, t.relowner, 'USAGE');
	IF other IS NOT NULL THEN
		RAISE EXCEPTION 'sqlfence: the counts, or the function that counts, belong to the role %, which is neither the '
			'one that calls Setup nor has the powers of the table''s owner', other USING ERRCODE = 'insufficient_privilege';
	END IF;
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS g
		WHERE g.tgrelid = counted AND g.tgname = 'sqlfence_changes_v1') THEN
		EXECUTE pg_catalog.format('CREATE TRIGGER sqlfence_changes_v1 AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE'
			' ON %s FOR EACH STATEMENT EXECUTE FUNCTION %I.sqlfence_changes_v1()', counted, home);
	END IF;
	EXECUTE pg_catalog.format('ALTER TABLE %s ENABLE ALWAYS TRIGGER sqlfence_changes_v1', counted);
	EXECUTE pg_catalog.format('INSERT INTO %I.fencing_changes AS c (relation, slot, n) VALUES ($1, -1, $2)'
		' ON CONFLICT (relation, slot) DO UPDATE SET n = c.n + 1', home) USING counted::pg_catalog.oid,
		 (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint;
	` + pg.PathAsBefore + `
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$install$`
