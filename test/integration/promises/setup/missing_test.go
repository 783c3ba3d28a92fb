package setup_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// missing lists objects that a rule needs, each with the statement that drops the object.
var missing = []struct {
	name  string
	drops string
	rules []sqlfence.Rule

	things int      // how many objects are missing; an error names one
	except []string // writes that need none of them
}{
	{"the fence column", "ALTER TABLE books DROP COLUMN fence_token", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, 1, nil},
	{"a fence column with a name that needs quotes", "", []sqlfence.Rule{sqlfence.RowFence(`"fence-token"`)}, 1, nil},
	{"the ledger", "DROP TABLE fencing_tokens", []sqlfence.Rule{sqlfence.Ledger()}, 1, nil},
	{"the ledger, besides a fence column", "DROP TABLE fencing_tokens", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}, 1, nil},
	{"the serial column", "", []sqlfence.Rule{sqlfence.Serial("serial")}, 1, writes[2:]},
	{"the columns of a lock", "", []sqlfence.Rule{sqlfence.EditLock("editedby", "editedsince", "editedexpiry")}, 3, writes[:1]},
}

var writes = []string{
	"INSERT INTO books (id) VALUES (5)",
	"UPDATE books SET price = 20 WHERE id = 1",
	"DELETE FROM books WHERE id = 1",
}

// The error names the missing object and the SQL that adds it, and this SQL repairs the defect. In Observe mode the
// event names them, and the statement runs.
func TestMissing(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, m := range missing {
			t.Run(m.name, func(t *testing.T) {
				for _, query := range writes {
					if slices.Contains(m.except, query) {
						continue
					}
					for _, prepared := range []bool{false, true} {
						sh := harness.NewShop(t, b, m.rules...)
						sh.Exec(t, "INSERT INTO books (id) VALUES (1)")
						if m.drops != "" {
							sh.Exec(t, m.drops)
						}
						ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 1})
						observeMissing(ctx, t, sh, m.rules, query)
						err := write(ctx, sh.DB, query, prepared)
						things := m.things
						if b.AsksByFunction() && strings.HasPrefix(m.name, "the ledger") {
							things++ // the function is missing, too
						}
						for range things {
							add(t, sh, b, err)
							err = write(ctx, sh.DB, query, prepared)
						}
						if err != nil && !errors.Is(err, sqlfence.ErrUnknownName) { // the added ledger has no token yet
							t.Errorf("%s, prepared %v, after what the errors said: %v", query, prepared, err)
						}
					}
				}
			})
		}
	})
}

// observeMissing checks that the statement runs in Observe mode, and that the event names the missing object. It rolls
// the statement back.
func observeMissing(ctx context.Context, t *testing.T, sh *harness.Shop, rules []sqlfence.Rule, query string) {
	t.Helper()
	var told []error
	db := sh.Fenced(t, sh.Source, harness.Books(rules...), sqlfence.WithMode(sqlfence.Observe),
		sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, e.Err) }))
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, query); err != nil {
		t.Errorf("%s in Observe mode: %v", query, err)
	}
	if len(told) != 1 || !errors.Is(told[0], sqlfence.ErrNotSetUp) {
		t.Errorf("%s: the observer is told %v, want ErrNotSetUp", query, told)
	}
}

func write(ctx context.Context, db *sql.DB, query string, prepared bool) error {
	if !prepared {
		_, err := db.ExecContext(ctx, query)
		return err
	}
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(ctx)
	return errors.Join(err, harness.CloseStmt(stmt))
}

// add executes an error's SQL, and checks that the error wraps the driver's error, unless nothing was sent.
func add(t *testing.T, sh *harness.Shop, b harness.Base, err error) {
	t.Helper()
	var setup *sqlfence.SetupError
	if !errors.As(err, &setup) || !errors.Is(err, sqlfence.ErrNotSetUp) {
		t.Fatalf("error %v, want a SetupError", err)
	}
	if state := (interface{ SQLState() string })(nil); setup.Err != nil && b.Dialect == sqlfence.Postgres && !errors.As(err, &state) {
		t.Errorf("the driver's error isn't to be found in %v", err)
	}
	if setup.Missing == "" || setup.Err == nil && !strings.Contains(setup.Missing, "fencing_tokens") || strings.Contains(err.Error(), "<nil>") {
		t.Errorf("%+v lacks something", setup)
	}
	sh.Exec(t, setup.SQL)
}

// The packages' errors also name their missing tables.
func TestMissingTables(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Exec(t, "DROP TABLE fencing_tokens")
		sh.Exec(t, "CREATE TABLE invoice (id integer PRIMARY KEY, serial bigint NOT NULL DEFAULT 1, editedby text, editedsince "+b.TimeType()+", editedexpiry "+b.TimeType()+")")
		sh.Exec(t, "INSERT INTO invoice (id) VALUES (7)")
		store := harness.NewStore(t, sh.DB)
		leases := harness.NewLeases(t, sh.DB)
		sh.Exec(t, "DROP TABLE fencing_leases")
		sh.Exec(t, "DROP TABLE fencing_tokens")
		m, err := rowlock.NewManager(sh.DB)
		if err != nil {
			t.Fatal(err)
		}
		invoice, err := rowlock.New(sh.DB, "invoice", rowlock.WithManager(m))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		for name, do := range map[string]func() error{
			"issue":     func() error { _, err := store.Issue(ctx, "books"); return err },
			"current":   func() error { _, err := store.Current(ctx, "books"); return err },
			"acquire":   func() error { _, _, err := leases.TryAcquire(ctx, "jobs"); return err },
			"list":      func() error { _, err := leases.List(ctx); return err },
			"request":   func() error { _, err := invoice.Request(ctx, rowlock.Edit{ID: 7, Serial: 1, User: "ada"}); return err },
			"locks":     func() error { _, err := m.Locks(ctx, rowlock.Filter{}); return err },
			"heartbeat": func() error { return m.Heartbeat(ctx, "s1") },
		} {
			var setup *sqlfence.SetupError
			if err := do(); !errors.As(err, &setup) {
				t.Errorf("%s: %v, want a SetupError", name, err)
			}
		}
		for range 2 { // each time an error names one of the two tables of leases
			_, _, err := leases.TryAcquire(ctx, "jobs")
			add(t, sh, b, err)
		}
		_, _, err = leases.TryAcquire(ctx, "jobs")
		if err != nil {
			t.Errorf("acquire after what the errors said: %v", err)
		}
		if _, err = invoice.Request(ctx, rowlock.Edit{ID: 7, Serial: 1, User: "ada"}); err == nil {
			t.Fatal("there is no table rowlocks")
		}
		add(t, sh, b, err)
		if _, err = invoice.Request(ctx, rowlock.Edit{ID: 7, Serial: 1, User: "ada"}); err != nil {
			t.Errorf("request after what the error said: %v", err)
		}
	})
}
