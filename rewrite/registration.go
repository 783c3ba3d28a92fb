package rewrite

import (
	"fmt"
	"slices"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
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
func newRegistration(d databases.Dialect, described []Table) (*registration, error) {
	says, err := guarded(d)
	tables := newTables(says, described)
	index := newIndex(tables)
	switch {
	case err == nil:
		err = checkTables(tables, index)
	case len(tables) == 0:
		err = nil
	}
	sealed := func(t Table) bool { return t.Sealed }
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

// speaking returns the registration with guards in another form.
func (r *registration) speaking(says *dialect) *registration {
	with := *r
	with.dialect = says
	return &with
}
