package database

import "github.com/sqlfence/sqlfence/internal/sqltext"

// waitsMySQL returns the query of [Source.Waits] for MariaDB: transactions that wait for a row lock in the ledger or in
// the table of leases, and who blocks them. All transactions that have written nothing have the same id 0, so if
// several transactions have the blocker's id, the query names no blocker.
func waitsMySQL(home Source) string {
	session := func(trx, process string) string {
		return "CONCAT(COALESCE(CONCAT(" + process + ".user, '@', SUBSTRING_INDEX(" + process +
			".host, ':', 1), ', '), ''), 'pid ', " + trx + ".trx_mysql_thread_id)"
	}
	universal := func(of string) string { return "CONVERT_TZ(" + of + ", 'SYSTEM', '+00:00')" }
	moment := func(of string) string {
		return "COALESCE(DATE_FORMAT(" + universal(of) + ", '%Y-%m-%dT%H:%i:%s.000Z'), '')"
	}
	schema := "DATABASE()"
	if home.Schema != "" {
		schema = home.Text.Text(home.Schema)
	}
	table := func(name string) string { return "CONCAT('`', " + schema + ", '`.`" + name + "`')" }
	return `SELECT CASE WHEN l.lock_index <> 'PRIMARY' OR l.lock_data IS NULL THEN ''
	WHEN l.lock_data LIKE '0x%' THEN CONVERT(UNHEX(SUBSTRING(l.lock_data, 3)) USING utf8mb4)
	ELSE TRIM(BOTH '''' FROM l.lock_data) END,
	` + session("r", "rp") + ", " + moment("r.trx_wait_started") + ", COALESCE(" + session("b", "bp") + `, ''),
	CASE WHEN b.trx_id IS NULL THEN '' WHEN bp.command = 'Sleep' THEN 'idle in transaction' ELSE 'active' END,
	` + moment("b.trx_started") + `
FROM information_schema.innodb_lock_waits AS w
JOIN information_schema.innodb_trx AS r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.innodb_locks AS l ON l.lock_id = w.requested_lock_id
LEFT JOIN information_schema.processlist AS rp ON rp.id = r.trx_mysql_thread_id
LEFT JOIN information_schema.innodb_trx AS b ON b.trx_id = w.blocking_trx_id
	AND (SELECT COUNT(*) FROM information_schema.innodb_trx AS same WHERE same.trx_id = w.blocking_trx_id) = 1
LEFT JOIN information_schema.processlist AS bp ON bp.id = b.trx_mysql_thread_id
WHERE l.lock_table IN (` + table(sqltext.LedgerTable) + ", " + table(sqltext.LeaseTable) + `)
	AND ` + universal("r.trx_wait_started") + ` <= UTC_TIMESTAMP() - INTERVAL 1 SECOND
ORDER BY 1, r.trx_wait_started`
}
