package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/rowlock"
)

var update = flag.Bool("update", false, "write the statements that are sent into the golden files")

// ada's edit of row 7 at version 1, by her session s1.
var ada = rowlock.Edit{ID: 7, Serial: 1, User: "ada", Session: "s1"}

// raise is the work of a save: a new total, and the next version.
func raise(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = $1, serial = serial + 1 WHERE id = $2", 120, 7)
	return err
}

// An operation is a method that sends statements. All succeed on a row whose lock
// ada holds, by her session s1.
type operation struct {
	name string
	does []string // what its errors, and its reasons for a bypass, say that it does
	run  func(ctx context.Context, table *rowlock.Table, m *rowlock.Manager) error
}

// ofTable are the methods of a Table that a transaction may be given to.
var ofTable = []operation{
	{"Request", []string{"request"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.Request(ctx, ada))
	}},
	{"Renew", []string{"renew"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.Renew(ctx, ada))
	}},
	{"LoadLocked", []string{"load"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		var total int
		return second(table.LoadLocked(ctx, ada, "total", &total))
	}},
	{"ReloadLocked", []string{"load"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		var total int
		_, _, err := table.ReloadLocked(ctx, ada, "total", &total)
		return err
	}},
	{"Release", []string{"release"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return table.Release(ctx, 7, "ada")
	}},
	{"SaveRelease", []string{"save and release"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return table.SaveRelease(ctx, ada, func(context.Context, *sql.Tx) error { return nil })
	}},
	{"SaveKeep", []string{"save and keep"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.SaveKeep(ctx, ada, func(context.Context, *sql.Tx) error { return nil }))
	}},
	{"Transfer", []string{"transfer"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.Transfer(ctx, 7, "bob"))
	}},
	{"Transfer to nobody", []string{"transfer"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.Transfer(ctx, 7, nil))
	}},
	{"Current", []string{"read"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.Current(ctx, 7))
	}},
	{"IsLocked", []string{"read"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.IsLocked(ctx, 7))
	}},
	{"IsLockedBy", []string{"read"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.IsLockedBy(ctx, 7, "ada"))
	}},
	{"Lockable", []string{"read"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return second(table.Lockable(ctx, 7, "ada"))
	}},
	{"Check", []string{"read"}, func(ctx context.Context, table *rowlock.Table, _ *rowlock.Manager) error {
		return table.Check(ctx)
	}},
}

// ofManager are the methods of a Manager.
var ofManager = []operation{
	{"Setup", []string{"setup"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return m.Setup(ctx)
	}},
	{"Locks", []string{"list"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return second(m.Locks(ctx, rowlock.Filter{Table: "invoice", Row: "[7]", User: "ada"}))
	}},
	{"Heartbeat", []string{"heartbeat"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return m.Heartbeat(ctx, "s1")
	}},
	{"FreeUser", []string{"list", "free user"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return second(m.FreeUser(ctx, "ada"))
	}},
	{"FreeSession", []string{"list", "free session"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return second(m.FreeSession(ctx, "s1"))
	}},
	{"FreeSilent", []string{"list", "free silent"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return second(m.FreeSilent(ctx, time.Minute))
	}},
	{"FreeAll", []string{"list", "free all"}, func(ctx context.Context, _ *rowlock.Table, m *rowlock.Manager) error {
		return second(m.FreeAll(ctx))
	}},
}

func second[T any](_ T, err error) error { return err }

// adaHolds gives ada the lock of row 7 a minute ago, by her session s1.
func (d *desk) adaHolds() {
	d.lock("ada", time.Minute)
	r := d.row()
	d.tables.held["[7]"] = held{"invoice", "ada", "s1", r.since, r.expiry, r.since}
}

// eachOperation runs test for each operation, on a desk of each dialect.
func eachOperation(t *testing.T, operations []operation, test func(t *testing.T, d *desk, op operation)) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			eachDialect(t, func(t *testing.T, d *desk) {
				d.adaHolds()
				test(t, d, op)
			})
		})
	}
}

func texts(calls []fakedb.Call) (texts []string) {
	for _, c := range calls {
		texts = append(texts, c.String())
	}
	return texts
}

// What is sent in each dialect is in the golden files, to be read after a change:
// go test -run TestStatements -update.
func TestStatements(t *testing.T) {
	for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
		var b strings.Builder
		for _, op := range slices.Concat(ofTable, ofManager) {
			d := newDesk(dialect)
			defer d.db.Close()
			d.adaHolds()
			table, m := d.managed(t)
			if err := op.run(t.Context(), table, m); err != nil {
				t.Errorf("%v: %s: %v", dialect, op.name, err)
			}
			fmt.Fprintf(&b, "## %s\n%s\n\n", op.name, strings.Join(texts(d.Sent()), "\n"))
		}
		file := filepath.Join("testdata", strings.ToLower(dialect.String())+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		gotLines, wantLines := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(gotLines), len(wantLines)) {
			if gotLines[i] != wantLines[i] {
				t.Fatalf("%s:%d:\n%s\nis now\n%s", file, i+1, wantLines[i], gotLines[i])
			}
		}
		if len(gotLines) != len(wantLines) {
			t.Errorf("%s has %d lines, now there are %d", file, len(wantLines), len(gotLines))
		}
	}
}

// A Manager adds statements on rowlocks, and a transaction around all; it changes
// none of the others.
func TestManagerOnlyAdds(t *testing.T) {
	own := func(calls []fakedb.Call) []string {
		return slices.DeleteFunc(texts(calls), func(text string) bool {
			return strings.HasPrefix(text, "BEGIN") || text == "COMMIT" || strings.Contains(text, "rowlocks")
		})
	}
	eachOperation(t, ofTable, func(t *testing.T, d *desk, op operation) {
		if err := op.run(t.Context(), d.table(t), nil); err != nil {
			t.Error(err)
		}
		sent := d.Sent()
		if text := strings.Join(texts(sent), "\n"); strings.Contains(text, "rowlocks") {
			t.Errorf("without a Manager, rowlocks is in\n%s", text)
		}
		alone := own(sent)
		d.adaHolds()
		table, m := d.managed(t)
		if err := op.run(t.Context(), table, m); err != nil {
			t.Error(err)
		}
		if managed := own(d.Sent()); !slices.Equal(managed, alone) {
			t.Errorf("managed it sends\n%s\nelse\n%s", strings.Join(managed, "\n"), strings.Join(alone, "\n"))
		}
	})
}

// Whatever call fails: the error says what was done to which table, the database's
// error is in it, and nothing stays of what came before.
func TestFailuresLeaveNothing(t *testing.T) {
	broken := errors.New("broken")
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		before := d.state()
		for failing := 0; ; failing++ {
			n := 0
			d.fails = func(c fakedb.Call) error {
				if n++; n == failing+1 {
					return broken
				}
				return nil
			}
			err := op.run(t.Context(), table, m)
			sent := d.Sent()
			if n <= failing {
				if err != nil || failing == 0 {
					t.Errorf("%d calls, none of which failed: %v", n, err)
				}
				return
			}
			said := slices.ContainsFunc(op.does, func(do string) bool {
				return err != nil && strings.HasPrefix(err.Error(), "rowlock: "+do+": ")
			})
			if !errors.Is(err, broken) || !said {
				t.Errorf("%v fails: err = %v", sent[failing], err)
			}
			if after := d.state(); after != before || d.owner != 0 {
				t.Errorf("%v failed, and left\n%s instead of\n%s", sent[failing], after, before)
			}
			last := sent[len(sent)-1].Kind
			began := slices.ContainsFunc(sent, func(c fakedb.Call) bool { return c.Kind == fakedb.Begin }) && sent[failing].Kind != fakedb.Begin
			if began && sent[failing].Kind != fakedb.Commit && last != fakedb.Rollback {
				t.Errorf("%v failed, but there was no rollback after it: %q", sent[failing], texts(sent))
			}
		}
	})
}

// In a transaction of the caller's each statement is sent there; how it ends is
// the caller's affair, whatever fails.
func TestInTakesPart(t *testing.T) {
	broken := errors.New("broken")
	eachOperation(t, ofTable, func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		for failing := -1; ; failing++ {
			tx, err := d.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			d.Sent()
			n := 0
			d.fails = func(fakedb.Call) error {
				if n++; n == failing+1 {
					return broken
				}
				return nil
			}
			err = op.run(t.Context(), table.In(tx), m)
			d.fails = nil
			sent := d.Sent()
			for _, c := range sent {
				if c.Kind != fakedb.Exec && c.Kind != fakedb.Query {
					t.Errorf("it ended or began a transaction: %v", c)
				}
			}
			fails := failing >= 0 && failing < len(sent)
			if errors.Is(err, broken) != fails || len(sent) == 0 || !fails && err != nil {
				t.Errorf("call %d of %d fails: %v", failing, len(sent), err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			d.Sent()
			if failing >= 0 && !fails {
				return
			}
		}
	})
}

// A serialization failure of the database's own doing is tried again, but for a
// save, which may not bear it, and in the caller's transaction, which can't.
func TestSerializationFailureIsRepeated(t *testing.T) {
	repeats := func(t *testing.T, d *desk, op operation, table *rowlock.Table, m *rowlock.Manager) (err error) {
		failed := false
		d.fails = func(c fakedb.Call) error {
			if failed || c.Kind != fakedb.Exec && c.Kind != fakedb.Query {
				return nil
			}
			failed = true
			return sqlState("40001")
		}
		defer func() { d.fails = nil }()
		return op.run(t.Context(), table, m)
	}
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		once := strings.HasPrefix(op.name, "Save") || op.name == "Setup"
		err := repeats(t, d, op, table, m)
		if once != errors.Is(err, sqlState("40001")) || !once && err != nil {
			t.Errorf("managed: %v", err)
		}
		if slices.ContainsFunc(ofManager, func(of operation) bool { return of.name == op.name }) {
			return
		}
		d.adaHolds()
		err = repeats(t, d, op, d.table(t), nil)
		if once != errors.Is(err, sqlState("40001")) || !once && err != nil {
			t.Errorf("alone: %v", err)
		}
		tx, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := repeats(t, d, op, table.In(tx), m); !errors.Is(err, sqlState("40001")) {
			t.Errorf("in a transaction: %v", err)
		}
	})
}

// A sqlState is PostgreSQL's error of this code, as drivers report it.
type sqlState string

func (s sqlState) Error() string    { return "SQLSTATE " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

// On a fenced database the statements pass as they are, each with a reason that
// says what for; without a bypass they would be refused, as invoice is registered.
// Those on the Manager's table are sqlfence's own, of which nothing is said.
func TestStatementsAreBypassed(t *testing.T) {
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		if err := op.run(t.Context(), table, m); err != nil {
			t.Fatal(err)
		}
		want := texts(d.Sent())
		d.tables.rows["[7]"] = row{total: 100, serial: int64(1)}
		d.adaHolds()
		var events []sqlfence.Event
		d.fence(t, func(_ context.Context, e sqlfence.Event) { events = append(events, e) })
		table, m = d.managed(t)
		if err := op.run(t.Context(), table, m); err != nil {
			t.Fatal(err)
		}
		if got := texts(d.Sent()); !slices.Equal(got, want) {
			t.Errorf("on a fenced database it sends\n%s\nelse\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		said := make(map[string]bool)
		for _, e := range events {
			do := strings.TrimPrefix(e.Reason, "rowlock: ")
			if said[do] = true; e.Kind != sqlfence.Bypassed || !slices.Contains(op.does, do) {
				t.Errorf("%v with the reason %q, want one of %q: %s", e.Kind, e.Reason, op.does, e.Query)
			}
		}
		// What only reads, or writes to the Manager's table alone, needs no bypass.
		last := op.does[len(op.does)-1]
		if writes := !slices.Contains([]string{"read", "list", "setup", "heartbeat"}, last); writes != said[last] {
			t.Errorf("bypassed as %q is %v: %+v", last, said[last], events)
		}
	})
}

// fence puts sqlfence before the desk, with its table registered.
func (d *desk) fence(t testing.TB, observer sqlfence.Observer) {
	t.Helper()
	db, err := sqlfence.OpenDB(d.DB, sqlfence.WithDialect(d.dialect), sqlfence.WithObserver(observer),
		sqlfence.WithTable("invoice", sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	d.db = db
}

// The work of a save is the application's: it is guarded as ever.
func TestSaveIsGuarded(t *testing.T) {
	saves := map[string]func(ctx context.Context, table *rowlock.Table) error{
		"SaveRelease": func(ctx context.Context, table *rowlock.Table) error { return table.SaveRelease(ctx, ada, raise) },
		"SaveKeep":    func(ctx context.Context, table *rowlock.Table) error { return second(table.SaveKeep(ctx, ada, raise)) },
	}
	for name, save := range saves {
		eachDialect(t, func(t *testing.T, d *desk) {
			d.adaHolds()
			before := d.state()
			d.fence(t, func(context.Context, sqlfence.Event) {})
			table, _ := d.managed(t)
			if err := save(t.Context(), table); !errors.Is(err, sqlfence.ErrNoFence) || d.state() != before {
				t.Errorf("%s without a token: %v, %s", name, err, d.state())
			}
			d.Sent()
			err := save(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "invoice", Value: 3}), table)
			if err != nil || d.row().total != 120 {
				t.Errorf("%s with a token: %v, %+v", name, err, d.row())
			}
			var guarded []string
			for _, text := range texts(d.Sent()) {
				if strings.Contains(text, "fence_token") {
					guarded = append(guarded, text)
				}
			}
			if len(guarded) != 1 || !strings.Contains(guarded[0], "total = $1") {
				t.Errorf("%s: guarded are %q, want what the save sent", name, guarded)
			}
		})
	}
}

// A context that has ended is its own error, and nothing is sent any more.
func TestEndedContext(t *testing.T) {
	eachOperation(t, slices.Concat(ofTable, ofManager), func(t *testing.T, d *desk, op operation) {
		table, m := d.managed(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := op.run(ctx, table, m); !errors.Is(err, context.Canceled) || len(d.Sent()) != 0 {
			t.Errorf("err = %v", err)
		}
	})
}
