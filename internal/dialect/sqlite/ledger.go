package sqlite

import "github.com/sqlfence/sqlfence/internal/sqltext"

// ledgerState creates the table that the triggers need.
const ledgerState = "CREATE TABLE IF NOT EXISTS " + sqltext.SQLiteLedgerState + ` (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// ledgerTriggers: an upsert fires those of INSERT before it finds the row, whatever it is going to
// make of it; only REPLACE then inserts. The name is remembered as it is inserted: to a ledger that others have made
// 'Books' may be 'books'.
var ledgerTriggers = []sqltext.Trigger{
	sqltext.NewTrigger("sqlfence_ledger_insert_v1", "BEFORE INSERT ON fencing_tokens",
		`WHEN EXISTS (SELECT 1 FROM sqlfence_ledger AS l WHERE l.name = NEW.name)
	OR EXISTS (SELECT 1 FROM fencing_tokens AS t WHERE t.name = NEW.name AND t.token > COALESCE(NEW.token, 0))
BEGIN
	DELETE FROM sqlfence_ledger WHERE name = NEW.name;
	INSERT INTO sqlfence_ledger (name, token) SELECT NEW.name, t.token FROM fencing_tokens AS t WHERE t.name = NEW.name;
END`),
	sqltext.NewTrigger("sqlfence_ledger_inserted_v1", "AFTER INSERT ON fencing_tokens",
		`WHEN EXISTS (SELECT 1 FROM sqlfence_ledger AS l WHERE l.name = NEW.name AND l.token > COALESCE(NEW.token, 0))
BEGIN
	SELECT RAISE(ABORT, '`+sqltext.FallenToken+`');
END`),
	sqltext.NewTrigger("sqlfence_ledger_row_v1", "BEFORE INSERT ON fencing_tokens",
		`WHEN EXISTS (SELECT 1 FROM fencing_tokens AS t WHERE t.rowid = NEW.rowid AND t.name <> NEW.name)
BEGIN
	SELECT RAISE(ABORT, '`+sqltext.LostName+`the row has another one');
END`),
	sqltext.NewTrigger("sqlfence_ledger_update_v1", "BEFORE UPDATE ON fencing_tokens",
		`WHEN NEW.name IS NOT OLD.name OR NEW.rowid <> OLD.rowid OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0)
BEGIN
	SELECT RAISE(ABORT, '`+sqltext.FallenToken+`, and its names are kept');
END`),
	sqltext.NewTrigger("sqlfence_ledger_delete_v1", "BEFORE DELETE ON fencing_tokens", `BEGIN
	SELECT RAISE(ABORT, '`+sqltext.LostName+`DELETE is refused')
	WHERE OLD.name = '' OR COALESCE(OLD.token, 0) >
		COALESCE((SELECT t.token FROM fencing_tokens AS t WHERE t.name = ''), 0);
	DELETE FROM sqlfence_ledger WHERE name = OLD.name;
END`),
	sqltext.NewTrigger("sqlfence_ledger_first_insert_v1", "AFTER INSERT ON fencing_tokens", firstToken("")),
	sqltext.NewTrigger("sqlfence_ledger_first_update_v1", "AFTER UPDATE ON fencing_tokens",
		firstToken("COALESCE(OLD.token, 0) <= 0 AND ")),
}

func firstToken(condition string) string {
	return `WHEN ` + condition + `NEW.token > 0 AND NEW.name <> ''
	AND NEW.token <= (SELECT t.token FROM fencing_tokens AS t WHERE t.name = '')
BEGIN
	SELECT RAISE(ABORT, '` + sqltext.ServedToken + `');
END`
}
