// Package sealsql has the triggers of a sealed table.
package sealsql

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealed builds the triggers of a table's seal.
type sealed struct{ *seal.Table }

// A Function is a PostgreSQL function that a seal's triggers call. Its body names the schemas of all functions, and
// uses no operator that the search path could replace, because setting a search_path would take longer than all the
// rest.
type Function struct {
	Name string
	text string   // the body, as a template for PostgreSQL's format
	args []string // arguments of format, after the schema and the ledger: additions for a table with partitions

	transaction bool // the function returns a token in the setting sqlfence.tokens; no trigger calls it directly
	// the function reads the size of the transaction's memory, with the privileges of the table's owner
	measures bool
}

// Takes returns the types of the function's arguments.
func (f *Function) Takes() string {
	if f.transaction {
		return "pg_catalog.text"
	}
	return ""
}

// Declares returns the function's RETURNS clause and attributes.
func (f *Function) Declares() string {
	returns := "RETURNS trigger"
	if f.transaction {
		returns = "RETURNS pg_catalog.int8"
	}
	if f.measures {
		returns += " STABLE SECURITY DEFINER"
	}
	return returns
}

// Definer reports whether the function runs with the privileges of its owner.
func (f *Function) Definer() bool { return f.measures }

// Body returns an expression for the function's body. It uses the columns or variables home (the table's schema),
// ledger (the ledger's quoted, qualified name) and parted (whether the table has partitions).
func (f *Function) Body() string {
	body := "pg_catalog.format($sqlfence_create$" + f.text + "$sqlfence_create$, home, ledger"
	for _, part := range f.args {
		body += ", CASE WHEN parted THEN $sqlfence_part$" + part + "$sqlfence_part$ END"
	}
	return body + ")"
}

// LedgerName returns the ledger's name for to_regclass. own is the schema of sqlfence's tables, or empty for the
// ledger that the session finds.
func LedgerName(own string) string {
	if own == "" {
		return sqltext.LedgerTable
	}
	return postgres.Text.Quote(own) + "." + sqltext.LedgerTable
}

// Functions returns the functions of a table's seal: for written rows, deleted rows, DELETE statements and TRUNCATE. If
// the seal accepts tokens in the transaction's setting sqlfence.tokens, a function that reads them and a function that
// verifies them at COMMIT follow.
func Functions(of *seal.Table) []Function {
	t := sealed{of}
	write := func(text string) string { return t.fill(text, true) }
	part := func(text string) string { return t.fill(text, false) }
	all := []Function{
		{t.Own("sqlfence_write_"), write(sealWrite), []string{part(reachedHere), part(movesAway)}, false, false},
		{t.Own("sqlfence_delete_"), write(sealDelete), []string{part(deletedMove)}, false, false},
		{t.Own("sqlfence_clear_"), write(sealClear), []string{part(clearedMove)}, false, false},
		{t.Own("sqlfence_truncate_"), write(sealTruncate), nil, false, false},
	}
	if t.FromTransaction {
		all = append(all, Function{t.Own("sqlfence_proof_"), write(sealTransaction), nil, true, true},
			Function{t.Own("sqlfence_late_"), write(sealLate), nil, false, true})
	}
	return all
}

// triggerRows returns VALUES with a row for each trigger of a seal, in the order in which they are created: the number,
// the trigger, its function, and its timing and events as pg_trigger has them in tgtype; NULL if the table needs no
// such trigger. The trigger ~sqlfence_before clears an earlier DELETE's token, but a DELETE on a parent without a seal
// doesn't fire it. So if there is such a parent, ~sqlfence_after clears the token after each DELETE.
func triggerRows(t *seal.Table) string {
	f := Functions(t)
	text := postgres.Text.Text
	late := ""
	if t.FromTransaction {
		late = ", (" + commitTrigger + ", '~sqlfence_late', " + text(f[5].Name) + ", 29)"
	}
	return "VALUES (1, '" + sqltext.SealTrigger + "', " + text(f[0].Name) + ", 23), (2, '~sqlfence_delete', " +
		text(f[1].Name) + ", 11), " +
		"(3, '~sqlfence_before', " + text(f[2].Name) + ", CASE WHEN s.parted THEN 30 ELSE 10 END), " +
		"(4, '~sqlfence_after', " + text(f[2].Name) + ", CASE WHEN s.parted THEN 28 WHEN s.parents THEN 8 END), " +
		"(5, '~sqlfence_truncate', " + text(f[3].Name) + ", 34)" + late
}

// Wanted returns items of a WITH RECURSIVE for a query about a table's seal. The item wanted has a row for each trigger
// that the table, each of its partitions and each of its children must have. The column wanted.made is true if the
// trigger must be created on that table itself. It is false for a row trigger of a partition, which PostgreSQL copies
// from the partitioned table. source is a query for the table's oid, its schema, and whether it has partitions.
func Wanted(t *seal.Table, source string) string {
	return `source (root, home, parted) AS (` + source + `),
	tree (oid) AS (SELECT s.root FROM source AS s UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid),
	sealed_tree (root, home, parted, parents) AS (SELECT s.root, s.home, s.parted, EXISTS (
		SELECT FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = tree.oid WHERE i.inhparent NOT IN (SELECT t.oid FROM tree AS t)) FROM source AS s),
	wanted AS (SELECT c.oid AS part, v.turn, v.name, v.function, v.type, pg_catalog.to_regprocedure(pg_catalog.format('%I.%I()', s.home, v.function)) AS calls,
		v.turn >= 3 AND v.turn <= 5 OR NOT c.relispartition OR c.oid = s.root AS made
		FROM sealed_tree AS s CROSS JOIN tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid
		CROSS JOIN LATERAL (` + triggerRows(t) + `) AS v (turn, name, function, type)
		WHERE c.relkind IN ('r', 'p') AND v.type IS NOT NULL)`
}

// Definition is an expression: the definition, after CREATE, of the trigger w of wanted.
const Definition = "pg_catalog.concat(CASE WHEN w.turn = " + commitTrigger +
	" THEN 'CONSTRAINT ' END, 'TRIGGER ', pg_catalog.quote_ident(w.name), " +
	"CASE WHEN pg_catalog.int4and(w.type, 2) <> 0 THEN ' BEFORE ' ELSE ' AFTER ' END, " +
	"pg_catalog.concat_ws(' OR ', CASE WHEN pg_catalog.int4and(w.type, 4) <> 0 THEN 'INSERT' END, " +
	"CASE WHEN pg_catalog.int4and(w.type, 8) <> 0 THEN 'DELETE' END, " +
	"CASE WHEN pg_catalog.int4and(w.type, 16) <> 0 THEN 'UPDATE' END, " +
	"CASE WHEN pg_catalog.int4and(w.type, 32) <> 0 THEN 'TRUNCATE' END), " +
	"' ON ', w.part::pg_catalog.regclass, CASE WHEN w.turn = " + commitTrigger +
	" THEN ' DEFERRABLE INITIALLY DEFERRED' END, " +
	"CASE WHEN pg_catalog.int4and(w.type, 1) <> 0 THEN ' FOR EACH ROW' ELSE ' FOR EACH STATEMENT' END, " +
	"CASE WHEN w.turn = " + commitTrigger + " THEN $sqlfence_when$ WHEN (" + inDoubt +
	")$sqlfence_when$ END, ' EXECUTE FUNCTION ', w.calls)"

// Same is a condition: the trigger g of pg_trigger equals the trigger w of wanted.
const Same = "g.tgrelid = w.part AND g.tgname = w.name AND g.tgfoid = w.calls AND g.tgtype = w.type AND " +
	"CASE WHEN w.turn = " + commitTrigger + " THEN g.tgdeferrable AND g.tginitdeferred AND " +
	"pg_catalog.strpos(pg_catalog.replace(pg_catalog.pg_get_triggerdef(g.oid), 'pg_catalog.', ''), '" + doubted +
	"') > 0 " +
	"ELSE g.tgqual IS NULL END AND " +
	"g.tgattr::pg_catalog.text = '' AND g.tgnargs = 0 AND g.tgoldtable IS NULL AND g.tgnewtable IS NULL"

// fill fills in a template. In a template for format it doubles the percent signs of the table's names.
func (t sealed) fill(text string, forFormat bool) string {
	d := postgres.Text
	in := func(part string) string {
		if forFormat {
			return strings.ReplaceAll(part, "%", "%%")
		}
		return part
	}
	name := func(row string) string { // as a guard reads the key: some collations take 'a' for 'A'
		if t.Key == "" {
			return in(d.Text(t.Resource))
		}
		return in("pg_catalog.concat(" + d.Text(t.Resource+"/") + ", " + row + "." + d.Quote(t.Key) +
			`::pg_catalog.text COLLATE pg_catalog."C")`)
	}
	seen := func(given, row string) string {
		return strings.NewReplacer("{given}", given, "{token name}", "{name of "+row+"}").Replace(seenLedger)
	}
	compared := func(row, several string) string {
		return strings.NewReplacer("{token name}", "{name of "+row+"}", "{one of several}", several).Replace(sealLedger)
	}
	parts := make(map[string]string)
	if t.Ledger {
		parts["{ledger}"], parts["{seen}"] = compared("new", ""), seen("pg_catalog.int8um(NEW.{mark})", "new")
		parts["{ledger of deleted}"], parts["{seen by deleted}"] = compared("old", oneOfTokens), seen("given", "old")
	}
	switch {
	case t.Key == "":
	case t.Ledger:
		parts["{same key}"], parts["{moved key}"] = " AND NOT "+movesKey, sealKey
	default:
		parts["{same key}"], parts["{moved by proof}"] = " AND NOT "+movesKey, sealPresentedKey
	}
	if t.Serial != "" {
		parts["{raised}"], parts["{kept}"] = " AND "+advancesSerial, sealSerial
	}
	if t.FromTransaction {
		taken := func(row string) string { return strings.ReplaceAll(takenToken, "{token name}", "{name of "+row+"}") }
		parts["{take}"] = "\n\t\tgiven := " + taken("new") + ";"
		if t.Key != "" && !t.Ledger {
			parts["{take}"] += strings.ReplaceAll(takenForMove, "{taken for old}", taken("old"))
		}
		if t.Claim {
			parts["{take}"] = strings.ReplaceAll(takenClaim, "{taken}", parts["{take}"])
			parts["{presented}"] = strings.ReplaceAll(presentedClaim, "{taken for old}", taken("old"))
		}
		parts["{take for delete}"] = "\n\t\tproof := pg_catalog.concat(" + taken("old") + ");"
		if t.Ledger {
			parts["{ledger}"] = "\n\tIF NOT (true" + seen("given", "new") + ") THEN" + parts["{ledger}"] + "\n\tEND IF;"
		}
	}
	parts["{moved proof}"] = "pg_catalog.split_part(move, ':', 1)"
	if t.Claim {
		parts["{taken over}"], parts["{has claim}"] = takenOver, hasClaim
		parts["{moved proof}"], parts["{of this row}"] = d.Text(guard.ComparedHere), ofThisRow
	}
	for _, part := range []string{"{taken over}", "{presented}", "{has claim}", "{moved proof}", "{of this row}", "{take}",
		"{take for delete}", "{ledger}", "{ledger of deleted}", "{seen}", "{seen by deleted}", "{same key}",
		"{moved key}", "{moved by proof}", "{raised}", "{kept}"} {
		text = strings.ReplaceAll(text, part, parts[part])
	}
	return strings.NewReplacer( // at once, as a name may look like a part of the text
		"{mark}", in(d.Quote(t.Column)), "{mark name}", in(d.Text(t.Column)), "{name}", in(d.Text(t.Name)),
		"{name of new}", name("NEW"), "{name of old}", name("OLD"),
		"{key}", in(d.Quote(t.Key)),
		"{serial}", in(d.Quote(t.Serial)), "{serial name}", in(d.Text(t.Serial)),
		"{setting}", d.Text(sqltext.DeleteSetting(t.Name)), "{move}", d.Text(sqltext.MoveSetting(t.Name)),
		"{proof}", "%1$I."+in(d.Quote(t.Own("sqlfence_proof_"))),
		"{proof of}", in(d.Text(sqltext.TransactionSetting(t.Name))),
		"{proof token}", in(d.Text(sqltext.TokenSetting(t.Name))), "{applied}", appliedHere,
		"{fresh}", t.Than("int8gt", "int8ge", "int8eq"), "{max}", seal.MaxToken,
	).Replace(text)
}

const sealWrite = `
DECLARE
	given pg_catalog.int8;
	stored pg_catalog.int8;
	newest pg_catalog.int8;
	token_name pg_catalog.text;
BEGIN{taken over}
	IF pg_catalog.int8lt(NEW.{mark}, 0) AND pg_catalog.int8ge(NEW.{mark}, -{max}) AND pg_catalog.{fresh}(pg_catalog.int8um(NEW.{mark}), COALESCE(pg_catalog.int8abs(OLD.{mark}), 0)){raised}{same key}{seen} THEN
		NEW.{mark} := pg_catalog.int8um(NEW.{mark});
		%4$s
		RETURN NEW;
	END IF;
	given := pg_catalog.int8um(NEW.{mark});
	stored := COALESCE(pg_catalog.int8abs(OLD.{mark}), 0);{moved by proof}
	IF COALESCE(pg_catalog.int8le(given, 0), true) THEN
		%3$s
{take}
		IF COALESCE(pg_catalog.int8le(given, 0), true) THEN
			IF {applied} THEN
				RETURN NEW;
			END IF;
			RAISE EXCEPTION 'sqlfence: table %% is sealed: the write carries no fencing token (set %% to minus the token)', {name}, {mark name}
				USING ERRCODE = 'FT001';
		END IF;
	END IF;
	IF pg_catalog.int8gt(given, {max}) THEN
		RAISE EXCEPTION 'sqlfence: token %% for table %% is not issued, the newest is %%', given, {name}, stored USING ERRCODE = 'FT003';
	ELSIF NOT pg_catalog.{fresh}(given, stored) THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for table %%, which has %%', given, {name}, stored USING ERRCODE = 'FT002';
	END IF;{moved key}{ledger}{kept}
	NEW.{mark} := given;
	%4$s
	RETURN NEW;
END `

// reachedHere is a part of sealWrite. It accepts a row that an UPDATE moves here from another partition, where its
// token was compared: the token and, with Key, the token's name must be equal.
const reachedHere = `
		IF pg_catalog.texteq(TG_OP, 'INSERT') AND pg_catalog.texteq(pg_catalog.current_setting({move}, true), pg_catalog.concat('to:', NEW.{mark}, ':', {name of new})) THEN
			PERFORM pg_catalog.set_config({move}, '', true);
			RETURN NEW;
		END IF;`

const movesAway = `IF pg_catalog.texteq(TG_OP, 'UPDATE') THEN
			PERFORM pg_catalog.set_config({move}, pg_catalog.concat('from:', NEW.{mark}, ':', {name of new}), true);
		END IF;`

// takenOver is a part of sealWrite for a table with Claim. It accepts a new row, and an UPDATE that increases the row's
// claim, which takes the row over: both present no token.
const takenOver = `
	IF (CASE WHEN pg_catalog.texteq(TG_OP, 'INSERT') THEN COALESCE(pg_catalog.int8ge(NEW.{mark}, 0), true)
		ELSE COALESCE(pg_catalog.int8gt(NEW.{mark}, COALESCE(pg_catalog.int8abs(OLD.{mark}), 0)), false) END) THEN{presented}
		%3$s
		%4$s
		RETURN NEW;
	END IF;`

// presentedClaim compares the claim that the transaction presents for a row, if any, with the row's claim, before an
// UPDATE takes the row over. If they differ, another worker has taken the row over.
const presentedClaim = `
		IF pg_catalog.texteq(TG_OP, 'UPDATE') THEN
			stored := COALESCE(pg_catalog.int8abs(OLD.{mark}), 0);
			newest := {taken for old};
			IF pg_catalog.int8lt(newest, stored) THEN
				RAISE EXCEPTION 'sqlfence: stale token %% for table %%, which has %%', newest, {name}, stored
					USING ERRCODE = 'FT002';
			ELSIF pg_catalog.int8gt(newest, stored) THEN
				RAISE EXCEPTION 'sqlfence: token %% for table %% is not issued, the newest is %%', newest, {name},
					stored USING ERRCODE = 'FT003';
			END IF;
		END IF;`

// takenClaim is the transaction's claim of a row, for a write that keeps the claim column.
const takenClaim = `
		IF COALESCE(pg_catalog.int8eq(NEW.{mark}, OLD.{mark}), false) THEN{taken}
		END IF;`

// takenForMove is a part of sealWrite for a write with its token in sqlfence.tokens. An UPDATE that changes the row's
// key needs a token of the old key and one of the new key in this setting. Neither may be older than the stored token.
const takenForMove = `
		IF ` + movesKey + ` THEN
			newest := {taken for old};
			IF NOT COALESCE(pg_catalog.{fresh}(newest, stored), false) THEN
				given := newest;
			END IF;
		END IF;`

// hasClaim is a part of sealDelete for a table with Claim. It accepts a DELETE that has compared the row's claim
// itself, as a guard does, or that presents the claim.
const hasClaim = `
	IF pg_catalog.texteq(proof, '` + guard.ComparedHere + `') OR pg_catalog.int8gt(stored, 0) AND pg_catalog.int4gt(
		pg_catalog.strpos(pg_catalog.concat(',', proof, ','), pg_catalog.concat(',', stored, ',')), 0) THEN
		RETURN OLD;
	END IF;
`

const sealDelete = `
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
{take for delete}
		IF COALESCE(pg_catalog.texteq(proof, ''), true) THEN
			IF {applied} THEN
				RETURN OLD;
			END IF;
			RAISE EXCEPTION 'sqlfence: table %% is sealed: the DELETE carries no fencing token (add AND set_config(''%%'', ''<token>'', true) IS NOT NULL to its WHERE)', {name}, {setting}
				USING ERRCODE = 'FT001';
		END IF;
	END IF;
{has claim}	given := pg_catalog.int8in(pg_catalog.textout(pg_catalog.split_part(proof, ',', 1)));
	IF pg_catalog.int8le(given, 0) OR pg_catalog.int8gt(given, {max}) THEN
		RAISE EXCEPTION 'sqlfence: token %% for table %% is not issued, the newest is %%', given, {name}, stored USING ERRCODE = 'FT003';
	ELSIF NOT pg_catalog.{fresh}(given, stored) THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for table %%, which has %%', given, {name}, stored USING ERRCODE = 'FT002';
	END IF;
	IF true{seen by deleted} THEN
		RETURN OLD;
	END IF;{ledger of deleted}
	RETURN OLD;
END `

// deletedMove is a part of sealDelete. It lets an UPDATE that moves a row to another partition delete the old row, for
// which the UPDATE has presented a token.
const deletedMove = `
	move := pg_catalog.current_setting({move}, true);
	IF pg_catalog.starts_with(move, 'from:'){of this row} THEN
		move := pg_catalog.substr(move, 6);
		PERFORM pg_catalog.set_config({move}, pg_catalog.concat('to:', move), true);
		IF COALESCE(pg_catalog.texteq(proof, ''), true) THEN
			proof := {moved proof};
		END IF;
	END IF;`

// ofThisRow is a condition of deletedMove for a table with Claim: an UPDATE that takes a row over presents no token, so
// it may move only this row to another partition, and delete no other.
const ofThisRow = " AND pg_catalog.texteq(pg_catalog.substr(move, pg_catalog.int4pl(" +
	"pg_catalog.strpos(pg_catalog.substr(move, 6), ':'), 6)), {name of old})"

const sealClear = `
BEGIN
	%3$sPERFORM pg_catalog.set_config({setting}, '', true);
	RETURN NULL;
END `

// clearedMove clears the move setting. For statements other than DELETE it keeps the setting in which a DELETE presents
// its token, because such a statement may run while a DELETE that has found its rows still deletes them.
const clearedMove = `PERFORM pg_catalog.set_config({move}, '', true);
	IF NOT pg_catalog.texteq(TG_OP, 'DELETE') THEN
		RETURN NULL;
	END IF;
	`

const sealTruncate = `
BEGIN
	IF {applied} THEN
		RETURN NULL;
	END IF;
	RAISE EXCEPTION 'sqlfence: table %% is sealed: TRUNCATE carries no fencing token (write DELETE)', TG_TABLE_NAME
		USING ERRCODE = 'FT001';
END `

// appliedHere is a condition: the session is a subscription's worker, which applies writes with tokens that the origin
// has compared. The triggers are ENABLE ALWAYS, so setting session_replication_role to replica doesn't disable them.
const appliedHere = "pg_catalog.texteq(pg_catalog.current_setting('session_replication_role'), 'replica') AND " +
	"EXISTS (SELECT FROM pg_catalog.pg_stat_get_subscription(NULL) AS s WHERE pg_catalog.int4eq(s.pid, " +
	"pg_catalog.pg_backend_pid()))"

// seenLedger is a condition: the transaction has compared this token before, and holds the lock of the ledger's row, so
// that no client has issued a newer token. A rollback of the locking statement undoes the setting sqlfence.seen. The
// setting names the ledger, because a transaction may write to tables with different ledgers.
const seenLedger = " AND COALESCE(pg_catalog.texteq(pg_catalog.current_setting('sqlfence.seen', true)," +
	" pg_catalog.concat(pg_catalog.txid_current_if_assigned(), ':', {given}, ':', %2$L, ':', {token name})), false)"

// sealLedger compares a write's token with the ledger: it takes the name's advisory lock and locks the ledger's row, as
// a guard does.
const sealLedger = `
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

// advancesSerial is a condition: an UPDATE increases the row's version.
const advancesSerial = "(pg_catalog.texteq(TG_OP, 'INSERT') OR COALESCE(pg_catalog.int8gt(NEW.{serial}, " +
	"COALESCE(OLD.{serial}, 0)), false))"

// sealSerial refuses an UPDATE that doesn't increase the row's version, because a reader of the older version would
// overwrite this UPDATE without a conflict.
const sealSerial = `
	IF NOT ` + advancesSerial + ` THEN
		RAISE EXCEPTION 'sqlfence: table %% is sealed: the write doesn''t raise the serial (set %% to itself plus 1)', {name}, {serial name}
			USING ERRCODE = 'FT004';
	END IF;`

// movesKey is a condition: an UPDATE gives the row another token's name.
const movesKey = "(pg_catalog.texteq(TG_OP, 'UPDATE') AND pg_catalog.textne({name of old}, {name of new}))"

// sealKey is a part of sealWrite for a table with the rules Key and Ledger. It refuses an UPDATE that changes a row's
// key, because a token of another name guards the row afterwards, and the UPDATE presents a token for one name only.
const sealKey = `
	IF ` + movesKey + ` THEN
		RAISE EXCEPTION 'sqlfence: table %% is sealed: changing the key of a row is not allowed (delete and insert it)', {name}
			USING ERRCODE = 'FT001';
	END IF;`

// sealPresentedKey refuses an UPDATE that changes a row's key and presents a token in the fence column, because that
// token is for a single name.
var sealPresentedKey = strings.Replace(sealKey, "IF "+movesKey, "IF COALESCE(pg_catalog.int8gt(given, 0), false) AND "+
	movesKey, 1)

// oneOfTokens accepts each of several tokens that a DELETE presents, if it is the newest of the row's name.
const oneOfTokens = `
	IF pg_catalog.int4gt(pg_catalog.strpos(pg_catalog.concat(',', proof, ','), pg_catalog.concat(',', newest, ',')), 0) THEN
		RETURN OLD;
	END IF;`
