package tokens

import (
	"database/sql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgres casts its arguments, because PostgreSQL takes an untyped one for text.
var postgres = dialect{
	Dialect: sqltext.Postgres,
	names:   sqlfence.Postgres,

	issue: issuing(floored(sqltext.Postgres, issuePostgres, onePostgres("$1::text", "$2::bigint"))),
	each: issuingEach(floored(sqltext.Postgres, issuePostgres, sqltext.Pieces{
		"asked": sqltext.Raw("SELECT n AS name FROM json_array_elements_text($1::text::json) AS names(n)"), "count": sqltext.Raw("1"),
		"fit": raises(sqltext.Postgres), "answer": sqltext.Raw("name, token"),
	})),
	floor: floored(sqltext.Postgres, "SELECT {floor}", nil),
	reached: floored(sqltext.Postgres, `SELECT CASE WHEN held.token < 0 THEN held.token ELSE GREATEST(held.token, base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN {ledger} AS held ON held.name = $1::text`, nil),
	// It writes also when the stored token is higher: that is how one statement
	// can return it.
	adopt: adopting(render(sqltext.Postgres, `INSERT INTO {ledger} (name, token)
SELECT $1::text, $2::bigint FROM (SELECT {turn $1::text}, {durable} OFFSET 0) AS turn
ON CONFLICT (name) DO UPDATE SET token = GREATEST({ledger}.token, excluded.token)
RETURNING token`)),
	current: render(sqltext.Postgres, `SELECT token FROM {ledger} WHERE name = $1::text`),
	ensure: ensuring(render(sqltext.Postgres, `INSERT INTO {ledger} (name, token)
SELECT n, 0 FROM json_array_elements_text($1::text::json) AS names(n)
ON CONFLICT (name) DO NOTHING`)),

	columns: render(sqltext.Postgres, `SELECT attname, format_type(atttypid, NULL), attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass('{ledger}') AND attnum > 0 AND NOT attisdropped`),
	wants:  wantsInteger,
	narrow: "integer",
	// EXPLAIN plans without running: columns, types, the unique index that ON
	// CONFLICT needs, and the privileges are looked up for it.
	probe: floored(sqltext.Postgres, "EXPLAIN "+issuePostgres, onePostgres("'books'", "1")),

	keeping: keeping{whole: sqltext.CreateLedgerFunction, installed: sqltext.FindLedgerFunction},

	level: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
	begin: []string{
		render(sqltext.Postgres, "SELECT {durable}"),
		// Rows that the role can't see would keep their marks.
		"SELECT pg_catalog.set_config('row_security', 'off', true)",
	},
	lock:     []string{lockPostgres(sqltext.LedgerTable)},
	turn:     []string{render(sqltext.Postgres, "SELECT {turn $1::text}")},
	lockRows: lockPostgres,
	start: floored(sqltext.Postgres, `INSERT INTO {ledger} (name, token)
VALUES ('', GREATEST($1::bigint - ({floor} - {start}), 0))
ON CONFLICT (name) DO UPDATE SET token = GREATEST({ledger}.token, excluded.token)`, nil),
	below: render(sqltext.Postgres, `SELECT name, COALESCE(token, 0) FROM {ledger} WHERE COALESCE(token, 0) < $1::bigint AND name <> '' ORDER BY name`),
	raise: render(sqltext.Postgres, `UPDATE {ledger} SET token = $1::bigint WHERE COALESCE(token, 0) < $1::bigint AND name <> ''`),
	retire: retiring(render(sqltext.Postgres, `UPDATE {ledger} SET token = $2::bigint
WHERE name = $1::text OR starts_with(name, $1::text || '/')`)),
}

// onePostgres has issuePostgres take as many tokens of one name as are left, or none.
func onePostgres(name, count string) sqltext.Pieces {
	return sqltext.Pieces{"asked": sqltext.Raw("SELECT " + name + " AS name"), "count": sqltext.Raw(count), "fit": fits, "answer": sqltext.Raw("token")}
}

// issuePostgres takes {count} tokens of each name of {asked}, in that order.
//
// The guard of the ledger takes its turn too, shared. Turns are granted in the order of the
// requests, so writers with transactions that overlap can't hold off the next token for ever, as
// they could by sharing the row.
const issuePostgres = `INSERT INTO {ledger} (name, token)
SELECT turn.name, turn.floor + {count}
FROM (SELECT asked.name, {turn asked.name}, {durable}, {floor} AS floor FROM ({asked}) AS asked OFFSET 0) AS turn
WHERE {fit turn.floor <= {max} - {count}} AND {seen turn.name}
ON CONFLICT (name) DO UPDATE SET token = GREATEST(COALESCE({ledger}.token, 0) + {count}, excluded.token)
WHERE {fit COALESCE({ledger}.token, 0) BETWEEN 0 AND {max} - {count}}
RETURNING {answer}`

func lockPostgres(table string) string { return "LOCK TABLE " + table + " IN SHARE ROW EXCLUSIVE MODE" }
