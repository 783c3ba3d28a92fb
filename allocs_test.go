package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// The test compares an execution's allocations with those of the bare driver. An unguarded statement adds none.
func TestAllocationsOfAnExecution(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector has pools lose what they hold")
	}
	bare := &fakedb.Recorder{}
	raw := sql.OpenDB(bare)
	defer raw.Close()
	base := &fakedb.Recorder{}
	// An observer without the kind Guarded costs nothing.
	observer := sqlfence.WithObserver(func(context.Context, sqlfence.Event) { t.Error("an event") })
	db := open(t, base, observer, sqlfence.WithTable("books", fenced), sqlfence.WithTable("pens", fenced, sqlfence.Key("id")))
	ctx := sqlfence.WithFence(t.Context(), token("books", 7), token("pens/1", 7))
	for _, tt := range []struct {
		name, query string
		args        []any
		rows        bool
		more        float64 // than without sqlfence
	}{
		{"unregistered", "UPDATE others SET price = ?", []any{1}, false, 0},
		{"unregistered query", "SELECT ?", []any{1}, true, 0},
		{"guarded", "UPDATE books SET price = ?", []any{1}, false, 2},
		{"guarded, in the text", "UPDATE books SET price = 1", nil, false, 3},
		{"guarded by key", "INSERT INTO pens (id, price) VALUES (?, ?)", []any{1, 2}, false, 3},
		{"guarded query", "UPDATE books SET price = ? RETURNING id", []any{1}, true, 6},
	} {
		for _, prepared := range []bool{false, true} {
			got, want := math.Inf(1), math.Inf(1)
			// database/sql's goroutines sometimes allocate meanwhile.
			for try := 0; try < 3 || try < 30 && got > want+tt.more; try++ {
				got = min(got, allocations(t, ctx, db, base, tt.query, tt.args, tt.rows, prepared))
				want = min(want, allocations(t, ctx, raw, bare, tt.query, tt.args, tt.rows, prepared))
			}
			if got > want+tt.more {
				t.Errorf("%s, prepared %v: %v allocations, %v without sqlfence, want %v more at the most", tt.name, prepared, got, want, tt.more)
			}
		}
	}
}

// skipping wants each statement with arguments prepared, as MySQL's driver does.
type skipping struct{ *fakedb.RecorderConn }

func (c skipping) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.RecorderConn.ExecContext(ctx, query, args)
}

// That a driver wants a statement prepared first isn't looked at as if it were an error.
func TestAllocationsWhereADriverSkips(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector has pools lose what they hold")
	}
	skips := func(c *fakedb.RecorderConn) driver.Conn { return skipping{c} }
	bare, base := &fakedb.Recorder{Form: skips}, &fakedb.Recorder{Form: skips}
	raw := sql.OpenDB(bare)
	defer raw.Close()
	db := open(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithStatementCache(0))
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	const more = 6
	got, want := math.Inf(1), math.Inf(1)
	for try := 0; try < 3 || try < 30 && got > want+more; try++ {
		got = min(got, allocations(t, ctx, db, base, "UPDATE books SET price = ?", []any{1}, false, false))
		want = min(want, allocations(t, ctx, raw, bare, "UPDATE books SET price = ?", []any{1}, false, false))
	}
	if got > want+more {
		t.Errorf("%v allocations, %v without sqlfence, want %v more at the most", got, want, more)
	}
}

func allocations(t *testing.T, ctx context.Context, db *sql.DB, base *fakedb.Recorder, query string, args []any, rows, prepared bool) float64 {
	t.Helper()
	exec, ask := db.ExecContext, db.QueryRowContext
	if prepared {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		exec = func(ctx context.Context, _ string, args ...any) (sql.Result, error) {
			return stmt.ExecContext(ctx, args...)
		}
		ask = func(ctx context.Context, _ string, args ...any) *sql.Row { return stmt.QueryRowContext(ctx, args...) }
	}
	var n int
	return testing.AllocsPerRun(100, func() {
		base.Sent = base.Sent[:0]
		var err error
		if rows {
			err = ask(ctx, query, args...).Scan(&n)
		} else {
			_, err = exec(ctx, query, args...)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// To open a database costs the same for each table, whatever their number.
func TestAllocationsOfManyTables(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector has pools lose what they hold")
	}
	opened := func(n int) *sql.DB {
		var opts []sqlfence.Option
		for i := range n {
			opts = append(opts, sqlfence.WithTable(fmt.Sprintf("shop%d.table_%d", i%7, i), fenced))
		}
		return open(t, &fakedb.Recorder{}, opts...)
	}
	few := testing.AllocsPerRun(3, func() { opened(1000).Close() })
	if many := testing.AllocsPerRun(1, func() { opened(10_000).Close() }); many > 11*few {
		t.Errorf("%v allocations for 1,000 tables, %v for ten times as many", few, many)
	}
}

// A source adds no allocations if the context has the tokens, or if the source returns an existing slice.
func TestAllocationsOfASource(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector has pools lose what they hold")
	}
	held := []sqlfence.Token{token("books", 7)}
	source := func(context.Context, []string) ([]sqlfence.Token, error) { return held, nil }
	plain, sourced := new(fakedb.Recorder), new(fakedb.Recorder)
	without := open(t, plain, sqlfence.WithTable("books", fenced))
	with := open(t, sourced, sqlfence.WithTable("books", fenced), sqlfence.WithTokenSource(source))
	const query = "UPDATE books SET price = ?"
	carries := sqlfence.WithFence(t.Context(), held...)
	for name, ctx := range map[string]context.Context{"the context has it": carries, "the source has it": t.Context()} {
		got, want := math.Inf(1), math.Inf(1)
		for try := 0; try < 3 || try < 30 && got > want; try++ {
			want = min(want, allocations(t, carries, without, plain, query, []any{1}, false, false))
			got = min(got, allocations(t, ctx, with, sourced, query, []any{1}, false, false))
		}
		if got > want {
			t.Errorf("%s: %v allocations, %v without a source", name, got, want)
		}
	}
}
