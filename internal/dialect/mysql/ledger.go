package mysql

import "github.com/sqlfence/sqlfence/internal/sqltext"

// createLedger: a name has at most 512 bytes, and one that were longer would be cut in
// silence where sql_mode is empty.
const createLedger = `CREATE TABLE IF NOT EXISTS ` + sqltext.LedgerTable + ` (
	name  varbinary(512) NOT NULL PRIMARY KEY,
	token bigint         NOT NULL
) ENGINE=InnoDB`

// ledgerTriggers: REPLACE fires that of DELETE. TRUNCATE fires none. A name gets its first token by an UPDATE of a row
// without one, or by an INSERT; what is read then, with a lock, is the newest that was committed. Without its LIMIT a
// session's sql_select_limit would have MariaDB read nothing.
var ledgerTriggers = []sqltext.Trigger{
	sqltext.NewTrigger("sqlfence_ledger_update_v1", "AFTER UPDATE ON fencing_tokens FOR EACH ROW", `BEGIN
	IF NOT (NEW.name <=> OLD.name) OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0) THEN
		SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = '`+sqltext.FallenToken+`, and its names are kept';
	END IF;
END`),
	sqltext.NewTrigger("sqlfence_ledger_delete_v1", "BEFORE DELETE ON fencing_tokens FOR EACH ROW", `BEGIN
	IF OLD.name = '' OR COALESCE(OLD.token, 0) >
		COALESCE((SELECT t.token FROM fencing_tokens AS t WHERE t.name = ''), 0) THEN
		SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = '`+sqltext.LostName+`DELETE and REPLACE are refused';
	END IF;
END`),
	sqltext.NewTrigger("sqlfence_ledger_first_update_v1", "AFTER UPDATE ON fencing_tokens FOR EACH ROW",
		firstToken("COALESCE(OLD.token, 0) <= 0 AND ")),
	sqltext.NewTrigger("sqlfence_ledger_first_insert_v1", "AFTER INSERT ON fencing_tokens FOR EACH ROW",
		firstToken("")),
}

func firstToken(condition string) string {
	return `BEGIN
	DECLARE served bigint DEFAULT 0;
	IF ` + condition + `COALESCE(NEW.token, 0) > 0 AND NEW.name <> '' THEN
		SELECT COALESCE(MAX(t.token), 0) INTO served FROM fencing_tokens AS t WHERE t.name = ''
			LIMIT 1 LOCK IN SHARE MODE;
		IF NEW.token <= served THEN
			SIGNAL SQLSTATE '` + sqltext.ServedState + `' SET MESSAGE_TEXT = '` + sqltext.ServedToken + `';
		END IF;
	END IF;
END`
}
