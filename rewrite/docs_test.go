package rewrite

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const docFile = "../docs/statements.md"

// docHead stands before the tables, which are made from the golden files.
const docHead = `# Statements

What becomes of a statement that names a registered table, here books with a row fence.
The tables are made from the samples that the rewriter is tested with.

- **guarded**: it is sent with a guard inside, which raises an error where the token is
  stale. All of the statement's own bytes stay, in their order.
- **refused**: it is not sent; the error says why, what to write instead, and where in the
  text. Under ` + "`Bypass`" + ` it is sent as it is.
- **passed**: it is sent as it is, byte for byte.

Whatever isn't recognised is refused. Names are folded as the database folds them.
"books" registered stands for books in any schema; "shop.books" for that one and for an
unqualified books, but not for other.books. A name that code puts together at run time, in
a function's body or in a string that is executed, can't be seen.

In SQLite a constraint may be declared with ON CONFLICT REPLACE, which deletes other rows
silently. A guarded INSERT or UPDATE of a table with a row fence therefore says OR ABORT
where it says nothing itself; that takes precedence over the declaration.
`

// docGroups are the hazards that are kinds of statement, in the order of the page.
var docGroups = []struct{ hazard, title string }{
	{"plain", "UPDATE, DELETE and INSERT"},
	{"insert", "INSERT"},
	{"conflict", "ON CONFLICT"},
	{"assignment", "SET"},
	{"condition", "WHERE"},
	{"returning", "RETURNING"},
	{"with", "WITH"},
	{"merge", "MERGE"},
	{"explain", "EXPLAIN"},
	{"refused", "Refused"},
	{"passes", "Passed"},
}

// TestDocs compares docs/statements.md with the corpus; with -update it writes it.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(docHead)
	for _, g := range docGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| | PostgreSQL | SQLite |\n|---|---|---|\n", g.title)
		docRows(t, &b, g.hazard)
	}
	if *update {
		if err := os.WriteFile(docFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != b.String() {
		t.Errorf("%s is out of date: go test -run Docs -update", docFile)
	}
}

// docRows writes a row for each statement of a hazard; one that is the same in
// both dialects has one row.
func docRows(t *testing.T, b *strings.Builder, hazard string) {
	verdicts := map[string]map[Dialect]string{}
	var order []string
	for _, d := range []Dialect{Postgres, SQLite} {
		for _, s := range corpus(t, d) {
			if !strings.HasPrefix(s.name, hazard+":") || !slices.Contains(s.rules, "row") || strings.ContainsAny(s.sql, "\n|`\uFEFF") {
				continue
			}
			if verdicts[s.sql] == nil {
				verdicts[s.sql] = map[Dialect]string{}
				order = append(order, s.sql)
			}
			verdicts[s.sql][d] = docVerdict(s.plan(t, d, "row"))
		}
	}
	for _, sql := range order {
		v := verdicts[sql]
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", sql, v[Postgres], v[SQLite])
	}
}

func docVerdict(p *Plan) string {
	switch p.Verdict {
	case Guard:
		return "guarded"
	case Pass:
		return "passed"
	}
	return "refused: " + p.Refusal.Reason
}
