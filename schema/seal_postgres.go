package schema

import (
	"database/sql"
	"strconv"
	"strings"

	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres/sealsql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealPostgres seals by triggers, which package seal has, and by a constraint that the stored token isn't negative. A
// separate statement validates the constraint, because that reads the whole table, but needn't block writers.
var sealPostgres = sealer{
	seal: func(s sealing) []string {
		return []string{
			write(sealPostgresText, s),
			write(liftPostgresText, s),
			"ALTER TABLE " + s.table + " VALIDATE CONSTRAINT " + sqltext.SealedPrefix,
		}
	},
	unseal: func(s sealing) []string { return []string{write(unsealPostgresText, s)} },
	level:  sql.LevelReadCommitted, // see sealLevel

	takesTransactions: true,
}

func write(text string, s sealing) string {
	d, t := s.text, s.sealed()
	functions, kind, adds := "", "bigint", "; schema.AddFence or sqlfence add-fence adds the column"
	if t.Claim {
		kind, adds = "bigint or integer", ""
	}
	for _, f := range sealsql.Functions(t) {
		functions += strings.NewReplacer("{function}", d.Text(f.Name), "{takes}", f.Takes(),
			"{declares}", f.Declares(), "{body}", f.Body()).Replace(createFunction)
	}
	wanted := sealsql.Wanted(t, "SELECT sealed, home, parted")
	text = strings.NewReplacer("{level}", sealLevel, "{same table}", sealSameTable).Replace(text)
	return strings.NewReplacer("{type}", kind, "{adds}", adds, "{functions}", functions, "{wanted}", wanted,
		"{table text}", d.Text(s.table), "{table}", s.table, "{column text}", d.Text(s.stored),
		"{mark}", d.Quote(s.stored), "{same}", sealsql.Same, "{definition}", sealsql.Definition,
		"{ledger name}", d.Text(sealsql.LedgerName(s.own)), "{has ledger}", strconv.FormatBool(s.Rules.Ledger),
		"{key text}", d.Text(s.Rules.Key),
		"{fired late}", sqltext.FiredAfterSeal, "{constraint}", sqltext.SealedPrefix, "{trigger}", sqltext.SealTrigger,
	).Replace(text)
}

// createFunction creates a function, and gives a function of another role to the table's owner, because the other role
// could replace the function.
const createFunction = `
	EXECUTE pg_catalog.concat('CREATE OR REPLACE FUNCTION ', pg_catalog.quote_ident(home), '.', ` +
	`pg_catalog.quote_ident({function}), '({takes}) {declares} LANGUAGE plpgsql AS $sqlfence_body$', {body}, ` +
	`'$sqlfence_body$');
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_class AS c ` +
	`ON pg_catalog.pg_has_role(p.proowner, c.relowner, 'MEMBER')
		WHERE c.oid = sealed AND p.oid = pg_catalog.to_regprocedure(pg_catalog.format('%I.%I({takes})', ` +
	`home, {function}))) THEN
		EXECUTE pg_catalog.format('ALTER FUNCTION %I.%I({takes}) OWNER TO %I', home, {function}, ` +
	`(SELECT pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class AS c WHERE c.oid = sealed));
	END IF;
	EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %I.%I({takes}) TO PUBLIC', home, {function});`

// sealLevel requires READ COMMITTED, because at a higher level a transaction reads the catalogue as it was before the
// wait for a lock, and misses the changes that were committed meanwhile.
const sealLevel = `IF pg_catalog.current_setting('transaction_isolation') NOT IN ('read committed', ` +
	`'read uncommitted') THEN
		RAISE EXCEPTION 'sqlfence: a seal comes and goes at the level READ COMMITTED, this transaction is at %', ` +
	`pg_catalog.current_setting('transaction_isolation')
			USING ERRCODE = 'invalid_transaction_state';
	END IF;
	`

// sealSameTable throws an error if another table got the name while the statement waited for the lock.
const sealSameTable = `IF pg_catalog.to_regclass({table text}) IS DISTINCT FROM sealed THEN
		RAISE EXCEPTION 'sqlfence: another table is called % now', {table text} USING ERRCODE = 'lock_not_available';
	END IF;
`

// sealPostgresText is the statement that seals a table. It waits at most a second for writers, because later writers
// queue behind it.
const sealPostgresText = `DO $sqlfence$
DECLARE
	sealed pg_catalog.oid := pg_catalog.to_regclass({table text});
	home pg_catalog.text;
	parted boolean;
	ledger pg_catalog.text;
	part pg_catalog.regclass;
	definition pg_catalog.text;
	off pg_catalog.name;
	late pg_catalog.name;
	patience pg_catalog.text := pg_catalog.current_setting('lock_timeout');
	path pg_catalog.text := ` + pg.CurrentPath + `;
BEGIN
	` + pg.CatalogueFirst + `
	{level}PERFORM pg_catalog.set_config('lock_timeout', '3s', true) WHERE patience = '0';
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT n.nspname, c.relkind = 'p' INTO home, parted
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = {column text} AND a.attnum > 0 ` +
	`AND NOT a.attisdropped
	WHERE c.oid = sealed AND c.relkind IN ('r', 'p') AND a.attgenerated = '' ` +
	`AND a.atttypid IN ('bigint'::pg_catalog.regtype, 'integer'::pg_catalog.regtype, 'smallint'::pg_catalog.regtype);
	SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) INTO ledger
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace ` +
	`WHERE c.oid = pg_catalog.to_regclass({ledger name});
	IF home IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no table % with a column % of type {type} to be sealed{adds}',
			{table text}, {column text}
			USING ERRCODE = 'object_not_in_prerequisite_state';
	ELSIF {has ledger} AND ledger IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no table fencing_tokens to compare the tokens of % with', {table text}
			USING ERRCODE = 'object_not_in_prerequisite_state';
	ELSIF EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = sealed ` +
	`AND a.attname = {key text} AND a.attgenerated <> '') THEN
		RAISE EXCEPTION 'sqlfence: the key column % of table % is generated, so that a trigger before a write ` +
	`doesn''t see it: make it an ordinary column, or leave Key out', {key text}, {table text}
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;

	-- An autovacuum gives way to this lock, which isn't in the way of writers, but only to one
	-- who waits for longer than deadlock_timeout.
	LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE;
	{same table}	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';

	FOR part, late IN
		WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree ` +
	`JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT g.tgrelid, g.tgname FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid WHERE {fired late}
	LOOP
		RAISE EXCEPTION 'sqlfence: the trigger % of table % is fired after the seal''s, and could change what that ` +
	`has compared: give it a name that is sorted before {trigger}', late, part
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END LOOP;

	{functions}

	-- A constraint of the name that says something else isn't the seal's.
	FOR part IN SELECT k.conrelid FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = sealed ` +
	`AND k.conname = '{constraint}'
		AND pg_catalog.replace(pg_catalog.pg_get_constraintdef(k.oid), ' NOT VALID', '') <> ` +
	`pg_catalog.format('CHECK ((%I >= 0))', {column text})
	LOOP
		EXECUTE pg_catalog.format('ALTER TABLE %s DROP CONSTRAINT {constraint}', part);
	END LOOP;
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = sealed ` +
	`AND k.conname = '{constraint}') THEN
		ALTER TABLE {table} ADD CONSTRAINT {constraint} CHECK ({mark} >= 0) NOT VALID;
	END IF;
	FOR part, off IN -- triggers of another name, table or shape
		WITH RECURSIVE {wanted}
		SELECT g.tgrelid, g.tgname FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid
		WHERE g.tgparentid = 0 AND g.tgname IN ('{trigger}', '~sqlfence_delete', '~sqlfence_before', ` +
	`'~sqlfence_after', '~sqlfence_truncate', '~sqlfence_late')
			AND NOT EXISTS (SELECT FROM wanted AS w WHERE w.made AND {same})
	LOOP
		EXECUTE pg_catalog.format('DROP TRIGGER %I ON %s', off, part);
	END LOOP;
	FOR part, off, definition IN
		WITH RECURSIVE {wanted}
		SELECT w.part, w.name, {definition}
		FROM wanted AS w WHERE w.made ORDER BY w.part <> sealed, w.part, w.turn
	LOOP
		PERFORM FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = part AND g.tgname = off;
		IF NOT FOUND THEN
			EXECUTE pg_catalog.concat('CREATE ', definition);
		END IF;
		FOR off IN SELECT g.tgname FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = part ` +
	`AND g.tgname LIKE '~sqlfence\_%' AND g.tgenabled <> 'A' LOOP
			EXECUTE pg_catalog.format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', part, off);
		END LOOP;
	END LOOP;
	` + pg.PathAsBefore + `
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$sqlfence$`

// liftPostgresText is a statement that makes negative stored tokens (see [Unseal]) positive. They were written while
// the table had neither triggers nor the constraint, for example after a migration had recreated the table; the
// absolute value counts. The statement blocks writers only if it has found a negative token.
const liftPostgresText = `DO $sqlfence$
DECLARE
	negative pg_catalog.tid[];
	parts pg_catalog.regclass[];
	part pg_catalog.regclass;
	patience pg_catalog.text := pg_catalog.current_setting('lock_timeout');
	path pg_catalog.text := ` + pg.CurrentPath + `;
BEGIN
	` + pg.CatalogueFirst + `
	IF EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = pg_catalog.to_regclass({table text}) ` +
	`AND k.conname = '{constraint}' AND k.convalidated) THEN
		` + pg.PathAsBefore + `
		RETURN;
	END IF;
	SELECT pg_catalog.array_agg(t.ctid) INTO negative FROM {table} AS t WHERE t.{mark} < 0;
	IF negative IS NULL THEN
		` + pg.PathAsBefore + `
		RETURN;
	END IF;
	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE;
	WITH RECURSIVE tree AS (SELECT pg_catalog.to_regclass({table text})::oid AS oid UNION SELECT i.inhrelid ` +
	`FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
	SELECT pg_catalog.array_agg(g.tgrelid) INTO parts FROM tree ` +
	`JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid WHERE g.tgname = '{trigger}';
	FOREACH part IN ARRAY parts LOOP
		EXECUTE pg_catalog.format('ALTER TABLE %s DISABLE TRIGGER %I', part, '{trigger}');
	END LOOP;
	UPDATE {table} AS t SET {mark} = -t.{mark} WHERE t.ctid = ANY (negative) AND t.{mark} < 0;
	SET CONSTRAINTS ALL IMMEDIATE; -- as a table isn't altered before its deferred triggers were fired
	FOREACH part IN ARRAY parts LOOP
		EXECUTE pg_catalog.format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', part, '{trigger}');
	END LOOP;
	` + pg.PathAsBefore + `
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$sqlfence$`

const unsealPostgresText = `DO $sqlfence$
DECLARE
	sealed pg_catalog.oid := pg_catalog.to_regclass({table text});
	part pg_catalog.regclass;
	trigger pg_catalog.name;
	patience pg_catalog.text := pg_catalog.current_setting('lock_timeout');
	path pg_catalog.text := ` + pg.CurrentPath + `;
BEGIN
	` + pg.CatalogueFirst + `
	{level}-- As when it is sealed, for an autovacuum.
	PERFORM pg_catalog.set_config('lock_timeout', '3s', true) WHERE patience = '0';
	LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE;
	{same table}	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	FOR part, trigger IN
		WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT g.tgrelid, g.tgname FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid
		WHERE g.tgname IN ('{trigger}', '~sqlfence_delete', '~sqlfence_before', '~sqlfence_after', ` +
	`'~sqlfence_truncate', '~sqlfence_late') AND g.tgparentid = 0
	LOOP
		EXECUTE pg_catalog.format('DROP TRIGGER %I ON %s', trigger, part);
	END LOOP;
	` + pg.PathAsBefore + `
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$sqlfence$`
