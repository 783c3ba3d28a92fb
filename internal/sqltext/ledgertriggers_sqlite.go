package sqltext

import "strings"

// SQLiteLedgerState is a table of SQLite's in which the ledger's triggers remember a token that
// an INSERT finds above its own: REPLACE deletes a row without firing a trigger for that.
const SQLiteLedgerState = "sqlfence_ledger"

// LedgerState creates the table that the triggers need.
func (sqlite) LedgerState() string {
	return "CREATE TABLE IF NOT EXISTS " + SQLiteLedgerState + ` (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`
}

// LedgerTriggers: an upsert fires those of INSERT before it finds the row, whatever it is going to
// make of it; only REPLACE then inserts. The name is remembered as it is inserted: to a ledger that others have made
// 'Books' may be 'books'.
func (sqlite) LedgerTriggers() []Trigger { return sqliteLedgerTriggers }

var sqliteLedgerTriggers = []Trigger{
	newTrigger("sqlfence_ledger_insert_v1", "BEFORE INSERT ON fencing_tokens", `WHEN EXISTS (SELECT 1 FROM sqlfence_ledger AS l WHERE l.name = NEW.name)
	OR EXISTS (SELECT 1 FROM fencing_tokens AS t WHERE t.name = NEW.name AND t.token > COALESCE(NEW.token, 0))
BEGIN
	DELETE FROM sqlfence_ledger WHERE name = NEW.name;
	INSERT INTO sqlfence_ledger (name, token) SELECT NEW.name, t.token FROM fencing_tokens AS t WHERE t.name = NEW.name;
END`),
	newTrigger("sqlfence_ledger_inserted_v1", "AFTER INSERT ON fencing_tokens", `WHEN EXISTS (SELECT 1 FROM sqlfence_ledger AS l WHERE l.name = NEW.name AND l.token > COALESCE(NEW.token, 0))
BEGIN
	SELECT RAISE(ABORT, '`+fallen+`');
END`),
	newTrigger("sqlfence_ledger_row_v1", "BEFORE INSERT ON fencing_tokens", `WHEN EXISTS (SELECT 1 FROM fencing_tokens AS t WHERE t.rowid = NEW.rowid AND t.name <> NEW.name)
BEGIN
	SELECT RAISE(ABORT, '`+lost+`the row has another one');
END`),
	newTrigger("sqlfence_ledger_update_v1", "BEFORE UPDATE ON fencing_tokens", `WHEN NEW.name IS NOT OLD.name OR NEW.rowid <> OLD.rowid OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0)
BEGIN
	SELECT RAISE(ABORT, '`+fallen+`, and its names are kept');
END`),
	newTrigger("sqlfence_ledger_delete_v1", "BEFORE DELETE ON fencing_tokens", `BEGIN
	SELECT RAISE(ABORT, '`+lost+`DELETE is refused');
END`),
}

// WithoutRowID are the triggers for a ledger that has no numbers of rows.
func WithoutRowID(triggers []Trigger) (all []Trigger) {
	for _, t := range triggers {
		if strings.Contains(t.Body, "t.rowid = NEW.rowid") {
			continue
		}
		without := func(s string) string { return strings.ReplaceAll(s, " OR NEW.rowid <> OLD.rowid", "") }
		all = append(all, Trigger{Name: t.Name, Create: without(t.Create), Body: without(t.Body)})
	}
	return all
}
