package rowlock_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/rowlock"
)

var update = flag.Bool("update", false, "write the statements that are sent into the golden files")

// ada's edit of row 7 at version 1, by her session s1.
var ada = rowlock.Edit{ID: 7, Serial: 1, User: "ada", Session: "s1"}

// raise is the work of a save: it stores a new total and the next version.
func raise(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = $1, serial = serial + 1 WHERE id = $2", 120, 7)
	return err
}

// An operation is a method that sends statements. All succeed on a row whose lock
// ada holds, by her session s1.
type operation struct {
	name string
	does []string // the words for it in its errors
	run  func(ctx context.Context, table *rowlock.Table, m *rowlock.Manager) error
}

// ofTable are the methods of a Table that accept a transaction.
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
			if op.name == "Setup" {
				d.tables.held = nil
			}
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

// With a Manager the methods also send statements about rowlocks, in one transaction. All other statements stay the
// same.
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
