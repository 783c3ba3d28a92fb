package ours

// The kinds of statements. The arguments are the value, and the row.

var postgres = database{
	seals: true, ledgers: true, native: true, source: postgresSource,
	create: "CREATE TABLE %s (id bigint PRIMARY KEY, value bigint NOT NULL%s)", time: "timestamptz",
	deleting: "SELECT set_config('proof.op', '%d', false)", deleted: "SELECT set_config('proof.op', '', false)",
	forms: map[string]string{
		"update":    "UPDATE %[1]s SET value = $1 WHERE id = $2",
		"returning": "UPDATE %[1]s SET value = $1 WHERE id = $2 RETURNING id",
		"upsert":    "INSERT INTO %[1]s (id, value) VALUES ($2, $1) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
		"bulk":      "UPDATE %[1]s SET value = $1 WHERE id <= $2",
		"with":      "WITH chosen AS (SELECT CAST($2 AS bigint) AS id) UPDATE %[1]s AS t SET value = $1 FROM chosen WHERE t.id = chosen.id",
		"merge":     "MERGE INTO %[1]s AS t USING (SELECT CAST($2 AS bigint) AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET value = $1",
		"delete":    "DELETE FROM %[1]s WHERE id = $1",
	},
}

var mariadb = database{
	seals: true, ledgers: true, source: mariadbSource,
	create: "CREATE TABLE %s (id bigint PRIMARY KEY, value bigint NOT NULL%s) ENGINE=InnoDB", time: "bigint",
	deleting: "SET @proof_op = %d", deleted: "SET @proof_op = NULL", rowFirst: true,
	forms: map[string]string{
		"update": "UPDATE %[1]s SET value = ? WHERE id = ?",
		"upsert": "INSERT INTO %[1]s (id, value) VALUES (?, ?) ON DUPLICATE KEY UPDATE value = VALUES(value)",
		"bulk":   "UPDATE %[1]s SET value = ? WHERE id <= ?",
		"with":   "UPDATE %[1]s AS t JOIN (SELECT 1) AS one SET t.value = ? WHERE t.id = ?",
		"delete": "DELETE FROM %[1]s WHERE id = ?",
	},
}

var sqlite = database{
	ledgers: true, source: sqliteSource,
	create: "CREATE TABLE %s (id integer PRIMARY KEY, value bigint NOT NULL%s)", time: "integer",
	forms: map[string]string{
		"update":    "UPDATE %[1]s SET value = ?1 WHERE id = ?2",
		"returning": "UPDATE %[1]s SET value = ?1 WHERE id = ?2 RETURNING id",
		"upsert":    "INSERT INTO %[1]s (id, value) VALUES (?2, ?1) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
		"bulk":      "UPDATE %[1]s SET value = ?1 WHERE id <= ?2",
		"with":      "WITH chosen AS (SELECT 1) UPDATE %[1]s SET value = ?1 WHERE id = ?2",
		"delete":    "DELETE FROM %[1]s WHERE id = ?1",
	},
}
