package changes

import (
	"github.com/sqlfence/sqlfence"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
)

// sqlite counts rows, all in one: a file has one writer.
var sqlite = dialect{
	Dialect:  lite.Text,
	names:    sqlfence.SQLite,
	attached: true,

	count: `(SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = {name} COLLATE NOCASE
	AND name IN ({'insert'}, {'update'}, {'delete'})) = 3,
	(SELECT b.n FROM fencing_changes AS b WHERE b.relation = {key})`,

	obstacles: `SELECT 'another table, which may have had its name, has the trigger ' || name FROM sqlite_master
WHERE type = 'trigger' AND tbl_name <> {name} COLLATE NOCASE AND name IN ({'insert'}, {'update'}, {'delete'})`,

	install: []string{
		`CREATE TABLE IF NOT EXISTS fencing_changes (relation text NOT NULL PRIMARY KEY, n bigint NOT NULL)`,
		`INSERT INTO fencing_changes (relation, n)
SELECT {key}, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) WHERE true
ON CONFLICT (relation) DO UPDATE SET n = n + 1`,
		countSQLite("insert"), countSQLite("update"), countSQLite("delete"),
	},
}

func countSQLite(event string) string {
	return "CREATE TRIGGER IF NOT EXISTS {" + event + "} AFTER " + event + ` ON {table} BEGIN
	UPDATE fencing_changes SET n = n + 1 WHERE relation = {key};
END`
}
