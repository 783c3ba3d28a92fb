package mysql

import "github.com/sqlfence/sqlfence/internal/sqltext"

// createLedger: a name has at most 512 bytes, and one that were longer would be cut in
// silence where sql_mode is empty.
const createLedger = `CREATE TABLE IF NOT EXISTS ` + sqltext.LedgerTable + ` (
	name  varbinary(512) NOT NULL PRIMARY KEY,
	token bigint         NOT NULL
) ENGINE=InnoDB`

// ledgerTriggers: REPLACE fires that of DELETE. TRUNCATE fires none.
var ledgerTriggers = []sqltext.Trigger{
	sqltext.NewTrigger("sqlfence_ledger_update_v1", "AFTER UPDATE ON fencing_tokens FOR EACH ROW", `BEGIN
	IF NOT (NEW.name <=> OLD.name) OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0) THEN
		SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = '`+sqltext.FallenToken+`, and its names are kept';
	END IF;
END`),
	sqltext.NewTrigger("sqlfence_ledger_delete_v1", "BEFORE DELETE ON fencing_tokens FOR EACH ROW",
		`SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = '`+sqltext.LostName+`DELETE and REPLACE are refused'`),
}
