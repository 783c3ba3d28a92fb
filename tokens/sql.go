package tokens

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

const table = "fencing_tokens"

// create is what doc.go shows.
const create = `CREATE TABLE IF NOT EXISTS fencing_tokens (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// statements are the texts that the methods send. Each is atomic in itself.
type statements struct {
	issue   sqltext.Floored // name, count: the last token; no row if the count doesn't fit under the limit
	floor   sqltext.Floored // the number that all tokens to come are above
	stands  sqltext.Floored // name: where its tokens have got to, never a NULL
	adopt   string          // name, token: the higher of the token and the stored one
	current string          // name: the stored token
	ensure  string          // JSON array of names: nothing

	// Of transactions.
	begin  []string        // after BEGIN
	lock   string          // keeps others from raising tokens; empty where nobody else can write
	start  sqltext.Floored // floor: where the names start that have no token yet
	raise  string          // floor: the names that have one
	turn   string          // name: waits for those who write under its guard; empty likewise
	retire string          // name, token: of it and of its rows' names

	columns string          // the table's columns: name, type, whether an INSERT must give a value; none without the table
	probe   sqltext.Floored // fails if issue would, and changes nothing
}

// statementsFor returns the statements in a dialect. In SQLite's the arguments stand
// in their order and once each, because drivers differ in how they count them;
// PostgreSQL's are cast, because it takes an untyped one for text.
func statementsFor(d sqlfence.Dialect) statements {
	limit := strconv.FormatInt(sqlfence.MaxToken, 10)
	if d == sqlfence.Postgres {
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
		arguments := strings.NewReplacer("{turn}", sqltext.Turn("$1::text"), "{seen}", sqltext.Seen("$1::text"), "{name}", "$1::text", "{count}", "$2::bigint", "{max}", limit)
		constants := strings.NewReplacer("{turn}", sqltext.Turn("'books'"), "{seen}", sqltext.Seen("'books'"), "{name}", "'books'", "{count}", "1", "{max}", limit)
		return statements{
			issue: sqltext.NewFloored(arguments.Replace(issue), true),
			floor: sqltext.NewFloored("SELECT {floor}", true),
			stands: sqltext.NewFloored(`SELECT CASE WHEN held.token < 0 THEN held.token ELSE GREATEST(held.token, base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN fencing_tokens AS held ON held.name = $1::text`, true),
			// It writes also when the stored token is higher: that is how one
			// statement can tell it.
			adopt: `INSERT INTO fencing_tokens (name, token)
SELECT $1::text, $2::bigint FROM (SELECT ` + sqltext.Turn("$1::text") + `, ` + sqltext.Durable + ` OFFSET 0) AS turn
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
			start: sqltext.NewFloored(`INSERT INTO fencing_tokens (name, token)
VALUES ('', GREATEST($1::bigint - ({floor} - `+sqltext.Start+`), 0))
ON CONFLICT (name) DO UPDATE SET token = GREATEST(fencing_tokens.token, excluded.token)`, true),
			raise: `UPDATE fencing_tokens SET token = $1::bigint WHERE COALESCE(token, 0) < $1::bigint AND name <> ''`,
			turn:  "SELECT " + sqltext.Turn("$1::text"),
			retire: `UPDATE fencing_tokens SET token = $2::bigint
WHERE name = $1::text OR starts_with(name, $1::text || '/')`,
			columns: `SELECT attname, format_type(atttypid, NULL), attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass('fencing_tokens') AND attnum > 0 AND NOT attisdropped`,
			// EXPLAIN plans without running: columns, types, the unique index that
			// ON CONFLICT needs, and the privileges are looked up for it.
			probe: sqltext.NewFloored("EXPLAIN "+constants.Replace(issue), true),
		}
	}
	// The count is what the token that didn't fit is above the floor.
	issue := strings.NewReplacer("{given}", "(excluded.token - {floor})", "{max}", limit).Replace(`INSERT INTO fencing_tokens (name, token)
SELECT new.name, new.floor + new.count FROM (SELECT {name} AS name, {count} AS count, {floor} AS floor) AS new
WHERE new.floor <= {max} - new.count
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE(fencing_tokens.token, 0) + {given}, excluded.token)
WHERE COALESCE(fencing_tokens.token, 0) BETWEEN 0 AND {max} - {given}
RETURNING token`)
	return statements{
		issue: sqltext.NewFloored(strings.NewReplacer("{name}", "?", "{count}", "?").Replace(issue), false),
		stands: sqltext.NewFloored(`SELECT CASE WHEN held.token < 0 THEN held.token ELSE max(COALESCE(held.token, 0), base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN fencing_tokens AS held ON held.name = ?`, false),
		adopt: `INSERT INTO fencing_tokens (name, token) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE(fencing_tokens.token, 0), excluded.token)
RETURNING token`,
		current: `SELECT token FROM fencing_tokens WHERE name = ?`,
		// WHERE true: without it ON would be read as a join's.
		ensure: `INSERT INTO fencing_tokens (name, token)
SELECT value, 0 FROM json_each(?) WHERE true
ON CONFLICT (name) DO NOTHING`,
		start: sqltext.NewFloored(`INSERT INTO fencing_tokens (name, token) VALUES ('', ?)
ON CONFLICT (name) DO UPDATE SET token = max(COALESCE(fencing_tokens.token, 0), excluded.token)`, false),
		raise: `UPDATE fencing_tokens SET token = new.floor FROM (SELECT ? AS floor) AS new
WHERE COALESCE(token, 0) < new.floor AND name <> ''`,
		retire: `UPDATE fencing_tokens SET token = old.retired FROM (SELECT ? AS prefix, ? AS retired) AS old
WHERE name = old.prefix OR substr(name, 1, length(old.prefix) + 1) = old.prefix || '/'`,
		// An INTEGER PRIMARY KEY gets its value from SQLite.
		columns: `SELECT lower(name), lower(type), "notnull" AND dflt_value IS NULL AND NOT (pk > 0 AND lower(type) = 'integer')
FROM pragma_table_info('fencing_tokens')`,
		probe: sqltext.NewFloored("EXPLAIN "+strings.NewReplacer("{name}", "'books'", "{count}", "1").Replace(issue), false),
	}
}

// sendFloored sends a statement that holds the floor of the tokens.
func (s *Store) sendFloored(ctx context.Context, f sqltext.Floored, send func(text string) error) error {
	found, err := s.timelines.Send(f, send, func(text string) error { return s.exec(ctx, text) })
	if found {
		s.log().Warn("tokens: " + sqltext.Untold)
	}
	return err
}

// queryFloored is query for a statement that holds the floor of the tokens.
func (s *Store) queryFloored(ctx context.Context, f sqltext.Floored, args ...any) (value int64, err error) {
	err = s.sendFloored(ctx, f, func(text string) (err error) {
		value, err = s.query(ctx, text, args...)
		return err
	})
	return value, err
}

// query runs a statement and returns the first value of its first row, 0 for
// NULL, or sql.ErrNoRows.
func (s *Store) query(ctx context.Context, query string, args ...any) (value int64, err error) {
	err = retry(func() error {
		value, err = s.queryOnce(ctx, query, args...)
		return err
	})
	return value, err
}

func (s *Store) queryOnce(ctx context.Context, query string, args ...any) (int64, error) {
	rows, err := s.db.QueryContext(own.Context(ctx, query), query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	found := rows.Next()
	var value sql.NullInt64
	if found {
		if err := rows.Scan(&value); err != nil {
			return 0, err
		}
	}
	// To the very end: a database may answer with the row first and then fail
	// to commit. QueryRow would leave it to the driver's Close to tell.
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, sql.ErrNoRows
	}
	return value.Int64, nil
}

// exec runs a statement that gives no rows.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return retry(func() error {
		_, err := s.db.ExecContext(own.Context(ctx, query), query, args...)
		return err
	})
}

// retry sends a statement again that met a serialization failure: it has changed
// nothing, and someone else got on. Once the context ends the error is another.
func retry(send func() error) error {
	for {
		if err := send(); dberr.SQLState(err) != dberr.SerializationFailure {
			return err
		}
	}
}
