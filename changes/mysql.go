package changes

import (
	"database/sql"

	"github.com/sqlfence/sqlfence"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
)

// mysql counts each changed row, because MySQL has no statement triggers. On its first count a connection takes a slot,
// a number with a free named lock (GET_LOCK), and keeps the lock until it closes. It counts in the row of its slot,
// so it never waits for another connection: ON DUPLICATE KEY UPDATE locks only this row, and no gap between rows.
var mysql = dialect{
	Dialect:       my.Text,
	names:         sqlfence.MySQL,
	inTableSchema: true,

	count: `(SELECT COUNT(*) FROM information_schema.triggers WHERE event_object_schema = {schema}
	AND event_object_table = {name} AND trigger_name IN ({'insert'}, {'update'}, {'delete'})) = 3,
	(SELECT CAST(SUM(b.n) AS SIGNED) FROM fencing_changes AS b WHERE b.relation = {key})`,
	reads: &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: true}, // rather than what isn't committed
	end:   "COMMIT AND NO CHAIN NO RELEASE",

	obstacles: `SELECT CONCAT(_utf8mb4'its foreign key ', constraint_name,
	_utf8mb4' changes or deletes rows by a cascade, which fires no trigger')
FROM information_schema.referential_constraints WHERE constraint_schema = {schema} AND table_name = {name}
	AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))
UNION ALL SELECT _utf8mb4'it is no table of InnoDB'
FROM information_schema.tables WHERE table_schema = {schema} AND table_name = {name}
	AND COALESCE(engine, '') <> 'InnoDB'
UNION ALL SELECT CONCAT(_utf8mb4'another table, which may have had its name, has the trigger ', trigger_name)
FROM information_schema.triggers WHERE event_object_schema = {schema} AND event_object_table <> {name}
	AND trigger_name IN ({'insert'}, {'update'}, {'delete'})`,

	group: my.FindGroup, servers: my.CountsNot,

	// A trigger is run in the sql_mode that it was created in.
	before: []string{
		"SET @sqlfence_lock_wait_timeout = @@SESSION.lock_wait_timeout, " +
			"@sqlfence_sql_mode = @@SESSION.sql_mode",
		"SET SESSION lock_wait_timeout = 1, SESSION sql_mode = 'STRICT_TRANS_TABLES'",
	},
	install: []string{
		`CREATE TABLE IF NOT EXISTS fencing_changes (
	relation varbinary(512) NOT NULL, slot bigint NOT NULL, n bigint NOT NULL, PRIMARY KEY (relation, slot)
) ENGINE=InnoDB`,
		`INSERT INTO fencing_changes (relation, slot, n)
VALUES ({key}, -1, ` + my.Text.Now() + ` DIV 1000) ON DUPLICATE KEY UPDATE n = n + 1`,
		countMySQL("insert"), countMySQL("update"), countMySQL("delete"),
	},
	after: []string{
		"SET SESSION lock_wait_timeout = @sqlfence_lock_wait_timeout, SESSION sql_mode = @sqlfence_sql_mode",
	},
}

func countMySQL(event string) string {
	return "CREATE TRIGGER IF NOT EXISTS {" + event + "} AFTER " + event + ` ON {table} FOR EACH ROW BEGIN
	DECLARE mine bigint DEFAULT COALESCE(@sqlfence_changes_slot, 0);
	IF @sqlfence_changes_slot IS NULL THEN
		WHILE mine < 100000 AND
			GET_LOCK(CONVERT(CONCAT('sqlfence-changes:', mine) USING utf8mb4), 0) = 0 DO
			SET mine = mine + 1;
		END WHILE;
		SET @sqlfence_changes_slot = mine;
	END IF;
	INSERT INTO fencing_changes (relation, slot, n) VALUES ({key}, mine, 1)
	ON DUPLICATE KEY UPDATE n = n + 1;
END`
}
