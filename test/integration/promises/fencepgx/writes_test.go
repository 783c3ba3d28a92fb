package fencepgx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A querier has the methods of sqlc's DBTX, and more.
type querier interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error)
}

// A way is a method to execute a statement that returns a book's number.
type way struct {
	name string
	run  func(ctx context.Context, q querier, text string, args ...any) error
}

var ways = []way{
	{"exec", func(ctx context.Context, q querier, text string, args ...any) error {
		tag, err := q.Exec(ctx, text, args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("%d rows", tag.RowsAffected())
		}
		return err
	}},
	{"row", func(ctx context.Context, q querier, text string, args ...any) error {
		var id int
		return q.QueryRow(ctx, text, args...).Scan(&id)
	}},
	{"collect", func(ctx context.Context, q querier, text string, args ...any) error {
		rows, _ := q.Query(ctx, text, args...)
		_, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct{ ID int }])
		return err
	}},
	{"each", func(ctx context.Context, q querier, text string, args ...any) error {
		rows, err := q.Query(ctx, text, args...)
		if err != nil {
			if rows == nil || rows.Err() == nil || rows.Next() {
				return errors.New("the rows of a query that failed have no error")
			}
			return err
		}
		var id int
		tag, err := pgx.ForEachRow(rows, []any{&id}, func() error { return nil })
		if err == nil && (id != 1 || tag.RowsAffected() != 1) {
			err = fmt.Errorf("id %d, %v", id, tag)
		}
		return err
	}},
	{"batch", func(ctx context.Context, q querier, text string, args ...any) error {
		b := new(pgx.Batch)
		b.Queue(text, args...)
		return q.SendBatch(ctx, b).Close()
	}},
}

const setPrice = "UPDATE books SET price = $1 WHERE id = $2 RETURNING id"

// Every way to write is guarded, in a pool, on a connection, in a transaction and in a nested one.
func TestWrites(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		for _, w := range ways {
			s.staleThenFresh(t, w.name, func(ctx context.Context) error { return w.run(ctx, s.db, setPrice, 30, 1) })
			s.staleThenFresh(t, w.name+" on a connection", func(ctx context.Context) error {
				c, err := s.db.Acquire(t.Context())
				if err != nil {
					return err
				}
				defer c.Release()
				return w.run(ctx, c, setPrice, 30, 1)
			})
			s.staleThenFresh(t, w.name+" in a transaction", func(ctx context.Context) error {
				return pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return w.run(ctx, tx, setPrice, 30, 1) })
			})
			s.staleThenFresh(t, w.name+" by the transaction's token", func(ctx context.Context) error {
				return pgx.BeginTxFunc(ctx, s.db, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
					return w.run(t.Context(), tx, setPrice, 30, 1)
				})
			})
			s.staleThenFresh(t, w.name+" in a nested transaction", func(ctx context.Context) error {
				return pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
					return pgx.BeginFunc(t.Context(), tx, func(tx pgx.Tx) error { return w.run(ctx, tx, setPrice, 30, 1) })
				})
			})
		}
		s.givenBack(t)
	})
}

// Writes are guarded in each of pgx's modes, with pgx's options and names.
func TestModes(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		for _, mode := range harness.PgxModes {
			for _, w := range ways {
				if w.name == "batch" {
					continue // a batch takes no options: see TestBatchModes
				}
				for _, tt := range []harness.Write{
					{Name: "arguments", Query: setPrice, Args: []any{mode, 30, 1}},
					{Name: "no arguments", Query: "UPDATE books SET price = 30 WHERE id = 1 RETURNING id", Args: []any{mode}},
					{Name: "names", Query: "UPDATE books SET price = @p WHERE id = @id RETURNING id", Args: []any{mode, pgx.NamedArgs{"p": 30, "id": 1}}},
					{Name: "strict names", Query: "UPDATE books SET price = @p WHERE id = @id RETURNING id", Args: []any{pgx.StrictNamedArgs{"p": 30, "id": 1}, mode}},
				} {
					s.staleThenFresh(t, fmt.Sprint(mode, " ", w.name, " ", tt.Name), func(ctx context.Context) error {
						return w.run(ctx, s.db, tt.Query, tt.Args...)
					})
				}
			}
		}
	})
}

// Reads and other statements without a guard run as in pgx.
func TestPasses(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	ctx := t.Context()
	type book struct {
		ID    int
		Price int
	}
	rows, err := s.db.Query(ctx, "SELECT id, price FROM books ORDER BY id")
	books, errCollect := pgx.CollectRows(rows, pgx.RowToStructByName[book])
	if err != nil || errCollect != nil || len(books) != 3 || books[2] != (book{3, 10}) {
		t.Errorf("%v, %v, %v", books, err, errCollect)
	}
	harness.WantError(t, s.db.QueryRow(ctx, "SELECT id FROM books WHERE id = 9").Scan(new(int)), pgx.ErrNoRows)
	harness.WantError(t, s.db.QueryRow(harness.Holding(t, 9), "UPDATE books SET price = 1 WHERE id = 9 RETURNING id").Scan(new(int)), pgx.ErrNoRows)
	if n, err := s.db.CopyFrom(ctx, pgx.Identifier{"pens"}, []string{"id", "price"}, pgx.CopyFromRows([][]any{{1, 2}, {3, 4}})); n != 2 || err != nil {
		t.Errorf("copied %d, %v", n, err)
	}
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		objects := tx.LargeObjects()
		id, err := objects.Create(ctx, 0)
		if err != nil {
			return err
		}
		return objects.Unlink(ctx, id)
	})
	if err != nil {
		t.Error(err)
	}
	c, err := s.db.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(ctx, "LISTEN news"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, "NOTIFY news, 'hello'"); err != nil {
		t.Fatal(err)
	}
	if n, err := c.WaitForNotification(ctx); err != nil || n.Payload != "hello" {
		t.Errorf("%v, %v", n, err)
	}
	if _, err := c.Exec(harness.Holding(t, 9), setPrice, 30, 1); err != nil {
		t.Error(err)
	}
	if _, err := c.Exec(ctx, "SELECT 1/0"); harness.SQLState(err) != "22012" {
		t.Error(err)
	}
}
