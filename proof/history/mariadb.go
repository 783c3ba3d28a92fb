package history

import "strings"

var mariadb = dialect{
	table: `CREATE TABLE history (seq bigint PRIMARY KEY AUTO_INCREMENT, what varchar(8) NOT NULL, name varchar(190) NOT NULL, row_id bigint NOT NULL,
	op bigint NOT NULL, was bigint NOT NULL, mark bigint NOT NULL, began bigint NOT NULL, ended bigint NOT NULL) ENGINE=InnoDB CHARACTER SET utf8mb4`,
	row: func(t Table, what What) []string {
		const now = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
		return eachRow(t.Name, string(what), rowChange(t, what, "COALESCE(@proof_op, OLD.value, 0)", now, asIs))
	},
	ledger: func(table string) []string {
		utf8 := strings.NewReplacer("NEW.name", "CONVERT(NEW.name USING utf8mb4)")
		return append(eachRow(table, "insert", utf8.Replace(ledgerInsert)), eachRow(table, "update", utf8.Replace(ledgerChange))...)
	},
	leases: append(
		eachRow("fencing_leases", "insert", insert+leaseValues("CONVERT(NEW.`key` USING utf8mb4)", "NULL", "0", "0", asIs)),
		eachRow("fencing_leases", "update", insert+leaseValues("CONVERT(NEW.`key` USING utf8mb4)", "OLD.lock_id", "OLD.token", "OLD.expires_at", asIs))...),
}

func asIs(column string) string { return column }

var dialects = map[string]dialect{"postgres": postgres, "pgbouncer": postgres, "sqlite": sqlite, "mariadb": mariadb}
