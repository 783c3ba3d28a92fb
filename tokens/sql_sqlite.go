package tokens

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sqliteStatements returns the statements of SQLite. Their arguments stand in their
// order and once each, because drivers differ in how they count them.
func sqliteStatements() statements {
	// The count is what the token that didn't fit is above the floor.
	issue := strings.NewReplacer("{given}", "(excluded.token - {floor})", "{max}", limit).Replace(`INSERT INTO fencing_tokens (name, token)
SELECT new.name, new.floor + new.count FROM (SELECT {name} AS name, {count} AS count, {floor} AS floor) AS new
WHERE new.floor <= {max} - new.count
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE(fencing_tokens.token, 0) + {given}, excluded.token)
WHERE COALESCE(fencing_tokens.token, 0) BETWEEN 0 AND {max} - {given}
RETURNING token`)
	return statements{
		issue: sqltext.NewFloored(sqltext.SQLite, strings.NewReplacer("{name}", "?", "{count}", "?").Replace(issue)),
		stands: sqltext.NewFloored(sqltext.SQLite, `SELECT CASE WHEN held.token < 0 THEN held.token ELSE max(COALESCE(held.token, 0), base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN fencing_tokens AS held ON held.name = ?`),
		adopt: `INSERT INTO fencing_tokens (name, token) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE(fencing_tokens.token, 0), excluded.token)
RETURNING token`,
		current: `SELECT token FROM fencing_tokens WHERE name = ?`,
		// WHERE true: without it ON would be read as a join's.
		ensure: `INSERT INTO fencing_tokens (name, token)
SELECT value, 0 FROM json_each(?) WHERE true
ON CONFLICT (name) DO NOTHING`,
		start: sqltext.NewFloored(sqltext.SQLite, `INSERT INTO fencing_tokens (name, token) VALUES ('', ?)
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE(fencing_tokens.token, 0), excluded.token)`),
		raise: `UPDATE fencing_tokens SET token = new.floor FROM (SELECT ? AS floor) AS new
WHERE COALESCE(token, 0) < new.floor AND name <> ''`,
		retire: `UPDATE fencing_tokens SET token = old.retired FROM (SELECT ? AS prefix, ? AS retired) AS old
WHERE name = old.prefix OR substr(name, 1, length(old.prefix) + 1) = old.prefix || '/'`,
		// An INTEGER PRIMARY KEY gets its value from SQLite.
		columns: `SELECT lower(name), lower(type), "notnull" AND dflt_value IS NULL AND NOT (pk > 0 AND lower(type) = 'integer')
FROM pragma_table_info('fencing_tokens')`,
		probe: sqltext.NewFloored(sqltext.SQLite, "EXPLAIN "+strings.NewReplacer("{name}", "'books'", "{count}", "1").Replace(issue)),
	}
}
