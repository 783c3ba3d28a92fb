package rewrite

import (
	"fmt"
	"slices"
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nonce"
)

// A registration has the tables of one database, and plans the statements that write to them. It is safe for
// concurrent use.
type registration struct {
	dialect *dialect // nil for one that can't be guarded: it has no tables
	nonce   string   // of the guards' markers
	index   *index
	search  *search // nil without a dialect
}

// newRegistration returns the registration of tables. The error reports all faults of these.
func newRegistration(d databases.Dialect, described []guard.Table) (*registration, error) {
	says, err := guarded(d)
	tables := newTables(says, described)
	index := newIndex(tables)
	switch {
	case err == nil:
		err = checkTables(tables, index)
	case len(tables) == 0:
		err = nil
	}
	sealed := func(t guard.Table) bool { return t.Sealed }
	if err == nil && says != nil && says.guard.Unsealable != "" && slices.ContainsFunc(described, sealed) {
		err = fmt.Errorf("a table of %v can't be sealed: %s (docs/sealed.md)", d, says.guard.Unsealable)
	}
	if err == nil && says != nil && says.guard.OwnLedgers.Is() {
		err = claimsInOneFile(tables)
	}
	if err != nil {
		return nil, err
	}
	r := &registration{dialect: says, nonce: nonce.New(), index: index}
	if says != nil {
		r.search = newSearch(says, tables)
	}
	return r, nil
}

// finds reports whether a text has to be read.
func (r *registration) finds(query string) bool { return r.search.finds(query) }

// wrote reports whether a plan's guard is in the registration's form.
func (r *registration) wrote(p *Plan) bool { return p.wroteFor(r.dialect) }

// readMarker finds the marker of one of the registration's guards in a database's error.
func (r *registration) readMarker(err error, values func() *Values) (guard.Marker, bool) {
	if err == nil || r.dialect == nil {
		return guard.Marker{}, false
	}
	return r.dialect.readMarker(err, r.nonce, values)
}

// marks reports whether a text has the nonce of the guards' markers.
func (r *registration) marks(text string) bool { return strings.Contains(text, r.nonce) }

// withLedgerFunction is the registration with guards that ask the ledger by the function of a schema, and
// withLedgerSchema with guards that ask the ledger of a schema.
func (r *registration) withLedgerFunction(schema string) *registration {
	return r.speaking((*dialect).withLedgerFunction, schema)
}

func (r *registration) withLedgerSchema(schema string) *registration {
	return r.speaking((*dialect).withLedgerSchema, schema)
}

// speaking returns the registration with guards in another form; itself where the database has no other one.
func (r *registration) speaking(form func(d *dialect, schema string) *dialect, schema string) *registration {
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
