package history

import (
	"fmt"
	"strings"
)

const mariadbTable = `CREATE TABLE history (seq bigint PRIMARY KEY %s, what varchar(8) NOT NULL, name varchar(190) NOT NULL, row_id bigint NOT NULL,
	op bigint NOT NULL, was bigint NOT NULL, mark bigint NOT NULL, began bigint NOT NULL, ended bigint NOT NULL) ENGINE=InnoDB CHARACTER SET utf8mb4`

var mariadb = dialect{
	tables: []string{fmt.Sprintf(mariadbTable, "AUTO_INCREMENT")},
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

// galera returns MariaDB's triggers with numbers in the order of the group's commits: each transaction writes the
// counter's row, and if transactions of two nodes read the same number, the group lets one commit. So a transaction
// collides with every other recorded transaction, not only with writers of the same row.
func galera() dialect {
	d := mariadb
	d.tables = []string{
		fmt.Sprintf(mariadbTable, "DEFAULT 0"),
		"CREATE TABLE history_number (id int PRIMARY KEY, n bigint NOT NULL) ENGINE=InnoDB",
		"INSERT INTO history_number VALUES (1, 0)",
		`CREATE TRIGGER history_number BEFORE INSERT ON history FOR EACH ROW BEGIN
	UPDATE history_number SET n = (@proof_seq := n + 1) WHERE id = 1;
	SET NEW.seq = @proof_seq;
END`,
	}
	return d
}

func asIs(column string) string { return column }

var dialects = map[string]dialect{"postgres": postgres, "pgbouncer": postgres, "sqlite": sqlite, "mariadb": mariadb, "galera": galera()}
