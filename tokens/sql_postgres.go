package tokens

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgresStatements returns the statements of PostgreSQL. Their arguments are cast,
// because it takes an untyped one for text.
func postgresStatements() statements {
	// The guard of the ledger takes its turn too, shared. Turns are granted in the
	// order of the requests, so writers whose transactions overlap can't hold
	// off the next token for ever, as they could by sharing the row.
	issue := `INSERT INTO fencing_tokens (name, token)
SELECT {name}, turn.floor + {count}
FROM (SELECT {turn}, ` + sqltext.Durable + `, {floor} AS floor OFFSET 0) AS turn
WHERE turn.floor <= {max} - {count} AND {seen}
ON CONFLICT (name) DO UPDATE SET token = GREATEST(COALESCE(fencing_tokens.token, 0) + {count}, excluded.token)
WHERE COALESCE(fencing_tokens.token, 0) BETWEEN 0 AND {max} - {count}
RETURNING token`
	arguments := strings.NewReplacer("{turn}", sqltext.Postgres.Turn("$1::text", false), "{seen}", sqltext.Seen("$1::text"), "{name}", "$1::text", "{count}", "$2::bigint", "{max}", limit)
	constants := strings.NewReplacer("{turn}", sqltext.Postgres.Turn("'books'", false), "{seen}", sqltext.Seen("'books'"), "{name}", "'books'", "{count}", "1", "{max}", limit)
	return statements{
		issue: sqltext.NewFloored(sqltext.Postgres, arguments.Replace(issue)),
		floor: sqltext.NewFloored(sqltext.Postgres, "SELECT {floor}"),
		stands: sqltext.NewFloored(sqltext.Postgres, `SELECT CASE WHEN held.token < 0 THEN held.token ELSE GREATEST(held.token, base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN fencing_tokens AS held ON held.name = $1::text`),
		// It writes also when the stored token is higher: that is how one
		// statement can tell it.
		adopt: `INSERT INTO fencing_tokens (name, token)
SELECT $1::text, $2::bigint FROM (SELECT ` + sqltext.Postgres.Turn("$1::text", false) + `, ` + sqltext.Durable + ` OFFSET 0) AS turn
ON CONFLICT (name) DO UPDATE SET token = GREATEST(fencing_tokens.token, excluded.token)
RETURNING token`,
		current: `SELECT token FROM fencing_tokens WHERE name = $1::text`,
		ensure: `INSERT INTO fencing_tokens (name, token)
SELECT n, 0 FROM json_array_elements_text($1::text::json) AS names(n)
ON CONFLICT (name) DO NOTHING`,
		begin: []string{
			"SELECT " + sqltext.Durable,
			// Rows that the role can't see would keep their marks.
			"SELECT pg_catalog.set_config('row_security', 'off', true)",
		},
		lock: "LOCK TABLE fencing_tokens IN SHARE ROW EXCLUSIVE MODE",
		start: sqltext.NewFloored(sqltext.Postgres, `INSERT INTO fencing_tokens (name, token)
VALUES ('', GREATEST($1::bigint - ({floor} - `+sqltext.Start+`), 0))
ON CONFLICT (name) DO UPDATE SET token = GREATEST(fencing_tokens.token, excluded.token)`),
		raise: `UPDATE fencing_tokens SET token = $1::bigint WHERE COALESCE(token, 0) < $1::bigint AND name <> ''`,
		turn:  "SELECT " + sqltext.Postgres.Turn("$1::text", false),
		retire: `UPDATE fencing_tokens SET token = $2::bigint
WHERE name = $1::text OR starts_with(name, $1::text || '/')`,
		columns: `SELECT attname, format_type(atttypid, NULL), attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass('fencing_tokens') AND attnum > 0 AND NOT attisdropped`,
		// EXPLAIN plans without running: columns, types, the unique index that
		// ON CONFLICT needs, and the privileges are looked up for it.
		probe: sqltext.NewFloored(sqltext.Postgres, "EXPLAIN "+constants.Replace(issue)),
	}
}
