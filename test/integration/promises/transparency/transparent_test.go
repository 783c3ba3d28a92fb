package transparency_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The tests of this file compare a fenced database's answers with those of the base driver.

func TestG7TransparentRows(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		queries := []string{
			"SELECT * FROM books ORDER BY id",
			"SELECT id, isbn, price * 1.5, NULL, count(*) OVER () FROM books ORDER BY id",
			"SELECT id FROM books WHERE 1 = 0",
			"SELECT id FROM pens",
			"UPDATE books SET price = price RETURNING *, price * 1.5 AS half",
			"DELETE FROM books WHERE id = 3 RETURNING id, isbn",
			"INSERT INTO books (id) VALUES (4) RETURNING id, price",
			"SELECT nothing FROM books",
		}
		if b.Dialect == sqlfence.Postgres {
			queries = append(queries, "SELECT 1::numeric(10,2), 'x'::varchar(7), now() < now(), '{1,2}'::int[], '\\x00ff'::bytea, '2020-01-02'::date, '1 day'::interval FROM books",
				"SELECT 1; SELECT 'two'; SELECT id FROM books")
		}
		for _, query := range queries {
			var got [2]string
			for i, db := range []*sql.DB{s.Plain, s.DB} {
				s.Reset(t, 5)
				direct := harness.Describe(db.QueryContext(harness.Holding(t, 5), query))
				s.Reset(t, 5)
				stmt, err := db.PrepareContext(harness.Holding(t, 5), query)
				if err != nil {
					got[i] = direct + err.Error()
					continue
				}
				got[i] = direct + "\n" + harness.Describe(stmt.QueryContext(harness.Holding(t, 5)))
				_ = stmt.Close()
			}
			if got[0] != got[1] {
				t.Errorf("%s\nfenced: %s\n   raw: %s", query, got[1], got[0])
			}
		}
	})
}

// database/sql finds the optional methods of a driver's rows by their type. So a fenced database's rows must have the
// same methods.
func TestG7TransparentRowsInterfaces(t *testing.T) {
	optional := []reflect.Type{
		reflect.TypeFor[driver.RowsNextResultSet](), reflect.TypeFor[driver.RowsColumnTypeScanType](),
		reflect.TypeFor[driver.RowsColumnTypeDatabaseTypeName](), reflect.TypeFor[driver.RowsColumnTypeLength](),
		reflect.TypeFor[driver.RowsColumnTypeNullable](), reflect.TypeFor[driver.RowsColumnTypePrecisionScale](),
	}
	list := func(v any, of []reflect.Type) (names []string) {
		for _, i := range of {
			if reflect.TypeOf(v).Implements(i) {
				names = append(names, i.Name())
			}
		}
		return names
	}
	conns := []reflect.Type{
		reflect.TypeFor[driver.Pinger](), reflect.TypeFor[driver.ConnBeginTx](), reflect.TypeFor[driver.ConnPrepareContext](),
		reflect.TypeFor[driver.ExecerContext](), reflect.TypeFor[driver.QueryerContext](),
		reflect.TypeFor[driver.SessionResetter](), reflect.TypeFor[driver.Validator](),
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 5)
		var conn, direct, prepared [2][]string
		for i, db := range []*sql.DB{s.Plain, s.DB} {
			harness.OnConn(t, db, func(c driver.Conn) {
				conn[i] = list(c, conns)
				rows, err := c.(driver.QueryerContext).QueryContext(t.Context(), "SELECT * FROM books", nil)
				if err != nil {
					t.Fatal(err)
				}
				direct[i] = list(rows, optional)
				_ = rows.Close()
				stmt, err := c.(driver.ConnPrepareContext).PrepareContext(t.Context(), "SELECT * FROM books")
				if err != nil {
					t.Fatal(err)
				}
				defer stmt.Close()
				if rows, err = stmt.(driver.StmtQueryContext).QueryContext(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				prepared[i] = list(rows, optional)
				_ = rows.Close()
			})
		}
		for what, got := range map[string][2][]string{"connection": conn, "rows": direct, "rows of a prepared statement": prepared} {
			if !slices.Equal(got[0], got[1]) {
				t.Errorf("%s: fenced %q\n   raw %q", what, got[1], got[0])
			}
		}
	})
}

// A statement without a registered table reaches the base driver unchanged, call by call, when it is prepared and when
// it is executed.
func TestG7TransparentCalls(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		use := func(db *sql.DB) {
			t.Helper()
			ctx := harness.Holding(t, 7)
			for _, name := range []string{"exec", "query", "prepared exec", "prepared query"} {
				for _, query := range []string{"INSERT INTO pens (id, price) VALUES ($1, $2)", "UPDATE  pens SET price = $1 WHERE id = $2 -- x"} {
					query = b.Text(t, query) // the bare driver gets the same text
					if err := harness.Ways[name](ctx, db, query, 1, 2); err != nil && !strings.Contains(strings.ToLower(err.Error()), "unique") && !strings.Contains(err.Error(), "Duplicate") {
						t.Error(err)
					}
				}
			}
			if err := harness.Ways["query"](ctx, db, "SELECT * FROM books"); err != nil {
				t.Error(err)
			}
		}
		raw := new(harness.Counter)
		plain := harness.CloseAtEnd(t, sql.OpenDB(b.Counting(t, s.Source, raw)), nil)
		db, c := b.Counted(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")))
		use(plain)
		s.Exec(t, "DELETE FROM pens")
		use(db)
		if !reflect.DeepEqual(raw.Calls(), c.Calls()) {
			t.Errorf("fenced: %v\n   raw: %v", c.Calls(), raw.Calls())
		}
	})
}

func TestG7TransparentIsolation(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		for _, opts := range []sql.TxOptions{
			{}, {ReadOnly: true}, {Isolation: sql.LevelReadUncommitted}, {Isolation: sql.LevelReadCommitted},
			{Isolation: sql.LevelRepeatableRead}, {Isolation: sql.LevelSerializable}, {Isolation: sql.LevelSerializable, ReadOnly: true},
			{Isolation: sql.LevelSnapshot}, {Isolation: sql.LevelLinearizable}, {Isolation: 99},
		} {
			var got [2]string
			for i, db := range []*sql.DB{s.Plain, s.DB} {
				tx, err := db.BeginTx(t.Context(), &opts)
				if err != nil {
					got[i] = fmt.Sprintf("%T %[1]v", err)
					continue
				}
				if b.Dialect == sqlfence.Postgres {
					var level, readOnly string
					err = tx.QueryRow("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')").Scan(&level, &readOnly)
					got[i] = fmt.Sprint(level, readOnly, err)
				}
				_, err = tx.Exec("INSERT INTO pens (id) VALUES (1)")
				got[i] += fmt.Sprint(err)
				if err := tx.Rollback(); err != nil {
					got[i] += err.Error()
				}
			}
			if got[0] != got[1] {
				t.Errorf("%+v: fenced %s\n   raw %s", opts, got[1], got[0])
			}
		}
	})
}

// If a transaction's context is cancelled, the transaction is rolled back, and its connection is kept or closed as with
// the base driver.
func TestG7TransparentCancelledTransaction(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		s.Reset(t, 5)
		var got [2]string
		for i, db := range []*sql.DB{b.Raw(t, s.Source), s.DB} {
			db.SetMaxOpenConns(1)
			ctx, cancel := context.WithCancel(t.Context())
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO pens (id) VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			cancel()
			harness.Eventually(t, "the connection is free", func() bool { return db.Stats().InUse == 0 })
			open := db.Stats().OpenConnections
			var n int
			err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM pens").Scan(&n)
			got[i] = fmt.Sprint(open, n, err, tx.Commit())
		}
		if got[0] != got[1] || !strings.Contains(got[1], " 0 <nil>") {
			t.Errorf("fenced: %s\n   raw: %s", got[1], got[0])
		}
	})
}
