package rewrite

import (
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fault"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"github.com/sqlfence/sqlfence/rewrite/internal/rules"
)

// A Rewriter takes Tables, and makes a Plan for each statement. A Plan is rendered with Values: the tokens of the
// written tables, a serial and an editor. An Arg is an argument that a guard adds to the statement's arguments.
type (
	Table       = guard.Table
	Plan        = render.Plan
	Values      = render.Values
	TableValues = render.TableValues
	Token       = render.Token
	Arg         = render.Arg
)

// A Rewriter plans the statements of one database. It is safe for concurrent use.
type Rewriter struct {
	rules *rules.Registration
	plans plans
}

// New returns a rewriter that guards tables. Even without tables, the rewriter refuses statements that write or define
// the tables of sqlfence's packages.
//
// It keeps the plans of the statements used last, of each variant of [Rewriter.PlanFor] as many as take
// about 4 MiB together, which is 2,000 or more short statements. A plan isn't kept of a statement of more than
// 64 KiB, or if it takes more than 1 MiB itself; then it is made for each execution.
//
// The error reports all faults together: tables of a dialect that can't be guarded, a
// table without a name or a rule, a table of sqlfence's own packages, a column with two
// meanings, and two tables that one name could mean.
func New(d databases.Dialect, tables []Table) (*Rewriter, error) {
	r, err := rules.New(d, tables)
	if err != nil {
		return nil, err
	}
	return &Rewriter{r, newPlans()}, nil
}

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

// PlanFor returns the plan of a statement. It refuses a text that makes PlanFor panic, because each statement of a
// program passes through PlanFor, and a text may come from anywhere.
func (r *Rewriter) PlanFor(query string, v guard.Variant) (plan *Plan) {
	defer func() {
		if !fault.Crashes {
			if failed := recover(); failed != nil {
				plan = rules.Refuse(0, advise.Failed, failed)
			}
		}
	}()
	// The plan of a write is mostly cached. A read mostly passes, and takes no lock to find this out.
	plans, kept := r.plans[v&(guard.Variants-1)], mayWrite(query)
	if !kept && !r.rules.Finds(query) {
		return render.Pass
	}
	hash := plans.hash(query)
	if p := plans.get(query, hash); p != nil {
		return p
	}
	if kept && !r.rules.Finds(query) {
		return render.Pass
	}
	if len(query) > maxCached {
		return r.rules.Read(query, v)
	}
	// The clone keeps the cache from holding a larger text in memory.
	query = strings.Clone(query)
	p := r.rules.Read(query, v)
	plans.put(query, hash, p)
	return p
}

// mayWrite reports whether a text begins like INSERT, UPDATE, DELETE, MERGE, REPLACE or WITH.
func mayWrite(query string) bool {
	return query != "" && strings.IndexByte("iudmrw", query[0]|0x20) >= 0
}

// Unregistered returns the tables that a text writes to and that have no registration: neither by name nor by pattern,
// nor as exempt tables. The names are as the database reads them, with the schemas that the text has, in the order of
// the text. Unregistered reads the text at each call, apart from all plans. No decision may depend on the result: an
// unreadable text has no tables.
func (r *Rewriter) Unregistered(query string) (names []string) {
	defer func() {
		if !fault.Crashes && recover() != nil {
			names = nil
		}
	}()
	return r.rules.Unregistered(query)
}

// WithLedgerFunction returns a rewriter for the same tables. On PostgreSQL its guards call the function that package
// tokens installs in this schema, while the guards of r call the function that the session's search path resolves to.
// The new rewriter has a separate cache, and is safe for concurrent use. For other databases the result is r.
//
// The schema is a name as the database stores it.
func (r *Rewriter) WithLedgerFunction(schema string) *Rewriter {
	return r.speaking((*render.Dialect).WithLedgerFunction, schema)
}

// WithLedgerSchema returns a rewriter for the same tables. Its guards query the ledger of this schema (in MySQL, of
// this database), wherever the session resolves unqualified names. The new rewriter has a separate cache, and is safe
// for concurrent use. On SQLite, where each file has a ledger for its tables, the result is r.
//
// The schema is a name as the database stores it.
func (r *Rewriter) WithLedgerSchema(schema string) *Rewriter {
	return r.speaking((*render.Dialect).WithLedgerSchema, schema)
}

// speaking returns the rewriter with guards in another form, or r if the form doesn't change the guards.
func (r *Rewriter) speaking(form func(*render.Dialect, string) *render.Dialect, schema string) *Rewriter {
	if r.rules.Dialect == nil {
		return r
	}
	says := form(r.rules.Dialect, schema)
	if says == r.rules.Dialect {
		return r
	}
	return &Rewriter{r.rules.Speaking(says), newPlans()}
}

// Wrote reports whether this rewriter made a plan with a guard, and not a rewriter for the same tables that queries the
// ledger in another way.
func (r *Rewriter) Wrote(p *Plan) bool { return p.Source.Dialect == r.rules.Dialect }

// ReadMarker finds the marker of one of the rewriter's guards in a database's error. An equal text from another source
// is no marker: from another statement, or from a value that reads like a marker. values returns the values that the
// statement was rendered with. It is called only for the refusal of a Claim, and may be nil if no table has a Claim.
func (r *Rewriter) ReadMarker(err error, values func() *Values) (guard.Marker, bool) {
	if err == nil || r.rules.Dialect == nil {
		return guard.Marker{}, false
	}
	return r.rules.Dialect.ReadMarker(err, r.rules.Nonce, values)
}

// Marks reports whether a text has the nonce of the rewriter's markers, which the application may have shown to a user
// in a database error. No marker can be believed in the error of a statement with such a text.
func (r *Rewriter) Marks(text string) bool { return strings.Contains(text, r.rules.Nonce) }
