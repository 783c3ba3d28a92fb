package rewrite

import (
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fault"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"github.com/sqlfence/sqlfence/rewrite/internal/rules"
)

// A Rewriter takes Tables with their rules, and makes a Plan for each statement. The Plan's method Render takes Values:
// a serial, an editor, and for each written table the TableValues with its Tokens. Render returns the guarded statement
// and its Args, the arguments that the guard adds.
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
// The rewriter caches the plans of the statements used last: about 4 MiB, or 2,000 or more short statements, for each
// kind of [Rewriter.PlanFor]. If a statement has more than 64 KiB, or its plan more than 1 MiB, each execution makes
// the plan again.
//
// The error reports all invalid tables: a table of a dialect that can't be guarded, a table without a name or a rule, a
// table of sqlfence's own packages, a column with two meanings, and two tables that one name could mean.
func New(d databases.Dialect, tables []Table) (*Rewriter, error) {
	r, err := rules.New(d, tables)
	if err != nil {
		return nil, err
	}
	return &Rewriter{r, newPlans()}, nil
}

// plans has a cache for the plans of each kind.
type plans [guard.PlanKinds]*cache

func newPlans() (p plans) {
	for v := range p {
		p[v] = newCache(cacheBytes)
	}
	return p
}

// Plan returns the plan of a statement for the plain kind of execution: see [Rewriter.PlanFor].
func (r *Rewriter) Plan(query string) *Plan { return r.PlanFor(query, 0) }

// PlanFor returns the plan of a statement for a kind of execution: whether the execution carries a serial, whether it
// takes rows over, and how the session reads backslashes in strings, if known. If the package fails with a
// panic, PlanFor refuses the statement instead of ending the program, because a statement may come from anywhere.
func (r *Rewriter) PlanFor(query string, v guard.PlanKind) (plan *Plan) {
	defer func() {
		if !fault.Crashes {
			if failed := recover(); failed != nil {
				plan = rules.Refuse(0, advise.Failed, failed)
			}
		}
	}()
	// Most writes have a cached plan. Most reads name no registered table: Finds shows that without locking the cache.
	plans, kept := r.plans[v&(guard.PlanKinds-1)], mayWrite(query)
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

// Unregistered returns the tables that a statement writes to and that no registration covers, by name, by pattern, or
// as exempt tables. The names are as the database reads them, with a schema if the statement has one, in the
// statement's order. Unregistered reads the statement at each call, and uses no plan. If the statement can't be read,
// the result is empty, so don't use the result to decide whether a statement is safe.
func (r *Rewriter) Unregistered(query string) (names []string) {
	defer func() {
		if !fault.Crashes && recover() != nil {
			names = nil
		}
	}()
	return r.rules.Unregistered(query)
}

// WithLedgerFunction returns a rewriter for the same tables. On PostgreSQL its guards call the function that package
// tokens installs in this schema; the guards of r call the function that the session's search path finds. The new
// rewriter has a separate cache, and is safe for concurrent use. For other databases the result is r.
//
// The schema is a name as the database stores it.
func (r *Rewriter) WithLedgerFunction(schema string) *Rewriter {
	return r.speaking((*render.Dialect).WithLedgerFunction, schema)
}

// WithLedgerSchema returns a rewriter for the same tables. Its guards query the ledger in this schema (in MySQL, in
// this database), whatever the session's search path or current database is. The new rewriter has a separate cache, and
// is safe for concurrent use. On SQLite, where each file has a ledger for its tables, the result is r.
//
// The schema is a name as the database stores it.
func (r *Rewriter) WithLedgerSchema(schema string) *Rewriter {
	return r.speaking((*render.Dialect).WithLedgerSchema, schema)
}

// WithText returns a rewriter for the same tables. Its guards are in the SQL that text builds, for a server with other
// SQL than the dialect's. The new rewriter has a separate cache. If text is nil, the result is r.
func (r *Rewriter) WithText(text sqltext.Dialect) *Rewriter {
	return r.speaking(func(d *render.Dialect, _ string) *render.Dialect { return d.WithText(text) }, "")
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

// Wrote reports whether r made the plan p, which has a guard. The result is false for a plan of another rewriter for
// the same tables, such as a rewriter from [Rewriter.WithLedgerSchema]: guards of this plan query the ledger
// differently.
func (r *Rewriter) Wrote(p *Plan) bool { return p.Source.Dialect == r.rules.Dialect }

// ReadMarker returns the marker in a database's error, and whether there is one. A marker is the text that a guard of
// this rewriter puts into the error that it throws; it has the reason of the refusal. Markers contain a random part, so
// that a text in a user's value isn't taken for a marker.
//
// values returns the values with which the statement was rendered. ReadMarker calls values only for the refusal of a
// Claim; values may be nil if no table has a Claim.
func (r *Rewriter) ReadMarker(err error, values func() *Values) (guard.Marker, bool) {
	if err == nil || r.rules.Dialect == nil {
		return guard.Marker{}, false
	}
	return r.rules.Dialect.ReadMarker(err, r.rules.Nonce, values)
}

// Marks reports whether a text contains the random part of the rewriter's markers, which a user may have seen in an
// error of the database. If a statement or an argument contains it, the caller must not believe a marker in the
// statement's error.
func (r *Rewriter) Marks(text string) bool { return strings.Contains(text, r.rules.Nonce) }
