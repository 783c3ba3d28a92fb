package rules

import (
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A Registration has the tables of one database, and plans the statements that write to them. It is safe for
// concurrent use.
type Registration struct {
	dialect *render.Dialect // nil for one that can't be guarded: it has no tables
	nonce   string          // of the guards' markers
	index   *index
	search  *search // nil without a dialect
}

// New returns the registration of tables. The error reports all faults of these.
func New(d databases.Dialect, described []guard.Table) (*Registration, error) {
	says, err := render.Guarded(d)
	tables := render.NewTables(says, described)
	index := newIndex(tables)
	switch {
	case err == nil:
		err = checkTables(tables, index)
	case len(tables) == 0:
		err = nil
	}
	if err == nil && says != nil {
		err = canSeal(d, says, described)
	}
	if err == nil && says != nil {
		err = claimsInOneFile(says, tables)
	}
	if err != nil {
		return nil, err
	}
	r := &Registration{dialect: says, nonce: nonce.New(), index: index}
	if says != nil {
		r.search = newSearch(says, tables)
	}
	return r, nil
}

// Finds reports whether a text has to be read.
func (r *Registration) Finds(query string) bool { return r.search.finds(query) }

// Wrote reports whether a plan's guard is in the registration's form.
func (r *Registration) Wrote(p *render.Plan) bool { return p.WroteFor(r.dialect) }

// ReadMarker finds the marker of one of the registration's guards in a database's error.
func (r *Registration) ReadMarker(err error, values func() *render.Values) (guard.Marker, bool) {
	if err == nil || r.dialect == nil {
		return guard.Marker{}, false
	}
	return r.dialect.ReadMarker(err, r.nonce, values)
}

// Marks reports whether a text has the nonce of the guards' markers.
func (r *Registration) Marks(text string) bool { return strings.Contains(text, r.nonce) }

// WithLedgerFunction is the registration with guards that ask the ledger by the function of a schema, and
// withLedgerSchema with guards that ask the ledger of a schema.
func (r *Registration) WithLedgerFunction(schema string) *Registration {
	return r.speaking((*render.Dialect).WithLedgerFunction, schema)
}

func (r *Registration) WithLedgerSchema(schema string) *Registration {
	return r.speaking((*render.Dialect).WithLedgerSchema, schema)
}

// speaking returns the registration with guards in another form; itself where the database has no other one.
func (r *Registration) speaking(form func(*render.Dialect, string) *render.Dialect, schema string) *Registration {
	if r.dialect == nil {
		return r
	}
	says := form(r.dialect, schema)
	if says == r.dialect {
		return r
	}
	with := *r
	with.dialect = says
	return &with
}
