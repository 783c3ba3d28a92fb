package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
)

var onFake = Harness{
	Connector: func(t testing.TB) driver.Connector { return NewDatabase(t, Full) },
	Options:   []sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)},
}

// A guarantee records some results of its helpers as failures, and accepts the others.
func TestFailuresAreNoted(t *testing.T) {
	refused := sqlfence.Event{Kind: sqlfence.Refused}
	for _, test := range []struct {
		name   string
		failed bool
		do     func(f *fenced)
	}{
		{"as wanted", false, func(f *fenced) { f.want("n", []int{1}, []int{1}) }},
		{"not as wanted", true, func(f *fenced) { f.want("n", []int{1}, []int{2}) }},
		{"no error", false, func(f *fenced) { f.must(nil) }},
		{"an error", true, func(f *fenced) { f.must(io.EOF) }},
		{"the error wanted", false, func(f *fenced) { f.wantError("e", fmt.Errorf("wrapped: %w", io.EOF), io.EOF) }},
		{"another error", true, func(f *fenced) { f.wantError("e", io.ErrNoProgress, io.EOF) }},
		{"no error where one is wanted", true, func(f *fenced) { f.wantError("e", nil, io.EOF) }},
		{"not stale", true, func(f *fenced) { f.wantStale("e", sqlfence.ErrStale, 8, 9) }},
		{"stale, without the driver's error", true, func(f *fenced) {
			f.wantStale("e", &sqlfence.StaleError{Table: "books", Token: sqlfence.Token{Name: "books", Value: 8}, Current: 9}, 8, 9)
		}},
		{"the event wanted", false, func(f *fenced) { f.observed("e", sqlfence.Refused) }},
		{"another event", true, func(f *fenced) { f.observed("e", sqlfence.Bypassed) }},
		{"no event", true, func(f *fenced) { f.events.take(); f.observed("e", sqlfence.Refused) }},
		{"the events wanted", false, func(f *fenced) { f.wantEvents("e", sqlfence.Refused) }},
		{"more events", true, func(f *fenced) { f.wantEvents("e") }},
		{"fewer events", true, func(f *fenced) { f.wantEvents("e", sqlfence.Refused, sqlfence.Refused) }},
	} {
		f := &fenced{kit: kit{failMu: new(sync.Mutex)}, events: new(events)}
		f.events.add(t.Context(), refused)
		func() {
			defer f.endIfStopped()
			test.do(f)
		}()
		if failed := f.reason() != ""; failed != test.failed {
			t.Errorf("%s: failed %t, want %t: %s", test.name, failed, test.failed, f.reason())
		}
	}
}

// Each way of sending uses the calls in its name.
func TestWaysUseTheCallsInTheirNames(t *testing.T) {
	want := []struct {
		name  string
		calls []string
	}{
		{"exec", []string{"exec"}},
		{"query", []string{"query"}},
		{"prepared exec", []string{"prepare", "stmt exec"}},
		{"prepared query", []string{"prepare", "stmt query"}},
		{"exec in a transaction", []string{"begin", "exec", "commit"}},
		{"query in a transaction", []string{"begin", "query", "commit"}},
		{"prepared in a transaction", []string{"begin", "prepare", "stmt exec", "commit"}},
		{"tx.Stmt", []string{"prepare", "begin", "stmt query", "commit"}},
		{"exec on a connection", []string{"exec"}},
		{"prepared on a connection", []string{"prepare", "stmt exec"}},
	}
	if len(ways) != len(want) {
		t.Fatalf("there are %d ways, want %d", len(ways), len(want))
	}
	rec := (&kit{connector: NewDatabase(t, Full)}).recorder()
	db := sql.OpenDB(rec)
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE pens (id integer)"); err != nil {
		t.Fatal(err)
	}
	for i, way := range ways {
		rec.take()
		if err := way.run(t.Context(), db, "INSERT INTO pens (id) VALUES (?)", i); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
		if got := rec.take().kinds(); way.name != want[i].name || !slices.Equal(got, want[i].calls) {
			t.Errorf("%s: %v, want %s: %v", way.name, got, want[i].name, want[i].calls)
		}
		if err := way.run(t.Context(), db, "INSERT INTO nowhere (id) VALUES (?)", i); err == nil {
			t.Errorf("%s: no error from a table that isn't there", way.name)
		}
		var n int
		if err := db.QueryRow("SELECT count(*) FROM pens").Scan(&n); err != nil || n != i+1 {
			t.Errorf("after %s: %d rows, %v", way.name, n, err)
		}
	}
}

// If the driver alone varies, a result with sqlfence must equal a result of the driver alone in at least one run.
func TestVaryingChecks(t *testing.T) {
	for _, test := range []struct {
		varies bool
		shown  int // with sqlfence
		want   Outcome
	}{{true, 1, Passed}, {true, 3, Passed}, {true, 99, Failed}, {false, 1, Passed}, {false, 3, Failed}} {
		alones := 0
		c := check{name: "varying", varies: test.varies, steps: func(s *side) {
			n := test.shown
			if s.variant == alone {
				alones++
				n = alones
			}
			s.show("n", n)
		}}
		for _, r := range c.run(t, onFake, sqlfence.SQLite) {
			if r.Outcome != test.want {
				t.Errorf("varies %t, %d: %s %v, want %v", test.varies, test.shown, r.Name, r.Outcome, test.want)
			}
		}
	}
}

// With the table registered, writes are guarded.
func TestRegisteredVariantIsGuarded(t *testing.T) {
	var seen []string
	c := check{name: "without a token", steps: func(s *side) {
		_, err := s.db.ExecContext(context.Background(), "UPDATE books SET price = 20")
		seen = append(seen, fmt.Sprintf("%s: %t", s.variant, err != nil))
	}}
	c.run(t, onFake, sqlfence.SQLite)
	if want := []string{"driver alone: false", "with sqlfence: false", "with sqlfence, books registered: true"}; !slices.Equal(seen, want) {
		t.Errorf("refused: %q, want %q", seen, want)
	}
}
