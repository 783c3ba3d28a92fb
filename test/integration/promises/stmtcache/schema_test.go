package stmtcache_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// After a change a kept statement has the same effects, errors and rows as without a cache. The test compares the same
// steps with and without a cache.

// A step is a statement on one of two connections: here has the statement cache, there is a bare connection.
type step struct {
	query string
	how   how
}

type how uint8

const (
	guarded how = iota // on books, here
	returns            // the same, by QueryContext
	here               // anything, under Bypass
	prepare            // the same, prepared
	there              // anything, by the bare driver
	raw                // anything, here, by Conn.Raw
)

var changes = map[string][]step{
	"column added":          {{"ALTER TABLE books ADD COLUMN extra text DEFAULT 'new'", there}},
	"column added here":     {{"ALTER TABLE books ADD COLUMN extra text DEFAULT 'new'", here}},
	"column added prepared": {{"ALTER TABLE books ADD COLUMN extra text DEFAULT 'new'", prepare}},
	"column added raw":      {{"ALTER TABLE books ADD COLUMN extra text DEFAULT 'new'", raw}},
	"column renamed":        {{"ALTER TABLE books RENAME COLUMN price TO cost", there}},
	"column renamed back": {
		{"ALTER TABLE books RENAME COLUMN price TO cost", there}, {"", guarded}, {"ALTER TABLE books RENAME COLUMN cost TO price", there},
	},
	"column dropped":       {{"ALTER TABLE books DROP COLUMN writer", there}},
	"fence column dropped": {{"ALTER TABLE books DROP COLUMN fence_token", there}},
	"ledger dropped":       {{"DROP TABLE fencing_tokens", there}},
	"table dropped":        {{"DROP TABLE books", there}},
	"table dropped here":   {{"DROP TABLE books", here}},
	"table made anew": {
		{"DROP TABLE books", there},
		{"CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint, writer text, price text)", there},
		{"INSERT INTO books VALUES (1, 0, 'w', 'p')", there},
	},
	"table made anew here": {
		{"DROP TABLE books", here},
		{"CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint, writer text, price text)", here},
		{"INSERT INTO books VALUES (1, 0, 'w', 'p')", here},
	},
	"table renamed": {
		{"ALTER TABLE books RENAME TO old", there},
		{"CREATE TABLE books (id integer PRIMARY KEY, price bigint, fence_token bigint, writer boolean)", there},
		{"INSERT INTO books VALUES (1, 5, 0, true)", there},
	},
	"index": {{"CREATE INDEX prices ON books (price)", here}, {"DROP INDEX prices", there}},
	"temporary table": {
		{"CREATE TEMP TABLE books (id integer PRIMARY KEY, price text, fence_token bigint, writer integer)", here},
		{"INSERT INTO books VALUES (1, 't', 0, 4)", here}, {"", guarded}, {"DROP TABLE books", here},
	},
	"temporary ledger": {
		{"CREATE TEMP TABLE fencing_tokens (name text PRIMARY KEY, token bigint)", here},
	},
	"analyzed": {{"ANALYZE", here}},
	"script":   {{"SELECT 1; ALTER TABLE books ADD COLUMN extra text DEFAULT 'new'", here}},
	"attached": {
		{"DROP TABLE books", there},
		{"ATTACH ':memory:' AS other", here},
		{"CREATE TABLE other.books (id integer PRIMARY KEY, price text, fence_token bigint, writer integer)", here},
		{"INSERT INTO other.books VALUES (1, 'other', 0, 0)", here},
		{"", guarded}, {"", guarded},
		{"CREATE TABLE main.books (id integer PRIMARY KEY, price text, fence_token bigint, writer integer)", here},
		{"INSERT INTO main.books VALUES (1, 'main', 0, 0)", here},
		{"", guarded}, {"", returns},
		{"SELECT group_concat(price) FROM other.books", returns},
		{"DETACH other", here},
	},
	"attached, made there": {
		{"DROP TABLE books", there},
		{"ATTACH ':memory:' AS other", here},
		{"CREATE TABLE other.books (id integer PRIMARY KEY, price text, fence_token bigint, writer integer)", here},
		{"INSERT INTO other.books VALUES (1, 'other', 0, 0)", here},
		{"", guarded}, {"", guarded},
		{"CREATE TABLE main.books (id integer PRIMARY KEY, price text, fence_token bigint, writer integer)", there},
		{"INSERT INTO main.books VALUES (1, 'main', 0, 0)", there},
		{"", guarded}, {"", returns},
	},
	"vacuum":       {{"VACUUM", here}, {"VACUUM", there}},
	"reindex":      {{"REINDEX", here}},
	"foreign keys": {{"PRAGMA foreign_keys = ON", here}, {"PRAGMA recursive_triggers = ON", here}},
	"view": {
		{"ALTER TABLE books RENAME TO stock", there},
		{"CREATE VIEW books AS SELECT * FROM stock", there},
	},
	"declared anew": {
		{"DROP TABLE books", there},
		{"CREATE TABLE books (id integer PRIMARY KEY, price boolean, fence_token bigint, writer timestamp, CHECK (price < 2))", there},
		{"INSERT INTO books VALUES (1, 1, 0, 1)", there},
	},
}

// writes are executed before and after the change.
var writes = []struct {
	query string
	args  []any
}{
	{"UPDATE books SET price = $1 WHERE id = $2", []any{31, 1}},
	{"UPDATE books SET price = $1 WHERE id = $2 RETURNING *", []any{32, 1}},
	{"UPDATE books SET price = 33 WHERE id = 1", nil},
	{"INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{1, 34}},
	{"UPDATE books SET price = $1 WHERE id = $2", []any{nil, 1}}, // fails
}

func TestSchemaChanges(t *testing.T) {
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		for name, steps := range changes {
			for _, tx := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/tx=%v", name, tx), func(t *testing.T) {
					want := takeSteps(t, b, 0, steps, rules, tx)
					got := takeSteps(t, b, 64, steps, rules, tx)
					if got != want {
						t.Errorf("with a cache:\n%s\nwithout:\n%s", got, want)
					}
				})
			}
		}
	})
}

// takeSteps runs the writes and the steps with a cache of this size, and returns a transcript of their results.
func takeSteps(t *testing.T, b harness.Base, size int, steps []step, rules []sqlfence.Rule, tx bool) string {
	s := harness.NewShop(t, b)
	s.Reset(t, 5)
	db := b.Fenced(t, s.Source, harness.Books(rules...), sqlfence.WithStatementCache(size))
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := &walker{Shop: s, conn: c, inTx: tx}
	w.write(t, guarded)
	w.write(t, guarded)
	w.seen.Reset()
	for _, step := range steps {
		w.take(t, step)
	}
	w.write(t, guarded)
	w.write(t, returns)
	w.show("left", harness.Describe(s.Plain.Query("SELECT * FROM books ORDER BY id")))
	return w.seen.String()
}

// A walker takes steps on a connection, and records their results.
type walker struct {
	*harness.Shop
	conn *sql.Conn
	inTx bool // the writes are in a transaction
	seen strings.Builder
}

func (w *walker) show(what string, v ...any) {
	fmt.Fprintln(&w.seen, append([]any{what}, v...)...)
}

func (w *walker) take(t *testing.T, step step) {
	t.Helper()
	bypass := sqlfence.Bypass(t.Context(), "migration")
	switch step.how {
	case guarded, returns:
		if step.query != "" {
			w.show(step.query, harness.Describe(w.conn.QueryContext(bypass, step.query)))
			return
		}
		w.write(t, step.how)
	case here:
		_, err := w.conn.ExecContext(bypass, step.query)
		w.show(step.query, err)
	case prepare:
		stmt, err := w.conn.PrepareContext(bypass, step.query)
		if err == nil {
			_, err = stmt.ExecContext(bypass)
			_ = stmt.Close()
		}
		w.show(step.query, err)
	case there:
		_, err := w.Plain.Exec(step.query)
		w.show(step.query, err)
	case raw:
		w.show(step.query, w.conn.Raw(func(dc any) error {
			_, err := sqlfence.BaseConn(dc).(driver.ExecerContext).ExecContext(t.Context(), step.query, nil)
			return err
		}))
	}
}

// write sends all writes.
func (w *walker) write(t *testing.T, how how) {
	t.Helper()
	if !w.inTx {
		w.writeBy(t, w.conn, how)
		return
	}
	tx, err := w.conn.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.writeBy(t, tx, how)
	w.show("commit", tx.Commit())
}

func (w *walker) writeBy(t *testing.T, r runner, how how) {
	ctx := harness.Holding(t, 5)
	for _, write := range writes {
		query := harness.Write{Query: write.query}.As(w.Dialect).Query
		if strings.Contains(query, "RETURNING") || how == returns {
			w.show(query, harness.Describe(r.QueryContext(ctx, query, write.args...)))
		}
		n, err := harness.Affected(r.ExecContext(ctx, query, write.args...))
		w.show(query, n, harness.ErrorText(err))
	}
}

type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
