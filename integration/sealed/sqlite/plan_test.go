package sqlite_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

const triggersAsTheyAre = "SELECT name, tbl_name, sql FROM sqlite_master ORDER BY rowid"

// The planned statements, sent by the bare driver, do what Seal and Unseal do, and planning them
// changes nothing.
func TestPlan(t *testing.T) {
	script := "CREATE TABLE books (id integer PRIMARY KEY, title text, price integer, fence_token bigint NOT NULL DEFAULT 0);\n" +
		"CREATE UNIQUE INDEX titles ON books (title COLLATE NOCASE) WHERE price > 0;\n" +
		"CREATE TABLE log (what text);\n" +
		"CREATE TRIGGER told AFTER UPDATE OF price ON books BEGIN INSERT INTO log VALUES ('x'); END;\n" +
		"INSERT INTO books VALUES (1, 'a', 10, 5)"
	each(t, func(t *testing.T, b harness.Base) {
		planned, done := newUnsealed(t, b, script), newUnsealed(t, b, script)
		run := func(plan func() ([]schema.TablePlan, error)) {
			t.Helper()
			before := rows(t, planned.bare, triggersAsTheyAre)
			plans, err := plan()
			if err != nil {
				t.Fatal(err)
			}
			if after := rows(t, planned.bare, triggersAsTheyAre); !slices.Equal(before, after) {
				t.Errorf("planning has made\n%q of\n%q", after, before)
			}
			if len(plans) != 1 || plans[0].Table != "books" {
				t.Fatalf("plans of %v", plans)
			}
			for _, statement := range plans[0].Statements {
				planned.exec(t, statement)
			}
		}
		same := func() {
			t.Helper()
			if a, b := rows(t, planned.bare, triggersAsTheyAre), rows(t, done.bare, triggersAsTheyAre); !slices.Equal(a, b) {
				t.Errorf("the plan has made\n%q, want\n%q", a, b)
			}
		}
		for range 2 { // and again, as after a unique index was added
			run(func() ([]schema.TablePlan, error) { return schema.SealPlan(t.Context(), planned.db) })
			done.seal(t)
			same()
		}
		if _, err := planned.bare.Exec("UPDATE books SET price = 11"); err == nil {
			t.Error("an unfenced write has passed")
		}
		if _, err := planned.db.ExecContext(holding(t, 5), "UPDATE books SET price = 12"); err != nil {
			t.Error(err)
		}
		run(func() ([]schema.TablePlan, error) { return schema.UnsealPlan(t.Context(), planned.db, "books") })
		if err := schema.Unseal(t.Context(), done.db); err != nil {
			t.Fatal(err)
		}
		same()
	})
}

// What Seal refuses has no plan, and the connection is left as it was.
func TestPlanRefuses(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b, "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0);\nCREATE UNIQUE INDEX odd ON books (price + 1)")
		l.db.SetMaxOpenConns(1)
		if plans, err := schema.SealPlan(t.Context(), l.db); err == nil || !strings.Contains(err.Error(), "expression") {
			t.Errorf("plans %v, %v", plans, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := schema.SealPlan(ended, l.db); err == nil {
			t.Error("with a context that has ended: no error")
		}
		l.exec(t, "DROP INDEX odd") // nobody holds a lock
		if _, err := schema.SealPlan(t.Context(), l.db); err != nil {
			t.Error(err)
		}
		if _, err := schema.SealPlan(t.Context(), l.bare); err == nil {
			t.Error("a database that isn't fenced has a plan")
		}
	})
}
