package schema

import (
	"database/sql"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealPostgres seals by triggers. What their functions call is named with its schema, and no
// operator is used that the search path could lead elsewhere: a setting of its own would
// take longer than all the rest.
type sealPostgres struct{}

// seal: the constraint is checked last, by itself, as that reads the table and needs no lock
// that writers wait for.
func (sealPostgres) seal(s sealing) []string {
	return []string{
		write(sealPostgresText, s),
		write(liftPostgresText, s),
		"ALTER TABLE " + s.table + " VALIDATE CONSTRAINT " + sqltext.SealedMark,
	}
}

// level: see sealLevel.
func (sealPostgres) level() sql.IsolationLevel { return sql.LevelReadCommitted }

func (sealPostgres) obstacles(sealing) string { return "" }

func (sealPostgres) unseal(s sealing) []string { return []string{write(unsealPostgresText, s)} }

// write fills in a text. Inside of it is another one for format, which has the parts' percent
// signs doubled.
func write(text string, s sealing) string {
	d := s.text
	twice := func(part string) string { return strings.ReplaceAll(part, "%", "%%") }
	fresh := "int8ge"
	if s.SingleUse {
		fresh = "int8gt"
	}
	ledger, deleted, seen, seenDeleted, sameKey, movedKey := "", "", "", "", "", ""
	if s.Ledger {
		name := func(row string) string { // as a guard reads the key: some collations take 'a' for 'A'
			if s.KeyColumn == "" {
				return twice(d.Text(s.Resource))
			}
			return twice("pg_catalog.concat(" + d.Text(s.Resource+"/") + ", " + row + "." + d.Quote(s.KeyColumn) + `::pg_catalog.text COLLATE pg_catalog."C")`)
		}
		ledger = strings.NewReplacer("{token name}", name("NEW"), "{one of several}", "").Replace(sealLedgerText)
		seen = strings.NewReplacer("{token name}", name("NEW"), "{given}", "pg_catalog.int8um(NEW.{mark})").Replace(seenLedger)
		seenDeleted = strings.NewReplacer("{token name}", name("OLD"), "{given}", "given").Replace(seenLedger)
		deleted = strings.NewReplacer("{token name}", name("OLD"), "{one of several}", oneOfSeveral).Replace(sealLedgerText)
		if s.KeyColumn != "" {
			moved := strings.NewReplacer("{name of old}", name("OLD"), "{name of new}", name("NEW")).Replace(movesKey)
			sameKey, movedKey = " AND NOT "+moved, strings.ReplaceAll(sealKeyText, "{moved}", moved)
		}
	}
	lock, other := "", ""
	if s.Lock.By != "" {
		for _, column := range []string{s.Lock.By, s.Lock.Since, s.Lock.Expiry} {
			other += "\n\t\t\tother." + twice(d.Quote(column)) + " := OLD." + twice(d.Quote(column)) + ";"
		}
		lock = strings.ReplaceAll(sealLockText, "{other}", other)
	}
	text = strings.NewReplacer("{level}", sealLevel, "{same table}", sealSameTable, "{lock}", lock, "{ledger}", ledger, "{ledger of deleted}", deleted, "{seen}", seen, "{seen by deleted}", seenDeleted, "{same key}", sameKey, "{moved key}", movedKey).Replace(text)
	return strings.NewReplacer(
		"{table text}", d.Text(s.table), "{table}", s.table, "{table twice}", twice(s.table),
		"{column text}", d.Text(s.stored),
		"{write}", twice(d.Quote(s.own("sqlfence_write_"))), "{delete}", twice(d.Quote(s.own("sqlfence_delete_"))), "{clear}", twice(d.Quote(s.own("sqlfence_clear_"))), "{truncate}", twice(d.Quote(s.own("sqlfence_truncate_"))),
		"{mark once}", d.Quote(s.stored), "{mark}", twice(d.Quote(s.stored)), "{mark name}", twice(d.Text(s.stored)),
		"{name}", twice(d.Text(s.proof)), "{setting}", d.Text(sqltext.DeleteSetting(s.proof)), "{move}", d.Text(sqltext.MoveSetting(s.proof)),
		"{fresh}", fresh, "{max}", strconv.FormatInt(sqlfence.MaxToken, 10), "{has ledger}", strconv.FormatBool(s.Ledger),
		"{key text}", d.Text(s.KeyColumn), "{fired late}", sqltext.FiredBehindSeal, "{constraint}", sqltext.SealedMark, "{trigger}", sqltext.SealTrigger,
	).Replace(text)
}

// sealLevel: what others have just committed isn't seen at another level, where a transaction looks
// at the catalogue as it was before it waited for them.
const sealLevel = `IF pg_catalog.current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RAISE EXCEPTION 'sqlfence: a seal comes and goes at the level READ COMMITTED, this transaction is at %', pg_catalog.current_setting('transaction_isolation')
			USING ERRCODE = 'invalid_transaction_state';
	END IF;
	`

// sealSameTable: while the lock was waited for, another table may have got the name.
const sealSameTable = `IF pg_catalog.to_regclass({table text}) IS DISTINCT FROM sealed THEN
		RAISE EXCEPTION 'sqlfence: another table is called % now', {table text} USING ERRCODE = 'lock_not_available';
	END IF;
`

// sealPostgresText waits a second at most for those who write, who wait behind it.
const sealPostgresText = `DO $sqlfence$
DECLARE
	sealed oid := pg_catalog.to_regclass({table text});
	home text;
	parted boolean;
	ledger text;
	generated text;
	befores int2;
	afters int2 := 0;
	part regclass;
	definition text;
	off name;
	late name;
	patience text := pg_catalog.current_setting('lock_timeout');
BEGIN
	{level}PERFORM pg_catalog.set_config('lock_timeout', '3s', true) WHERE patience = '0';
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT n.nspname, c.relkind = 'p' INTO home, parted
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = {column text} AND a.attnum > 0 AND NOT a.attisdropped
	WHERE c.oid = sealed AND c.relkind IN ('r', 'p') AND a.attgenerated = '' AND a.atttypid IN ('bigint'::pg_catalog.regtype, 'integer'::pg_catalog.regtype, 'smallint'::pg_catalog.regtype);
	SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) INTO ledger
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass('fencing_tokens');
	IF home IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no table % with a column % of type bigint to be sealed; schema.AddFence or sqlfence add-fence adds the column', {table text}, {column text}
			USING ERRCODE = 'object_not_in_prerequisite_state';
	ELSIF {has ledger} AND ledger IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no table fencing_tokens, by which the tokens of % are compared', {table text}
			USING ERRCODE = 'object_not_in_prerequisite_state';
	ELSIF {has ledger} AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = sealed AND a.attname = {key text} AND a.attgenerated <> '') THEN
		RAISE EXCEPTION 'sqlfence: the key column % of table % is generated, so that a trigger before a write doesn''t see it: leave away Key or Ledger, or make it an ordinary column', {key text}, {table text}
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;

	-- An autovacuum gives way to this lock, which isn't in the way of writers, but only to one
	-- who waits for longer than deadlock_timeout.
	LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE;
	{same table}	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';

	FOR part, late IN
		WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT g.tgrelid, g.tgname FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid WHERE {fired late}
	LOOP
		RAISE EXCEPTION 'sqlfence: the trigger % of table % is fired after the seal''s, and could change what that has compared: give it a name that is sorted before {trigger}', late, part
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END LOOP;

	-- They aren't known yet when a trigger is fired.
	SELECT pg_catalog.string_agg(pg_catalog.format(' other.%I := OLD.%I;', a.attname, a.attname), '') INTO generated
	FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = sealed AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> '';

	EXECUTE pg_catalog.format($sqlfence_create$
CREATE OR REPLACE FUNCTION %1$I.{write}() RETURNS trigger LANGUAGE plpgsql AS $sqlfence_body$
DECLARE
	given pg_catalog.int8;
	stored pg_catalog.int8;
	newest pg_catalog.int8;
	token_name pg_catalog.text;
	other pg_catalog.record;
BEGIN
	IF pg_catalog.int8lt(NEW.{mark}, 0) AND pg_catalog.int8ge(NEW.{mark}, -{max}) AND pg_catalog.{fresh}(pg_catalog.int8um(NEW.{mark}), COALESCE(pg_catalog.int8abs(OLD.{mark}), 0)){same key}{seen} THEN
		NEW.{mark} := pg_catalog.int8um(NEW.{mark});
		%4$s
		RETURN NEW;
	END IF;
	given := pg_catalog.int8um(NEW.{mark});
	stored := COALESCE(pg_catalog.int8abs(OLD.{mark}), 0);
	IF COALESCE(pg_catalog.int8le(given, 0), true) THEN
		%3$s{lock}
		RAISE EXCEPTION 'sqlfence: table %% is sealed: the write carries no fencing token (set %% to minus the token)', {name}, {mark name}
			USING ERRCODE = 'FT001';
	ELSIF pg_catalog.int8gt(given, {max}) THEN
		RAISE EXCEPTION 'sqlfence: token %% for table %% is not issued, the newest is %%', given, {name}, stored USING ERRCODE = 'FT003';
	ELSIF NOT pg_catalog.{fresh}(given, stored) THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for table %%, which has %%', given, {name}, stored USING ERRCODE = 'FT002';
	END IF;{moved key}{ledger}
	NEW.{mark} := given;
	%4$s
	RETURN NEW;
END $sqlfence_body$$sqlfence_create$, home, ledger,
		CASE WHEN parted THEN $sqlfence_part$
		IF pg_catalog.texteq(TG_OP, 'INSERT') AND pg_catalog.texteq(pg_catalog.current_setting({move}, true), pg_catalog.concat('to:', NEW.{mark once})) THEN
			PERFORM pg_catalog.set_config({move}, '', true);
			RETURN NEW; -- from another partition, where it was compared
		END IF;$sqlfence_part$ END,
		CASE WHEN parted THEN $sqlfence_part$IF pg_catalog.texteq(TG_OP, 'UPDATE') THEN
			PERFORM pg_catalog.set_config({move}, pg_catalog.concat('from:', NEW.{mark once}), true);
		END IF;$sqlfence_part$ END,
		generated);

	EXECUTE pg_catalog.format($sqlfence_create$
CREATE OR REPLACE FUNCTION %1$I.{delete}() RETURNS trigger LANGUAGE plpgsql AS $sqlfence_body$
DECLARE
	proof pg_catalog.text := pg_catalog.current_setting({setting}, true);
	move pg_catalog.text;
	given pg_catalog.int8;
	stored pg_catalog.int8 := COALESCE(pg_catalog.int8abs(OLD.{mark}), 0);
	newest pg_catalog.int8;
	token_name pg_catalog.text;
BEGIN
	%3$s
	IF COALESCE(pg_catalog.texteq(proof, ''), true) THEN
		RAISE EXCEPTION 'sqlfence: table %% is sealed: the DELETE carries no fencing token (have its WHERE set %% to the token)', {name}, {setting}
			USING ERRCODE = 'FT001';
	END IF;
	given := pg_catalog.int8in(pg_catalog.textout(pg_catalog.split_part(proof, ',', 1)));
	IF pg_catalog.int8le(given, 0) OR pg_catalog.int8gt(given, {max}) THEN
		RAISE EXCEPTION 'sqlfence: token %% for table %% is not issued, the newest is %%', given, {name}, stored USING ERRCODE = 'FT003';
	ELSIF NOT pg_catalog.{fresh}(given, stored) THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for table %%, which has %%', given, {name}, stored USING ERRCODE = 'FT002';
	END IF;
	IF true{seen by deleted} THEN
		RETURN OLD;
	END IF;{ledger of deleted}
	RETURN OLD;
END $sqlfence_body$$sqlfence_create$, home, ledger,
		CASE WHEN parted THEN $sqlfence_part$
	move := pg_catalog.current_setting({move}, true);
	IF pg_catalog.starts_with(move, 'from:') THEN
		move := pg_catalog.substr(move, 6);
		PERFORM pg_catalog.set_config({move}, pg_catalog.concat('to:', move), true);
		IF COALESCE(pg_catalog.texteq(proof, ''), true) THEN
			proof := move;
		END IF;
	END IF;$sqlfence_part$ END);

	EXECUTE pg_catalog.format($sqlfence_create$
CREATE OR REPLACE FUNCTION %1$I.{clear}() RETURNS trigger LANGUAGE plpgsql AS $sqlfence_body$
BEGIN
	%2$sPERFORM pg_catalog.set_config({setting}, '', true);
	RETURN NULL;
END $sqlfence_body$$sqlfence_create$, home,
		CASE WHEN parted THEN $sqlfence_part$PERFORM pg_catalog.set_config({move}, '', true);
	IF NOT pg_catalog.texteq(TG_OP, 'DELETE') THEN
		RETURN NULL; -- beside a DELETE, whose rows may have been found
	END IF;
	$sqlfence_part$ END);

	EXECUTE pg_catalog.format($sqlfence_create$
CREATE OR REPLACE FUNCTION %1$I.{truncate}() RETURNS trigger LANGUAGE plpgsql AS $sqlfence_body$
BEGIN
	RAISE EXCEPTION 'sqlfence: table %% is sealed: TRUNCATE carries no fencing token (write DELETE)', TG_TABLE_NAME
		USING ERRCODE = 'FT001';
END $sqlfence_body$$sqlfence_create$, home);

	IF NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = sealed AND k.conname = '{constraint}') THEN
		EXECUTE pg_catalog.format($sqlfence_create$ALTER TABLE {table twice} ADD CONSTRAINT {constraint} CHECK ({mark} >= 0) NOT VALID$sqlfence_create$);
	END IF;
	-- What a statement on a parent deletes doesn't clear before it: so what is left is cleared behind it.
	befores := CASE WHEN parted THEN 30 ELSE 10 END;
	IF parted THEN
		afters := 28;
	ELSIF EXISTS (WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = tree.oid WHERE i.inhparent NOT IN (SELECT t.oid FROM tree AS t)) THEN
		afters := 8;
	END IF;
	FOR part, off IN -- triggers of another name, table or version
		WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT c.oid, g.tgname FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = c.oid
		WHERE g.tgparentid = 0 AND CASE g.tgname
			WHEN '{trigger}' THEN g.tgfoid <> pg_catalog.to_regproc(pg_catalog.format($sqlfence_create$%I.{write}$sqlfence_create$, home)) OR c.relispartition AND c.oid <> sealed
			WHEN '~sqlfence_delete' THEN g.tgfoid <> pg_catalog.to_regproc(pg_catalog.format($sqlfence_create$%I.{delete}$sqlfence_create$, home)) OR c.relispartition AND c.oid <> sealed
			WHEN '~sqlfence_before' THEN g.tgfoid <> pg_catalog.to_regproc(pg_catalog.format($sqlfence_create$%I.{clear}$sqlfence_create$, home)) OR g.tgtype <> befores
			WHEN '~sqlfence_after' THEN g.tgfoid <> pg_catalog.to_regproc(pg_catalog.format($sqlfence_create$%I.{clear}$sqlfence_create$, home)) OR g.tgtype <> afters
			WHEN '~sqlfence_truncate' THEN g.tgfoid <> pg_catalog.to_regproc(pg_catalog.format($sqlfence_create$%I.{truncate}$sqlfence_create$, home))
			ELSE false END
	LOOP
		EXECUTE pg_catalog.format('DROP TRIGGER %I ON %s', off, part);
	END LOOP;
	FOR part, off, definition IN
		WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT c.oid, t.name, t.text FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid,
			LATERAL (VALUES (1, '{trigger}', $sqlfence_create$BEFORE INSERT OR UPDATE ON %2$s FOR EACH ROW EXECUTE FUNCTION %1$I.{write}()$sqlfence_create$),
				(2, '~sqlfence_delete', $sqlfence_create$BEFORE DELETE ON %2$s FOR EACH ROW EXECUTE FUNCTION %1$I.{delete}()$sqlfence_create$),
				(3, '~sqlfence_before', 'BEFORE DELETE' || CASE WHEN parted THEN ' OR INSERT OR UPDATE' ELSE '' END || $sqlfence_create$ ON %2$s FOR EACH STATEMENT EXECUTE FUNCTION %1$I.{clear}()$sqlfence_create$),
				(4, '~sqlfence_after', 'AFTER DELETE' || CASE WHEN parted THEN ' OR INSERT OR UPDATE' ELSE '' END || $sqlfence_create$ ON %2$s FOR EACH STATEMENT EXECUTE FUNCTION %1$I.{clear}()$sqlfence_create$),
				(5, '~sqlfence_truncate', $sqlfence_create$BEFORE TRUNCATE ON %2$s FOR EACH STATEMENT EXECUTE FUNCTION %1$I.{truncate}()$sqlfence_create$)) AS t (turn, name, text)
		WHERE c.relkind IN ('r', 'p') AND (t.turn <> 4 OR afters <> 0)
			AND (t.turn > 2 OR NOT c.relispartition OR c.oid = sealed) -- a partition has those of rows already
		ORDER BY c.oid <> sealed, c.oid, t.turn
	LOOP
		PERFORM FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = part AND g.tgname = off;
		IF NOT FOUND THEN
			EXECUTE pg_catalog.format('CREATE TRIGGER %3$I ' || definition, home, part, off);
		END IF;
		FOR off IN SELECT g.tgname FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = part AND g.tgname LIKE '~sqlfence\_%' AND g.tgenabled IN ('D', 'R') LOOP
			EXECUTE pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', part, off);
		END LOOP;
	END LOOP;
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$sqlfence$`

// seenLedger is a condition by which the transaction has the lock of the ledger's row already,
// and so nobody has raised the token. The setting that says so is undone with what has locked it,
// and names the ledger: a transaction may write to tables that have different ones.
const seenLedger = " AND COALESCE(pg_catalog.texteq(pg_catalog.current_setting('sqlfence.seen', true)," +
	" pg_catalog.concat(pg_catalog.txid_current_if_assigned(), ':', {given}, ':', %2$L, ':', {token name})), false)"

// sealLedgerText compares with the ledger, whose turn it takes and whose row it locks, as a guard does.
const sealLedgerText = `
	token_name := {token name};
	PERFORM pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', token_name), 0));
	SELECT t.token INTO newest FROM %2$s AS t WHERE t.name OPERATOR(pg_catalog.=) token_name FOR SHARE;
	newest := COALESCE(newest, 0);{one of several}
	IF pg_catalog.int8lt(given, newest) THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for table %%, which has %%', given, {name}, newest USING ERRCODE = 'FT002';
	ELSIF pg_catalog.int8gt(given, newest) THEN
		RAISE EXCEPTION 'sqlfence: token %% for table %% is not issued, the newest is %%', given, {name}, newest USING ERRCODE = 'FT003';
	END IF;
	PERFORM pg_catalog.set_config('sqlfence.seen', pg_catalog.concat(pg_catalog.txid_current_if_assigned(), ':', given, ':', %2$L, ':', token_name), true);`

// sealLockText lets an edit lock be taken and released: what changes nothing but its columns.
const sealLockText = `
		IF pg_catalog.texteq(TG_OP, 'UPDATE') THEN
			other := NEW;{other}%5$s
			IF pg_catalog.record_image_eq(other, OLD) THEN
				RETURN NEW;
			END IF;
		END IF;`

// movesKey is a condition by which an UPDATE gives the row another token's name.
const movesKey = "(pg_catalog.texteq(TG_OP, 'UPDATE') AND pg_catalog.textne({name of old}, {name of new}))"

// sealKeyText refuses what takes a row out of the scope of its token by that of another one.
const sealKeyText = `
	IF {moved} THEN
		RAISE EXCEPTION 'sqlfence: table %% is sealed: the write changes the key of a row, whose token is another then (delete and insert it)', {name}
			USING ERRCODE = 'FT001';
	END IF;`

// oneOfSeveral accepts whichever of a proof's tokens is that of the row's name.
const oneOfSeveral = `
	IF pg_catalog.int4gt(pg_catalog.strpos(pg_catalog.concat(',', proof, ','), pg_catalog.concat(',', newest, ',')), 0) THEN
		RETURN OLD;
	END IF;`

// liftPostgresText makes marks positive that were stored negative while the table had neither triggers nor the
// constraint, as when a migration had made it anew: they count by their size. They are looked for before writers
// have to wait.
const liftPostgresText = `DO $sqlfence$
DECLARE
	negative tid[];
	parts regclass[];
	part regclass;
	patience text := pg_catalog.current_setting('lock_timeout');
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = pg_catalog.to_regclass({table text}) AND k.conname = '{constraint}' AND k.convalidated) THEN
		RETURN;
	END IF;
	SELECT pg_catalog.array_agg(t.ctid) INTO negative FROM {table} AS t WHERE t.{mark once} < 0;
	IF negative IS NULL THEN
		RETURN;
	END IF;
	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE;
	WITH RECURSIVE tree AS (SELECT pg_catalog.to_regclass({table text})::oid AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
	SELECT pg_catalog.array_agg(g.tgrelid) INTO parts FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid WHERE g.tgname = '{trigger}';
	FOREACH part IN ARRAY parts LOOP
		EXECUTE pg_catalog.format('ALTER TABLE %s DISABLE TRIGGER %I', part, '{trigger}');
	END LOOP;
	UPDATE {table} AS t SET {mark once} = -t.{mark once} WHERE t.ctid = ANY (negative) AND t.{mark once} < 0;
	SET CONSTRAINTS ALL IMMEDIATE; -- as a table isn't altered before its deferred triggers were fired
	FOREACH part IN ARRAY parts LOOP
		EXECUTE pg_catalog.format('ALTER TABLE %s ENABLE TRIGGER %I', part, '{trigger}');
	END LOOP;
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$sqlfence$`

const unsealPostgresText = `DO $sqlfence$
DECLARE
	sealed oid := pg_catalog.to_regclass({table text});
	part regclass;
	trigger name;
	patience text := pg_catalog.current_setting('lock_timeout');
BEGIN
	{level}-- As when it is sealed, for an autovacuum.
	PERFORM pg_catalog.set_config('lock_timeout', '3s', true) WHERE patience = '0';
	LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE;
	{same table}	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	FOR part, trigger IN
		WITH RECURSIVE tree AS (SELECT sealed AS oid UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid)
		SELECT g.tgrelid, g.tgname FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid
		WHERE g.tgname IN ('{trigger}', '~sqlfence_delete', '~sqlfence_before', '~sqlfence_after', '~sqlfence_truncate') AND g.tgparentid = 0
	LOOP
		EXECUTE pg_catalog.format('DROP TRIGGER %I ON %s', trigger, part);
	END LOOP;
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$sqlfence$`
