package sqltext

// LedgerState: nothing is needed beside the triggers.
func (mysql) LedgerState() string { return "" }

// LedgerTriggers: REPLACE fires that of DELETE. TRUNCATE fires none.
func (mysql) LedgerTriggers() []Trigger { return mysqlLedgerTriggers }

// LedgerKeptState is the SQLSTATE of their refusals.
const LedgerKeptState = "45L01"

var mysqlLedgerTriggers = []Trigger{
	newTrigger("sqlfence_ledger_update_v1", "AFTER UPDATE ON fencing_tokens FOR EACH ROW", `BEGIN
	IF NOT (NEW.name <=> OLD.name) OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0) THEN
		SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = '`+fallen+`, and its names are kept';
	END IF;
END`),
	newTrigger("sqlfence_ledger_delete_v1", "BEFORE DELETE ON fencing_tokens FOR EACH ROW",
		`SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = '`+lost+`DELETE and REPLACE are refused'`),
}
