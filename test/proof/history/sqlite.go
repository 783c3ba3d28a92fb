package history

import "strings"

var sqlite = dialect{
	tables: []string{`CREATE TABLE history (seq INTEGER PRIMARY KEY AUTOINCREMENT, what text NOT NULL, name text NOT NULL, row_id bigint NOT NULL,
	op bigint NOT NULL, was bigint NOT NULL, mark bigint NOT NULL, began bigint NOT NULL, ended bigint NOT NULL)`},
	row: func(t Table, what What) []string {
		const now = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
		return eachRow(t.Name, string(what), rowChange(t, what, "COALESCE(OLD.value, 0)", millis(now), millis))
	},
	ledger: func(table string) []string {
		return append(eachRow(table, "insert", ledgerInsert), eachRow(table, "update", ledgerChange)...)
	},
	leases: append(
		eachRow("fencing_leases", "insert", insert+leaseValues("NEW.key", "NULL", "0", "0", millis)),
		eachRow("fencing_leases", "update", insert+leaseValues("NEW.key", "OLD.lock_id", "OLD.token", millis("OLD.expires_at"), millis))...),
}

func millis(column string) string { return "(" + column + " * 1000)" }

// eachRow is a trigger without a function.
func eachRow(table, what, do string) []string {
	return []string{"CREATE TRIGGER proof_" + table + "_" + what + " AFTER " + strings.ToUpper(what) + " ON " + table +
		" FOR EACH ROW BEGIN " + do + "; END"}
}
