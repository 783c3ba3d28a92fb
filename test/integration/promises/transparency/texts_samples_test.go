package transparency_test

import (
	"strings"

	"github.com/sqlfence/sqlfence"
)

// A sent is a statement with the texts that are sent for it: with the guard's values as arguments, and, for a statement
// without arguments, also with the values in the text.
type sent struct {
	query             string
	args              []any
	argument, literal string
}

// The guards' texts. v is the token's value as the text has it, a placeholder or 7; n is its name.

func postgresRaise(kind, detail string) string {
	return `pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat('sqlfence:nonce:` + kind + `:0:', ` + detail + `)))`
}

func postgresMark(v string) string {
	return `, ("fence_token") = ROW(CASE WHEN pg_catalog.int8le(pg_catalog.int8abs(GREATEST(COALESCE("books"."fence_token", 0), -9223372036854775807)), ` + v + `) THEN ` + v +
		` ELSE ` + postgresRaise("stale", `"books"."fence_token"`) + ` END)`
}

func postgresCheck(v string) string {
	return `CASE WHEN pg_catalog.int8le(pg_catalog.int8abs(GREATEST(COALESCE("books"."fence_token", 0), -9223372036854775807)), ` + v +
		`) THEN true ELSE ` + postgresRaise("stale", `"books"."fence_token"`) + ` IS NOT NULL END`
}

func postgresLedger(n, v string) string {
	typed := func(value, typ string) string {
		if strings.Contains(value, "::") {
			return value
		}
		return value + "::" + typ
	}
	return `WITH sqlfence_0 AS (UPDATE fencing_tokens SET token = token OPERATOR(pg_catalog./) ` +
		`CASE WHEN sqlfence_turns_v1() THEN 0 ELSE 0 END WHERE name OPERATOR(pg_catalog.=) ` + n +
		` AND NOT COALESCE((SELECT sqlfence_newest_v2(` + typed(n, "pg_catalog.text") + `, ` + typed(v, "bigint") + `, 0, 'nonce'::pg_catalog.text, 'fencing_tokens'::pg_catalog.regclass)), false)) `
}

func sqliteMark(v string) string {
	return ", `fence_token` = CASE WHEN abs(max(COALESCE(CAST(`books`.`fence_token` AS INTEGER), 0), -9223372036854775807)) <= " + v + " THEN " + v +
		" ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence_token`) END"
}

func sqliteCheck(v string) string {
	return "CASE WHEN abs(max(COALESCE(CAST(`books`.`fence_token` AS INTEGER), 0), -9223372036854775807)) <= " + v +
		" THEN 1 ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence_token`) IS NOT NULL END"
}

func sqliteLedger(v, n string) string {
	const newest = "max(COALESCE(CAST(fencing_tokens.token AS INTEGER), 0))"
	return "(SELECT CASE WHEN " + newest + " = " + v +
		" THEN 1 WHEN count(*) = 0 THEN json_extract('{}', 'sqlfence:nonce:unknown:0:' || count(*)) IS NOT NULL" +
		" ELSE json_extract('{}', 'sqlfence:nonce:ledger:0:' || " + newest + ") IS NOT NULL END" +
		" FROM fencing_tokens WHERE fencing_tokens.name = " + n + ")"
}

var texts = map[sqlfence.Dialect]map[string][]sent{
	sqlfence.Postgres: {"row fence": postgresRowFence, "ledger": postgresLedgers()},
	sqlfence.SQLite:   {"row fence": sqliteRowFence, "ledger": sqliteLedgers},
}

var postgresRowFence = []sent{
	{"UPDATE books SET price = $1 WHERE id = $2", []any{30, 1},
		"UPDATE books SET price = $1" + postgresMark("$3::bigint") + " WHERE id = $2", ""},
	{"UPDATE books SET price = 30 RETURNING id", nil,
		"UPDATE books SET price = 30" + postgresMark("$1::bigint") + " RETURNING id",
		"UPDATE books SET price = 30" + postgresMark("7") + " RETURNING id"},
	{"DELETE FROM books WHERE id = $1", []any{1},
		"DELETE FROM books WHERE CASE WHEN (id = $1) THEN " + postgresCheck("$2::bigint") + " ELSE false END AND (id = $1)", ""},
	{"DELETE FROM books", nil,
		"DELETE FROM books WHERE " + postgresCheck("$1::bigint"), "DELETE FROM books WHERE " + postgresCheck("7")},
	{"INSERT INTO books (id, price) VALUES ($1, $2)", []any{7, 70},
		`INSERT INTO books (id, price, "fence_token") VALUES ($1, $2, $3::bigint)`, ""},
	{"INSERT INTO books (id) VALUES (7), (8)", nil,
		`INSERT INTO books (id, "fence_token") VALUES (7, $1::bigint), (8, $1::bigint)`,
		`INSERT INTO books (id, "fence_token") VALUES (7, 7), (8, 7)`},
	{"INSERT INTO books DEFAULT VALUES", nil,
		`INSERT INTO books ("fence_token") /*DEFAULT*/ VALUES ($1::bigint)`,
		`INSERT INTO books ("fence_token") /*DEFAULT*/ VALUES (7)`},
	{"INSERT INTO books (id, price) SELECT id, price FROM pens WHERE id > $1", []any{3},
		`INSERT INTO books (id, price, "fence_token") SELECT id, price, $2::bigint FROM pens WHERE id > $1`, ""},
	{"INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{7, 70},
		`INSERT INTO books (id, price, "fence_token") VALUES ($1, $2, $3::bigint)` +
			` ON CONFLICT (id) DO UPDATE SET price = excluded.price` + postgresMark("$3::bigint"), ""},
}

// postgresNewer is the guard's subquery on the ledger, which is evaluated before the statement's first row.
func postgresNewer(n, v string) string {
	return `(SELECT ` + postgresRaise("ledger", "fencing_tokens.token") + ` FROM fencing_tokens WHERE fencing_tokens.name OPERATOR(pg_catalog.=) ` +
		n + ` AND NOT pg_catalog.int8le(fencing_tokens.token, ` + v + `))`
}

// postgresLedgers are the statements of postgresRowFence under Ledger: the ledger's guard is a prefix that is the same
// in all of them. Where the statement may read the ledger before its first row, it has the subquery of postgresNewer,
// too.
func postgresLedgers() []sent {
	numbers := []string{"$1", "$2", "$3", "$4"}
	var all []sent
	for i, s := range postgresRowFence {
		n := len(s.args)
		guarded := func(name, value string) string {
			return postgresLedger(name, value) + strings.ReplaceAll(postgresAsking[i], "<newer>", postgresNewer(name, value))
		}
		s.argument = guarded(numbers[n]+"::pg_catalog.text", numbers[n+1]+"::bigint")
		s.literal = guarded("'books'", "7")
		all = append(all, s)
	}
	return all
}

var postgresAsking = []string{
	"UPDATE books SET price = $1 WHERE <newer> IS NULL AND (id = $2)",
	"UPDATE books SET price = 30 WHERE <newer> IS NULL RETURNING id",
	"DELETE FROM books WHERE <newer> IS NULL AND (id = $1)",
	"DELETE FROM books WHERE <newer> IS NULL",
	"INSERT INTO books (id, price) /*VALUES*/ SELECT /*(*/$1, $2/*)*/ WHERE <newer> IS NULL",
	"INSERT INTO books (id) VALUES (CASE WHEN <newer> IS NULL THEN 7 END), (8)",
	"INSERT INTO books DEFAULT VALUES",
	"INSERT INTO books (id, price) SELECT id, price FROM pens WHERE id > $1 OFFSET (<newer>)",
	"INSERT INTO books (id, price) /*VALUES*/ SELECT /*(*/$1, $2/*)*/ WHERE <newer> IS NULL ON CONFLICT (id) DO UPDATE SET price = excluded.price",
}

var sqliteRowFence = []sent{
	{"UPDATE books SET price = ? WHERE id = ?", []any{30, 1},
		"UPDATE OR ABORT books SET price = ?" + sqliteMark("?2") + " WHERE id = ?", ""},
	{"UPDATE books SET price = 30 RETURNING id", nil,
		"UPDATE OR ABORT books SET price = 30" + sqliteMark("?1") + " RETURNING id",
		"UPDATE OR ABORT books SET price = 30" + sqliteMark("7") + " RETURNING id"},
	{"DELETE FROM books WHERE id = ?", []any{1},
		"DELETE FROM books WHERE CASE WHEN (id = ?) THEN " + sqliteCheck("?2") + " ELSE 0 END AND (id = ?1)", ""},
	{"DELETE FROM books", nil,
		"DELETE FROM books WHERE " + sqliteCheck("?1"), "DELETE FROM books WHERE " + sqliteCheck("7")},
	{"INSERT INTO books (id, price) VALUES (?, ?)", []any{7, 70},
		"INSERT OR ABORT INTO books (id, price, `fence_token`) VALUES (?, ?, ?3)", ""},
	{"INSERT INTO books (id) VALUES (7), (8)", nil,
		"INSERT OR ABORT INTO books (id, `fence_token`) VALUES (7, ?1), (8, ?1)",
		"INSERT OR ABORT INTO books (id, `fence_token`) VALUES (7, 7), (8, 7)"},
	{"INSERT INTO books DEFAULT VALUES", nil,
		"INSERT OR ABORT INTO books (`fence_token`) /*DEFAULT*/ VALUES (?1)",
		"INSERT OR ABORT INTO books (`fence_token`) /*DEFAULT*/ VALUES (7)"},
	{"INSERT INTO books (id, price) SELECT id, price FROM pens WHERE id > ?", []any{3},
		"INSERT OR ABORT INTO books (id, price, `fence_token`) SELECT id, price, ?1 FROM pens WHERE id > ?", ""},
	{"INSERT INTO books (id, price) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{7, 70},
		"INSERT OR ABORT INTO books (id, price, `fence_token`) VALUES (?, ?, ?3)" +
			" ON CONFLICT (id) DO UPDATE SET price = excluded.price" + sqliteMark("?3"), ""},
}

var sqliteLedgers = []sent{
	{"UPDATE books SET price = ? WHERE id = ?", []any{30, 1},
		"UPDATE books SET price = ? WHERE " + sqliteLedger("?2", "?3") + " AND (id = CASE WHEN " + sqliteLedger("?2", "?3") + " THEN ? END)", ""},
	{"UPDATE books SET price = 30 RETURNING id", nil,
		"UPDATE books SET price = 30 WHERE " + sqliteLedger("?1", "?2") + " RETURNING id",
		"UPDATE books SET price = 30 WHERE " + sqliteLedger("7", "'books'") + " RETURNING id"},
	{"DELETE FROM books WHERE id = ?", []any{1},
		"DELETE FROM books WHERE " + sqliteLedger("?1", "?2") + " AND (id = CASE WHEN " + sqliteLedger("?1", "?2") + " THEN ? END)", ""},
	{"DELETE FROM books", nil,
		"DELETE FROM books WHERE " + sqliteLedger("?1", "?2"), "DELETE FROM books WHERE " + sqliteLedger("7", "'books'")},
	{"INSERT INTO books (id, price) VALUES (?, ?)", []any{7, 70},
		"INSERT INTO books (id, price) SELECT * FROM (VALUES (?, ?)) WHERE " + sqliteLedger("?3", "?4"), ""},
	{"INSERT INTO books (id) VALUES (7), (8)", nil,
		"INSERT INTO books (id) SELECT * FROM (VALUES (7), (8)) WHERE " + sqliteLedger("?1", "?2"),
		"INSERT INTO books (id) SELECT * FROM (VALUES (7), (8)) WHERE " + sqliteLedger("7", "'books'")},
	{"INSERT INTO books DEFAULT VALUES", nil,
		"INSERT INTO books (_rowid_) /*DEFAULT*/ SELECT * FROM (VALUES (NULL)) WHERE " + sqliteLedger("?1", "?2"),
		"INSERT INTO books (_rowid_) /*DEFAULT*/ SELECT * FROM (VALUES (NULL)) WHERE " + sqliteLedger("7", "'books'")},
	{"INSERT INTO books (id, price) SELECT id, price FROM pens WHERE id > ?", []any{3},
		"INSERT INTO books (id, price) SELECT * FROM (SELECT id, price FROM pens WHERE id > ?) WHERE " + sqliteLedger("?2", "?3") +
			" LIMIT CASE WHEN " + sqliteLedger("?2", "?3") + " THEN -1 END", ""},
	{"INSERT INTO books (id, price) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{7, 70},
		"INSERT INTO books (id, price) SELECT * FROM (VALUES (?, ?)) WHERE " + sqliteLedger("?3", "?4") +
			" ON CONFLICT (id) DO UPDATE SET price = excluded.price", ""},
}
