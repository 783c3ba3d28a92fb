package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A write is a statement on the books.
type write struct {
	name, query string
	args        []any
}

// rowWrites are the kinds of write that reach the book 1.
var rowWrites = []write{
	{"update", "UPDATE books SET price = $1 WHERE id = $2", []any{30, 1}},
	{"delete", "DELETE FROM books WHERE id = $1", []any{1}},
	{"upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{1, "i1", 30}},
}

// freshInserts add books.
var freshInserts = []write{
	{"insert", "INSERT INTO books (id, isbn) VALUES ($1, $2)", []any{7, "i7"}},
	{"insert of several", "INSERT INTO books (id, isbn) VALUES ($1, $2), ($3, $4)", []any{7, "i7", 8, "i8"}},
	{"insert from a query", "INSERT INTO books (id, isbn) SELECT id + 6, 'i' || (id + 6) FROM books WHERE id = $1", []any{1}},
}

// literal is the write with its arguments in the text.
func (w write) literal() string {
	next := 0
	return placeholder.ReplaceAllStringFunc(w.query, func(string) string {
		next++
		if text, ok := w.args[next-1].(string); ok {
			return "'" + text + "'"
		}
		return fmt.Sprint(w.args[next-1])
	})
}

var placeholder = regexp.MustCompile(`\$[0-9]+|\?`)

// as writes the placeholders as is usual in a dialect. They stand in the order
// of the arguments, so $1 serves in SQLite as well; but it is a name there, and a
// statement with names is guarded by constants in its text.
func (w write) as(d sqlfence.Dialect) write {
	if d == sqlfence.SQLite {
		w.query = placeholder.ReplaceAllString(w.query, "?")
	}
	return w
}

// A runner is a *sql.DB, a *sql.Conn or a *sql.Tx.
type runner interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}

// A form is a way to send a write; run returns how many rows were written.
type form struct {
	name string
	run  func(ctx context.Context, r runner, w write) (int64, error)
}

var forms = []form{
	{"exec", func(ctx context.Context, r runner, w write) (int64, error) {
		return affected(r.ExecContext(ctx, w.query, w.args...))
	}},
	{"exec without arguments", func(ctx context.Context, r runner, w write) (int64, error) {
		return affected(r.ExecContext(ctx, w.literal()))
	}},
	{"prepared exec", func(ctx context.Context, r runner, w write) (int64, error) {
		return prepared(ctx, r, w.query, func(s *sql.Stmt) (int64, error) { return affected(s.ExecContext(ctx, w.args...)) })
	}},
	{"prepared exec without arguments", func(ctx context.Context, r runner, w write) (int64, error) {
		return prepared(ctx, r, w.literal(), func(s *sql.Stmt) (int64, error) { return affected(s.ExecContext(ctx)) })
	}},
	{"query", func(ctx context.Context, r runner, w write) (int64, error) {
		return returned(r.QueryContext(ctx, w.query+" RETURNING books.id", w.args...))
	}},
	{"query without arguments", func(ctx context.Context, r runner, w write) (int64, error) {
		return returned(r.QueryContext(ctx, w.literal()+" RETURNING books.id"))
	}},
	{"query row", func(ctx context.Context, r runner, w write) (int64, error) {
		return scanned(r.QueryRowContext(ctx, w.query+" RETURNING books.id", w.args...))
	}},
	{"prepared query", func(ctx context.Context, r runner, w write) (int64, error) {
		return prepared(ctx, r, w.query+" RETURNING books.id", func(s *sql.Stmt) (int64, error) { return returned(s.QueryContext(ctx, w.args...)) })
	}},
	{"prepared query row", func(ctx context.Context, r runner, w write) (int64, error) {
		return prepared(ctx, r, w.query+" RETURNING books.id", func(s *sql.Stmt) (int64, error) { return scanned(s.QueryRowContext(ctx, w.args...)) })
	}},
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func returned(rows *sql.Rows, err error) (n int64, _ error) {
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

func prepared(ctx context.Context, r runner, query string, run func(*sql.Stmt) (int64, error)) (int64, error) {
	stmt, err := r.PrepareContext(ctx, query)
	if err != nil {
		return 0, err
	}
	n, err := run(stmt)
	return n, errors.Join(err, stmt.Close())
}

// eachForm runs test for every form, by itself and in a transaction. test sends
// its write through send, which ends the transaction: it commits, unless the
// write was refused.
func (s *shop) eachForm(t *testing.T, test func(t *testing.T, send func(context.Context, write) (int64, error))) {
	t.Helper()
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			test(t, func(ctx context.Context, w write) (int64, error) { return f.run(ctx, s.db, w.as(s.dialect)) })
		})
		t.Run(f.name+" in a transaction", func(t *testing.T) {
			test(t, func(ctx context.Context, w write) (n int64, err error) {
				err = s.inTx(ctx, func(tx *sql.Tx) error {
					n, err = f.run(ctx, tx, w.as(s.dialect))
					return err
				})
				return n, err
			})
		})
	}
}

// inTx runs do in a fenced transaction at the setting's level, which it commits
// unless do returns an error.
func (s *shop) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
