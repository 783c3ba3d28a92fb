package parsers

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// Tables with a serial or an edit lock. A guarded statement must write to the same tables as the user's statement, and
// under WithSerial it must compare the version.

// No generated statement names these columns.
const serialColumn = "serial_no"

var lockColumns = guard.Lock{By: "locked_by", Since: "locked_since", Expiry: "locked_expiry"}

func TestSerial(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) { counted(t, postgres{}, postgresGrammar, postgresHazards, 6000) })
	t.Run("SQLite", func(t *testing.T) { counted(t, newSQLite(t), sqliteGrammar, sqliteHazards, 6000) })
	t.Run("MySQL", func(t *testing.T) { counted(t, newMySQL(t), mysqlGrammar, mysqlHazards, 6000) })
}

func counted(t *testing.T, db database, g grammar, hazards []string, usual int) {
	serial := rewrite.Table{Serial: serialColumn}
	lock := rewrite.Table{Lock: lockColumns}
	all := rewrite.Table{Serial: serialColumn, FenceColumn: fenceColumn, Ledger: true, Lock: lockColumns}
	var rewriters []*rewrite.Rewriter
	for _, s := range []ruleSet{rules("serial", serial, serial), rules("lock", lock, lock), rules("all", all, serial)} {
		r, err := rewrite.New(db.dialect(), s.tables)
		if err != nil {
			t.Fatal(err)
		}
		rewriters = append(rewriters, r)
	}
	r := random(t)
	queries := slices.Clone(hazards)
	for range statements(t, usual) {
		queries = append(queries, text(g.write(r, "statement")))
	}
	guarded, versioned := 0, 0
	for _, query := range queries {
		tree, err := db.parse(query)
		if err != nil {
			continue
		}
		w := db.writes(tree)
		for _, r := range rewriters {
			for _, plan := range []*rewrite.Plan{r.Plan(query), r.PlanFor(query, guard.Versioned)} {
				if len(w.rows)+len(w.tables) > 0 {
					if bad := bypass(w, plan); bad != "" {
						t.Errorf("%s: %s", bad, query)
					}
				}
				if plan.Verdict != guard.Guard {
					continue
				}
				guarded++
				out, sent := wantReadable(t, db, plan, query, w)
				if !sent || !plan.Versioned {
					continue
				}
				versioned++
				if !strings.Contains(out, ":conflict:") {
					t.Errorf("it compares nothing: %s\n\t=> %s", query, out)
				}
			}
		}
	}
	t.Logf("%d texts guarded, %d of them with a serial to compare", guarded, versioned)
	if versioned == 0 {
		t.Error("none is compared: the test tests nothing")
	}
}

// wantReadable fails the test unless the parser accepts the guarded SQL, and the SQL writes to the same tables as the
// query. It returns the SQL; sent is false if the plan can't be rendered.
func wantReadable(t *testing.T, db database, plan *rewrite.Plan, query string, w writes) (out string, sent bool) {
	t.Helper()
	out, _, err := render(plan, false)
	if err != nil {
		return "", false
	}
	again, err := db.parse(out)
	if errors.Is(err, errLimit) {
		return out, true
	}
	if err != nil {
		t.Errorf("%v: %s\n\t=> %s", err, query, out)
		return "", false
	}
	if got := db.writes(again); !slices.Equal(sorted(got.rows), sorted(w.rows)) {
		t.Errorf("it wrote to %v and now to %v: %s\n\t=> %s", w.rows, got.rows, query, out)
	}
	return out, true
}

// sorted returns a sorted copy.
func sorted(tables []string) []string {
	tables = slices.Clone(tables)
	slices.Sort(tables)
	return tables
}
