package rewrite

import (
	"fmt"
	"slices"
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fault"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nonce"
)

// A Rewriter plans the statements of one database. It is safe for concurrent use.
type Rewriter struct {
	dialect *dialect // nil for one that can't be guarded: it has no tables
	nonce   string   // of the markers; see [Rewriter.ReadMarker]
	tables  []Table
	index   *index
	search  *search // nil without a dialect
	plans   plans
}

// New returns a rewriter that guards tables. Without any table, too, it refuses
// statements that write or define the tables of sqlfence's own packages.
//
// It keeps the plans of the statements used last, of each variant of [Rewriter.PlanFor] as many as take
// about 4 MiB together, which is 2,000 or more short statements. A plan isn't kept of a statement of more than
// 64 KiB, or if it takes more than 1 MiB itself; then it is made for each execution.
//
// The error reports all faults together: tables of a dialect that can't be guarded, a
// table without a name or a rule, a table of sqlfence's own packages, a column with two
// meanings, and two tables that one name could mean.
func New(d databases.Dialect, tables []Table) (*Rewriter, error) {
	says, err := guarded(d)
	index := newIndex(len(tables))
	switch {
	case err == nil:
		err = checkTables(tables, index)
	case len(tables) == 0:
		err = nil
	}
	sealed := func(t Table) bool { return t.Sealed }
	if err == nil && says != nil && says.guard.Unsealable != "" && slices.ContainsFunc(tables, sealed) {
		err = fmt.Errorf("a table of %v can't be sealed: %s (docs/sealed.md)", d, says.guard.Unsealable)
	}
	if err == nil && says != nil && says.guard.OwnLedgers.Is() {
		err = claimsInOneFile(tables)
	}
	if err != nil {
		return nil, err
	}
	r := &Rewriter{dialect: says, nonce: nonce.New(), tables: slices.Clone(tables), index: index, plans: newPlans()}
	if says == nil {
		return r, nil
	}
	for i := range r.tables {
		t := &r.tables[i]
		t.prepare(says)
		index.ledger, index.locks = index.ledger || t.Ledger, index.locks || t.locks()
	}
	index.tables = r.tables
	r.search = newSearch(says, r.tables)
	return r, nil
}

var pass = &Plan{Verdict: guard.Pass}

// plans are the caches of the variants' plans.
type plans [guard.Variants]*cache

func newPlans() (p plans) {
	for v := range p {
		p[v] = newCache(cacheBytes)
	}
	return p
}

// Plan is PlanFor without a variant.
func (r *Rewriter) Plan(query string) *Plan { return r.PlanFor(query, 0) }

// PlanFor returns what to do with a statement. It refuses a text that makes it fail itself: it stands
// in the way of each statement of a program, and a text may come from anywhere.
func (r *Rewriter) PlanFor(query string, v guard.Variant) (plan *Plan) {
	defer func() {
		if !fault.Crashes {
			if failed := recover(); failed != nil {
				plan = refusal(-1, 0, fmt.Sprint("sqlfence itself failed to read it: ", failed,
					"; please report that with the statement, and write it in another way"))
			}
		}
	}()
	if !r.search.finds(query) {
		return pass
	}
	plans := r.plans[v&(guard.Variants-1)]
	hash := plans.hash(query)
	if p := plans.get(query, hash); p != nil {
		return p
	}
	if len(query) > maxCached {
		return r.read(query, v)
	}
	// A clone, so that the cache doesn't keep a larger text alive.
	query = strings.Clone(query)
	p := r.read(query, v)
	plans.put(query, hash, p)
	return p
}

// maxRead is how many bytes of a statement are read at all.
const maxRead = 64 << 20
