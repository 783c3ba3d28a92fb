package tokens

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/own"
)

const table = "fencing_tokens"

// create is what doc.go shows.
const create = `CREATE TABLE IF NOT EXISTS fencing_tokens (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// statements are the texts that the methods send. Each of the first four is
// atomic in itself.
type statements struct {
	issue   string // name, count: the last token; no row if the count doesn't fit under the limit
	adopt   string // name, token: the higher of the token and the stored one
	current string // name: the stored token
	ensure  string // JSON array of names: nothing

	columns string // the table's columns: name, type, whether an INSERT must give a value; none without the table
	probe   string // fails if issue would, and changes nothing
}

// statementsFor returns the statements in a dialect. The arguments stand in the
// text in their order and once each, because drivers differ in how they count
// them; PostgreSQL's are cast, because it takes an untyped one for text.
func statementsFor(d sqlfence.Dialect) statements {
	issue := fmt.Sprintf(`INSERT INTO fencing_tokens (name, token) {row}
ON CONFLICT (name) DO UPDATE SET token = COALESCE(fencing_tokens.token, 0) + excluded.token
WHERE COALESCE(fencing_tokens.token, 0) BETWEEN 0 AND %d - excluded.token
RETURNING token`, int64(sqlfence.MaxToken))

	s := statements{
		issue: issue,
		// It writes also when the stored token is higher: that is how one
		// statement can tell it.
		adopt: `INSERT INTO fencing_tokens (name, token) {row}
ON CONFLICT (name) DO UPDATE SET token = CASE
	WHEN fencing_tokens.token > excluded.token THEN fencing_tokens.token
	ELSE excluded.token END
RETURNING token`,
		current: `SELECT token FROM fencing_tokens WHERE name = {name}`,
	}
	row := "VALUES ({name}, {token})"
	var arguments *strings.Replacer
	if d == sqlfence.Postgres {
		// The guard of the ledger takes this lock too, shared. It is granted in the
		// order of the requests, so writers whose transactions overlap can't hold
		// off the next token for ever, as they could by sharing the row.
		row = `SELECT {name}, {token} FROM (SELECT pg_advisory_xact_lock(hashtextextended('sqlfence:' || {name}, 0)) OFFSET 0) AS turn`
		arguments = strings.NewReplacer("{name}", "$1::text", "{token}", "$2::bigint")
		s.ensure = `INSERT INTO fencing_tokens (name, token)
SELECT n, 0 FROM json_array_elements_text($1::text::json) AS names(n)
ON CONFLICT (name) DO NOTHING`
		s.columns = `SELECT attname, format_type(atttypid, NULL), attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass('fencing_tokens') AND attnum > 0 AND NOT attisdropped`
	} else {
		arguments = strings.NewReplacer("{name}", "?", "{token}", "?")
		// WHERE true: without it ON would be read as a join's.
		s.ensure = `INSERT INTO fencing_tokens (name, token)
SELECT value, 0 FROM json_each(?) WHERE true
ON CONFLICT (name) DO NOTHING`
		// An INTEGER PRIMARY KEY gets its value from SQLite.
		s.columns = `SELECT lower(name), lower(type), "notnull" AND dflt_value IS NULL AND NOT (pk > 0 AND lower(type) = 'integer')
FROM pragma_table_info('fencing_tokens')`
	}
	s.issue = strings.Replace(s.issue, "{row}", row, 1)
	s.adopt = strings.Replace(s.adopt, "{row}", row, 1)
	// EXPLAIN plans without running: columns, types, the unique index that
	// ON CONFLICT needs, and the privileges are looked up for it.
	s.probe = `EXPLAIN ` + strings.NewReplacer("{name}", "'books'", "{token}", "1").Replace(s.issue)
	s.issue = arguments.Replace(s.issue)
	s.adopt = arguments.Replace(s.adopt)
	s.current = arguments.Replace(s.current)
	return s
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
	rows, err := s.db.QueryContext(own.Context(ctx), query, args...)
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
		_, err := s.db.ExecContext(own.Context(ctx), query, args...)
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
