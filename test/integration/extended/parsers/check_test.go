package parsers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A database parses SQL as the real database does.
type database interface {
	dialect() dialect.Dialect
	parse(text string) (tree any, err error) // an error if the SQL isn't valid
	writes(tree any) writes

	// unguard removes the guards from a tree, and fails if a guard is missing. If late is set, the ledger's early check
	// may be missing.
	unguard(tree any, rules ruleSet, ledgers int, late bool) error

	difference(a, b any) string

	// renumber restores the numbers of the user's placeholders in a guarded tree. The guard's placeholders get the
	// numbers after them.
	renumber(tree any, inputs int, added []rewrite.Arg)
}

// writes lists a statement's writes to the registered tables.
type writes struct {
	rows   []string // tables whose rows it writes, one entry for each target
	tables []string // tables that it changes as a whole, by DDL or COPY
	all    int      // the number of targets, including other tables
	nested bool     // a target is inside another statement
	idle   bool     // an EXPLAIN names ANALYZE and turns it off
}

func (w *writes) row(table string) {
	if slices.Contains(registered, table) {
		w.rows = append(w.rows, table)
	}
}

func (w *writes) whole(table string) {
	if slices.Contains(registered, table) {
		w.tables = append(w.tables, table)
	}
}

// A tally counts the outcomes of checks.
type tally struct {
	sync.Mutex
	valid, invalid, writes, guarded, passed int
	documented, needless, reads             map[string]int    // refusals by reason
	example                                 map[string]string // of a needless refusal
	bypasses, unparsed, different, verdicts failures
}

// failures counts failures and keeps the first few messages.
type failures struct {
	count int
	first []string
}

func (f *failures) add(format string, args ...any) {
	if f.count++; len(f.first) < 12 {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

func newTally() *tally {
	return &tally{documented: map[string]int{}, needless: map[string]int{}, reads: map[string]int{}, example: map[string]string{}}
}

// A checker checks statements of one database against all sets of rules.
type checker struct {
	db        database
	rewriters []*rewrite.Rewriter // one for each of ruleSets
	tally     *tally
}

func newChecker(t testing.TB, db database) *checker {
	c := &checker{db: db, tally: newTally()}
	for _, s := range ruleSets {
		r, err := rewrite.New(db.dialect(), s.tables)
		if err != nil {
			t.Fatal(err)
		}
		c.rewriters = append(c.rewriters, r)
	}
	return c
}

// all checks a statement with every set of rules and both renderings.
func (c *checker) all(query string) {
	for i := range ruleSets {
		c.check(query, i, false)
		c.check(query, i, true)
	}
}

// check checks a statement under one set of rules, and reports whether the statement is valid.
func (c *checker) check(query string, rules int, literal bool) bool {
	tree, err := c.db.parse(query)
	c.tally.Lock()
	defer c.tally.Unlock()
	if err != nil {
		c.tally.invalid++
		return false
	}
	c.tally.valid++
	w := c.db.writes(tree)
	plan := c.rewriters[rules].Plan(query)
	if len(w.rows)+len(w.tables) > 0 {
		c.tally.writes++
		if bad := bypass(w, plan); bad != "" {
			c.tally.bypasses.add("[%s] %s: %s", ruleSets[rules].name, bad, query)
			return true
		}
	}
	switch plan.Verdict {
	case guard.Pass:
		c.tally.passed++
	case guard.Refuse:
		c.refusal(query, w, plan.Refusal.Reason)
	case guard.Guard:
		c.tally.guarded++
		c.guarded(query, tree, w, plan, rules, literal)
	}
	return true
}

// bypass describes how a write to registered tables would escape its guard, or returns "".
func bypass(w writes, plan *rewrite.Plan) string {
	switch plan.Verdict {
	case guard.Pass:
		return "a write passes"
	case guard.Refuse:
		return ""
	}
	if len(w.tables) > 0 {
		return "a change of the table is guarded as one of rows"
	}
	var targets []string
	for _, t := range plan.Targets {
		targets = append(targets, registered[plan.Tables[t.Table]])
	}
	found := slices.Clone(w.rows)
	slices.Sort(targets)
	slices.Sort(found)
	if !slices.Equal(targets, found) {
		return fmt.Sprintf("guards %v, writes %v", targets, found)
	}
	return ""
}

func (c *checker) refusal(query string, w writes, reason string) {
	write := len(w.rows)+len(w.tables) > 0 || w.idle
	switch {
	case !isDocumented(reason, write, w.nested):
		c.tally.needless[brief(reason)]++
		if old := c.tally.example[brief(reason)]; old == "" || len(query) < len(old) {
			c.tally.example[brief(reason)] = query
		}
	case write:
		c.tally.documented[brief(reason)]++
	default:
		c.tally.reads[brief(reason)]++
	}
}

// errLimit means that the database accepts the SQL, but the parser used here doesn't.
var errLimit = errors.New("the parser can't read it")

// guarded checks a guarded statement: without its guards its tree must equal the user's statement.
func (c *checker) guarded(query string, tree any, w writes, plan *rewrite.Plan, rules int, literal bool) {
	if len(w.rows) == 0 && !w.idle {
		c.tally.different.add("guarded, though it writes nothing: %s", query)
	}
	out, added, err := render(plan, literal)
	if err != nil {
		c.refusal(query, w, err.Error())
		return
	}
	guarded, err := c.db.parse(out)
	if errors.Is(err, errLimit) {
		return
	}
	if err != nil {
		c.tally.unparsed.add("[%s] %v: %s\n\t=> %s", ruleSets[rules].name, err, query, out)
		return
	}
	c.db.renumber(guarded, plan.Inputs, added)
	ledgers := 0
	for _, t := range plan.Tables {
		if ruleSets[rules].tables[t].Ledger {
			ledgers++
		}
	}
	if err := c.db.unguard(guarded, ruleSets[rules], ledgers, plan.ChecksLate); err != nil {
		c.tally.bypasses.add("[%s] %v: %s\n\t=> %s", ruleSets[rules].name, err, query, out)
		return
	}
	if d := c.db.difference(tree, guarded); d != "" {
		c.tally.different.add("[%s] %s: %s\n\t=> %s", ruleSets[rules].name, d, query, out)
	}
}

// report logs the counts, and fails the test for bypasses and differences. If usual is set, the statements are written
// in common ways, and less than 1 % of the writes may be refused needlessly.
func (c *checker) report(t *testing.T, usual bool) {
	t.Helper()
	n := c.tally
	t.Logf("%d valid statements, %d not valid; %d write to a registered table, %d guarded, %d passed",
		n.valid, n.invalid, n.writes, n.guarded, n.passed)
	logCounts(t, "writes refused with a documented reason", n.documented, nil)
	logCounts(t, "others refused with a documented reason", n.reads, nil)
	logCounts(t, "refused needlessly", n.needless, n.example)
	needless := 0
	for _, k := range n.needless {
		needless += k
	}
	if usual && needless*100 > n.writes {
		t.Errorf("%d needless refusals, more than 1%% of %d writes", needless, n.writes)
	}
	for _, f := range []struct {
		what string
		failures
	}{{"bypasses", n.bypasses}, {"guarded texts that can't be parsed", n.unparsed},
		{"guarded texts that say something else", n.different}, {"variants decided otherwise", n.verdicts}} {
		if f.count > 0 {
			t.Errorf("%d %s, among them:\n%s", f.count, f.what, strings.Join(f.first, "\n"))
		}
	}
}

func logCounts(t *testing.T, what string, counts map[string]int, example map[string]string) {
	t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %6d  %s  %s", what, counts[reason], reason, example[reason])
	}
}
