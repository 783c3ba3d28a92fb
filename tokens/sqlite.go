package tokens

import (
	"database/sql"
	"strconv"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sqlite is the dialect of SQLite. Its statements use each argument once, in order, because drivers number repeated
// placeholders in different ways. The dialect locks nothing: while a transaction that has written is open, no other
// client can write to the file.
var sqlite = sync.OnceValue(func() *dialect {
	return &dialect{
		Dialect: lite.Text,
		names:   sqlfence.SQLite,
		server:  lite.Session,

		issue: issuing(bounded(lite.Text, issueSQLite, oneSQLite("?", "?"))),
		shared: sharing(bounded(lite.Text, issueSQLite, sqltext.Fragments{
			"asked": sqltext.Raw("SELECT value ->> 'name' AS name, value ->> 'count' AS count FROM json_each(?)"),
			"fit":   fits, "answer": sqltext.Raw("name, true, token"),
		})),
		writers: 1, // a second statement would wait for the first by sleeping
		takes:   &sql.TxOptions{},
		each: issuingEach(bounded(lite.Text, issueSQLite, sqltext.Fragments{
			"asked": sqltext.Raw("SELECT value AS name, 1 AS count FROM json_each(?)"),
			"fit":   throws(lite.Text), "answer": sqltext.Raw("name, token"),
		})),
		reached: bounded(lite.Text,
			`SELECT CASE WHEN held.token < 0 THEN held.token ELSE max(COALESCE(held.token, 0), base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN {ledger} AS held ON held.name = ?`, nil),
		adopt: adopting(render(lite.Text, `INSERT INTO {ledger} (name, token)
SELECT new.name, new.token
FROM (SELECT ? AS name, ? AS token) AS new LEFT JOIN {ledger} AS held ON held.name = new.name
WHERE held.token > 0 OR new.token > {served}
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE({ledger}.token, 0), excluded.token)
RETURNING token`)),
		current: render(lite.Text, `SELECT token FROM {ledger} WHERE name = ?`),
		page:    pageSQLite,
		// WHERE true: without this condition SQLite would read ON as a join's.
		ensure: ensuring(render(lite.Text, `INSERT INTO {ledger} (name, token)
SELECT value, 0 FROM json_each(?) WHERE true
ON CONFLICT (name) DO NOTHING`)),

		// An INTEGER PRIMARY KEY gets its value from SQLite.
		columns: render(lite.Text,
			`SELECT lower(name), lower(type), "notnull" AND dflt_value IS NULL AND `+
				`NOT (pk > 0 AND lower(type) = 'integer')
FROM pragma_table_info('{ledger}')`),
		probe: bounded(lite.Text, "EXPLAIN "+issueSQLite, oneSQLite("'books'", "1")),

		keeping: keeping{
			find: render(lite.Text, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = "+
				"'{ledger}' COLLATE NOCASE"),
			findRowID: render(lite.Text, "SELECT rowid FROM {ledger} LIMIT 1"),
			noRowID:   "no such column",
		},

		holds: func(_ *facts.Capabilities, held []sqlfence.Token) ([]string, []any) {
			return []string{holdSQLite(Claim{sqltext.LedgerTable, "name", "token"}, len(held))}, holdArgs(held)
		},
		holdsClaim: func(_ *facts.Capabilities, c Claim, key any, _ string, claim int64) ([]string, []any) {
			return []string{holdSQLite(c, 1)}, []any{claim, key}
		},
		within: withinSQLite,

		start: bounded(lite.Text, serveSQLite, nil),
		below: render(lite.Text, `SELECT name, token FROM {ledger} WHERE token > 0 AND token < ? `+
			`AND name <> '' ORDER BY name`),
		advance: render(lite.Text, `UPDATE {ledger} SET token = new.floor FROM (SELECT ? AS floor) AS new
WHERE token > 0 AND token < new.floor AND name <> ''`),
		serve:   render(lite.Text, serveSQLite),
		unused:  `SELECT name, COALESCE(token, 0) FROM {ledger} WHERE name IN ({names})`,
		listed:  listing("SELECT value FROM json_each(?)"),
		retires: func(name string) (string, []any) { return render(lite.Text, retiresSQLite), []any{name, name} },
		retire: retiring(render(lite.Text,
			`UPDATE {ledger} SET token = old.retired FROM (SELECT ? AS prefix, ? AS retired) AS old
WHERE name = old.prefix OR substr(name, 1, length(old.prefix) + 1) = old.prefix || '/'`)),
	}
})

const retiresSQLite = `SELECT name, COALESCE(token, 0) FROM {ledger}
WHERE name = ? OR instr(name, ? || '/') = 1 ORDER BY name`

const pageSQLite = "name > ? AND instr(name, ?) = 1"

const serveSQLite = `INSERT INTO {ledger} (name, token) VALUES ('', ?)
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE({ledger}.token, 0), excluded.token)`

// oneSQLite makes issueSQLite issue count tokens of one name, or no token if fewer are left.
func oneSQLite(name, count string) sqltext.Fragments {
	asked := sqltext.Raw("SELECT " + name + " AS name, " + count + " AS count")
	return sqltext.Fragments{"asked": asked, "fit": fits, "answer": sqltext.Raw("token")}
}

// issueSQLite issues the requested tokens of each name of {asked}. It inserts the new token, although ON CONFLICT would
// replace any number: for an INSERT with a lower token than the stored one, a trigger copies the stored token to
// another table, which costs a write.
const issueSQLite = `INSERT INTO {ledger} (name, token)
SELECT new.name, max(COALESCE(held.token, 0), new.floor) + new.count
FROM (SELECT asked.name, asked.count, {floor} AS floor FROM ({asked}) AS asked) AS new ` +
	`LEFT JOIN {ledger} AS held ON held.name = new.name
WHERE {fit new.floor <= {max} - new.count AND COALESCE(held.token, 0) BETWEEN 0 AND {max} - new.count}
ON CONFLICT (name) DO UPDATE SET token = excluded.token
RETURNING {answer}`

// holdSQLite is the statement of [Store.Hold] and [Store.HoldClaim]. It inserts nothing, but a statement that may
// insert makes the transaction the file's writer before the statement reads. If the transaction's snapshot is older
// than the file's last commit, the error is SQLITE_BUSY. The arguments are the value and the key of each row.
func holdSQLite(c Claim, rows int) string {
	checks := make([]string, rows)
	value := "max(COALESCE(CAST(r." + c.Column + " AS INTEGER), 0))"
	for i := range checks {
		place := strconv.Itoa(i)
		checks[i] = "(SELECT CASE WHEN count(*) <> 1 THEN " + throwHeld(lite.Text, unknownName, place, "count(*)") +
			" IS NULL WHEN " + value + " <> ? THEN " + throwHeld(lite.Text, otherValue, place, value) +
			" IS NULL ELSE 0 END FROM " + c.Table + " AS r WHERE r." + c.Key + " = ?)"
	}
	return "INSERT INTO " + c.Table + " (" + c.Key + ") SELECT NULL WHERE " + strings.Join(checks, " OR ")
}

// withinSQLite sends a statement in the transaction of a Hold. The PRAGMA changes nothing, and fails in a transaction.
// If an authorizer denies the PRAGMA, as on dqlite, BEGIN fails in a transaction instead; outside of a transaction,
// ROLLBACK ends the transaction that BEGIN has begun.
func withinSQLite(_ *Store, send sender, _, text string, args []any) error {
	err := send("PRAGMA temp.synchronous = 2")
	if err != nil && strings.Contains(err.Error(), "not authorized") {
		err = send("BEGIN; ROLLBACK")
	}
	switch {
	case err == nil:
		return errOutside
	case !strings.Contains(err.Error(), "inside a transaction") &&
		!strings.Contains(err.Error(), "within a transaction"):
		return err
	}
	return send(text, args...)
}

func holdArgs(held []sqlfence.Token) (args []any) {
	for _, t := range held {
		args = append(args, t.Value, t.Name)
	}
	return args
}
