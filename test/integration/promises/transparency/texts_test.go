package transparency_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The tests of this file compare the text and the arguments that reach the base driver, for each kind of statement and
// each way to run it. An application's tests with sqlmock have to expect these texts and arguments.

// mocked returns a fenced database on sqlmock. A call that the test doesn't expect, or expects later, is an error.
func mocked(t *testing.T, matcher sqlmock.QueryMatcher, opts ...sqlfence.Option) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	dsn := rand.Text()
	raw, mock, err := sqlmock.NewWithDSN(dsn, sqlmock.QueryMatcherOption(matcher))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlfence.OpenDB(mockConnector{raw.Driver(), dsn}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
		mock.ExpectClose()
		_ = db.Close()
		_ = raw.Close()
	})
	return db, mock
}

type mockConnector struct {
	d   driver.Driver
	dsn string
}

func (c mockConnector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.dsn) }

func (c mockConnector) Driver() driver.Driver { return c.d }

// guardAt returns the index at which the guard's arguments stand among a statement's: after all of them, but in SQLite
// by the number of the first placeholder that has one.
func guardAt(d sqlfence.Dialect, text string, all int) int {
	first := regexp.MustCompile(`\?(\d+)`).FindStringSubmatch(text)
	if d != sqlfence.SQLite || first == nil {
		return all
	}
	n, _ := strconv.Atoi(first[1])
	return n - 1
}

func TestG7TextsReachTheBase(t *testing.T) {
	for _, d := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
		for _, fence := range harness.Fences {
			for _, tt := range texts[d][fence.Name] {
				t.Run(fmt.Sprintf("%v/%s/%s", d, fence.Name, tt.query), func(t *testing.T) {
					db, mock := mocked(t, sqlmock.QueryMatcherEqual, sqlfence.WithDialect(d), harness.Books(fence.Rule))
					ctx := harness.Holding(t, 7)
					guardArgs := []driver.Value{int64(7)}
					switch {
					case fence.Name == "row fence":
					case d == sqlfence.Postgres:
						guardArgs = []driver.Value{"books", int64(7)}
					default:
						guardArgs = []driver.Value{int64(7), "books"}
					}
					var all []driver.Value
					for _, arg := range tt.args {
						all = append(all, int64(arg.(int)))
					}
					all = slices.Insert(all, guardAt(d, tt.argument, len(all)), guardArgs...)

					// In a prepared statement the token is always an argument.
					result := sqlmock.NewResult(0, 1)
					p := mock.ExpectPrepare(tt.argument).WillBeClosed()
					p.ExpectExec().WithArgs(all...).WillReturnResult(result)
					p.ExpectQuery().WithArgs(all...).WillReturnRows(sqlmock.NewRows([]string{"id"}))
					stmt, err := db.PrepareContext(ctx, tt.query)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := stmt.ExecContext(ctx, tt.args...); err != nil {
						t.Error(err)
					}
					if _, err := harness.Returned(stmt.QueryContext(ctx, tt.args...)); err != nil {
						t.Error(err)
					}
					if err := stmt.Close(); err != nil {
						t.Error(err)
					}
					// If the application has no arguments, the token is in the text.
					direct := tt.argument
					if len(tt.args) == 0 {
						direct, all = tt.literal, nil
					}
					mock.ExpectExec(direct).WithArgs(all...).WillReturnResult(result)
					if _, err := db.ExecContext(ctx, tt.query, tt.args...); err != nil {
						t.Error(err)
					}
					mock.ExpectQuery(direct).WithArgs(all...).WillReturnRows(sqlmock.NewRows([]string{"id"}))
					if _, err := harness.Returned(db.QueryContext(ctx, tt.query, tt.args...)); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// byteForByte compares without folding white space, as QueryMatcherEqual does.
var byteForByte = sqlmock.QueryMatcherFunc(func(want, got string) error {
	if want != got {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
})

// A statement arrives unchanged if it concerns no registered table, only reads, or is under Bypass.
func TestG7TextsPassByteForByte(t *testing.T) {
	bypass := sqlfence.Bypass(t.Context(), "a test")
	for _, tt := range []struct {
		ctx   context.Context
		query string
	}{
		{t.Context(), "  UPDATE pens\n\tSET price = 1 -- of books\n ; "},
		{harness.Holding(t, 7), "update PENS set price=1 where isbn = 'books'"},
		{harness.Holding(t, 7), "DELETE FROM bookshelf; DELETE FROM \"pens\""},
		{harness.Holding(t, 7), "SELECT  *  FROM books /* fence_token */"},
		{harness.Holding(t, 7), "INSERT INTO pens (id) SELECT id FROM books"},
		{t.Context(), "gibberish ((( '"},
		{bypass, "UPDATE  books SET price = 1 -- all"},
		{bypass, "TRUNCATE  books; DELETE FROM books"},
	} {
		for _, d := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
			for _, fence := range harness.Fences {
				t.Run(fmt.Sprint(d, "/", fence.Name, "/", tt.query), func(t *testing.T) {
					db, mock := mocked(t, byteForByte, sqlfence.WithDialect(d), harness.Books(fence.Rule))
					mock.ExpectExec(tt.query).WithArgs(int64(1), "x").WillReturnResult(sqlmock.NewResult(0, 1))
					mock.ExpectQuery(tt.query).WithoutArgs().WillReturnRows(sqlmock.NewRows([]string{"id"}))
					p := mock.ExpectPrepare(tt.query).WillBeClosed()
					p.ExpectExec().WithArgs("x").WillReturnResult(sqlmock.NewResult(0, 1))
					if _, err := db.ExecContext(tt.ctx, tt.query, 1, "x"); err != nil {
						t.Error(err)
					}
					if err := harness.Ways["query"](tt.ctx, db, tt.query); err != nil {
						t.Error(err)
					}
					if err := harness.Ways["prepared exec"](tt.ctx, db, tt.query, "x"); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// One prepared statement sends the token of each execution. If an execution needs another text, the statement is
// prepared again, and a later one prepares the first text again.
func TestG7TextsOfOnePreparedStatement(t *testing.T) {
	const query = "UPDATE books SET price = 30"
	db, mock := mocked(t, sqlmock.QueryMatcherEqual, sqlfence.WithDialect(sqlfence.SQLite), harness.Books(sqlfence.RowFence("fence_token")))
	result := sqlmock.NewResult(0, 1)
	usual := "UPDATE OR ABORT books SET price = 30" + sqliteMark("?1")
	p := mock.ExpectPrepare(usual).WillBeClosed()
	for _, value := range []int64{7, 8, 1} {
		p.ExpectExec().WithArgs(value).WillReturnResult(result)
	}
	bypassed := mock.ExpectPrepare(query).WillBeClosed()
	bypassed.ExpectExec().WithoutArgs().WillReturnResult(result)
	again := mock.ExpectPrepare(usual).WillBeClosed()
	again.ExpectExec().WithArgs(9).WillReturnResult(result)

	stmt, err := db.PrepareContext(t.Context(), query) // the context has no token yet
	if err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{harness.Holding(t, 7), harness.Holding(t, 8), harness.Holding(t, 1), sqlfence.Bypass(harness.Holding(t, 9), "a test"), harness.Holding(t, 9)} {
		if _, err := stmt.ExecContext(ctx); err != nil {
			t.Error(err)
		}
	}
	_, err = stmt.ExecContext(t.Context())
	harness.WantError(t, err, sqlfence.ErrNoFence)
	if err := stmt.Close(); err != nil {
		t.Error(err)
	}
}
