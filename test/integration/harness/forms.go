package harness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A Write is a statement on the books.
type Write struct {
	Name, Query string
	Args        []any
}

// RowWrites are the kinds of write that reach the book 1.
var RowWrites = []Write{
	{"update", "UPDATE books SET price = $1 WHERE id = $2", []any{30, 1}},
	{"delete", "DELETE FROM books WHERE id = $1", []any{1}},
	{"upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{1, "i1", 30}},
}

// FreshInserts add books.
var FreshInserts = []Write{
	{"insert", "INSERT INTO books (id, isbn) VALUES ($1, $2)", []any{7, "i7"}},
	{"insert of several", "INSERT INTO books (id, isbn) VALUES ($1, $2), ($3, $4)", []any{7, "i7", 8, "i8"}},
	{"insert from a query", "INSERT INTO books (id, isbn) SELECT id + 6, concat('i', id + 6) FROM books WHERE id = $1", []any{1}},
}

// Literal is the write with its arguments in the text.
func (w Write) Literal() string {
	next := 0
	return placeholder.ReplaceAllStringFunc(w.Query, func(string) string {
		next++
		if text, ok := w.Args[next-1].(string); ok {
			return "'" + text + "'"
		}
		return fmt.Sprint(w.Args[next-1])
	})
}

var placeholder = regexp.MustCompile(`\$[0-9]+|\?`)

// As writes the placeholders as is usual in a dialect. They stand in the order
// of the arguments, so $1 serves in SQLite as well; but it is a name there, and a
// statement with names is guarded by constants in its text.
func (w Write) As(d sqlfence.Dialect) Write {
	if dialects[d].bare {
		w.Query = placeholder.ReplaceAllString(w.Query, "?")
	}
	return w
}

// A Runner is a *sql.DB, a *sql.Conn or a *sql.Tx.
type Runner interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}

// A Form is a way to send a write; run returns how many rows were written.
type Form struct {
	Name string
	Run  func(ctx context.Context, r Runner, w Write) (int64, error)
}

// Forms are the ways to send a write on a base: those that ask for the rows that it wrote
// only where each kind of write can return them.
func (b Base) Forms() []Form {
	if dialects[b.Dialect].returns {
		return Forms
	}
	return slices.DeleteFunc(slices.Clone(Forms), func(f Form) bool { return strings.Contains(f.Name, "query") })
}

// Forms are all ways to send a write and learn how many rows it wrote.
var Forms = []Form{
	{"exec", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Affected(r.ExecContext(ctx, w.Query, w.Args...))
	}},
	{"exec without arguments", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Affected(r.ExecContext(ctx, w.Literal()))
	}},
	{"prepared exec", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Prepared(ctx, r, w.Query, func(s *sql.Stmt) (int64, error) { return Affected(s.ExecContext(ctx, w.Args...)) })
	}},
	{"prepared exec without arguments", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Prepared(ctx, r, w.Literal(), func(s *sql.Stmt) (int64, error) { return Affected(s.ExecContext(ctx)) })
	}},
	{"query", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Returned(r.QueryContext(ctx, w.Query+" RETURNING books.id", w.Args...))
	}},
	{"query without arguments", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Returned(r.QueryContext(ctx, w.Literal()+" RETURNING books.id"))
	}},
	{"query row", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return scanned(r.QueryRowContext(ctx, w.Query+" RETURNING books.id", w.Args...))
	}},
	{"prepared query", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Prepared(ctx, r, w.Query+" RETURNING books.id", func(s *sql.Stmt) (int64, error) { return Returned(s.QueryContext(ctx, w.Args...)) })
	}},
	{"prepared query row", func(ctx context.Context, r Runner, w Write) (int64, error) {
		return Prepared(ctx, r, w.Query+" RETURNING books.id", func(s *sql.Stmt) (int64, error) { return scanned(s.QueryRowContext(ctx, w.Args...)) })
	}},
}

// Affected returns the number of rows that a result counts.
func Affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Returned reads all rows, and returns their number.
func Returned(rows *sql.Rows, err error) (n int64, _ error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, errors.Join(rows.Err(), rows.Close())
}

// scanned takes no row for none written. It can't see more than one.
func scanned(row *sql.Row) (int64, error) {
	var id int64
	switch err := row.Scan(&id); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return 1, nil
}

// A lateClose is the error of a statement that pgx couldn't close: pgx waits 5 s for the response, and then closes the
// connection. Only the connection's open transaction is lost.
type lateClose struct{ error }

func (e lateClose) Unwrap() error { return e.error }

// CloseStmt closes a statement of a pool, which doesn't need the connection that pgx may close.
func CloseStmt(stmt *sql.Stmt) error {
	if err := stmt.Close(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Prepared prepares the statement for run, and closes it.
func Prepared(ctx context.Context, r Runner, query string, run func(*sql.Stmt) (int64, error)) (int64, error) {
	stmt, err := r.PrepareContext(ctx, query)
	if err != nil {
		return 0, err
	}
	n, err := run(stmt)
	if _, pool := r.(*sql.DB); pool {
		return n, errors.Join(err, CloseStmt(stmt))
	}
	closed := stmt.Close()
	if errors.Is(closed, context.DeadlineExceeded) {
		closed = lateClose{closed}
	}
	return n, errors.Join(err, closed)
}

// EachForm runs test for every form, by itself and in a transaction. test sends
// its write through send, which ends the transaction: it commits, unless the
// write was refused. A short run has each form once, by itself or in a transaction: which of them differs by test.
func (s *Shop) EachForm(t *testing.T, test func(t *testing.T, send func(context.Context, Write) (int64, error))) {
	t.Helper()
	for i, f := range s.Forms() {
		alone := (i+len(t.Name()))%2 == 0
		run := func(name string, test func(t *testing.T)) {
			t.Helper()
			if !testing.Short() || alone == (name == f.Name) {
				t.Run(name, test)
			}
		}
		run(f.Name, func(t *testing.T) {
			test(t, func(ctx context.Context, w Write) (int64, error) { return f.Run(ctx, s.DB, w.As(s.Dialect)) })
		})
		run(f.Name+" in a transaction", func(t *testing.T) {
			test(t, func(ctx context.Context, w Write) (n int64, err error) {
				err = s.InTx(ctx, func(tx *sql.Tx) error {
					n, err = f.Run(ctx, tx, w.As(s.Dialect))
					return err
				})
				return n, err
			})
		})
	}
}

// InTx runs do in a fenced transaction at the setting's level, which it commits
// unless do returns an error. A transaction that pgx has lost in a pause is begun anew.
func (s *Shop) InTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	for {
		err := s.inTx(ctx, do)
		if late := (lateClose{}); !errors.As(err, &late) {
			return err
		}
	}
}

func (s *Shop) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := s.DB.BeginTx(ctx, &sql.TxOptions{Isolation: s.Level})
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
