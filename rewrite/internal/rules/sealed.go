package rules

import (
	"fmt"
	"slices"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A sealed is the rule Sealed: the table's triggers refuse each write without a valid token. A write presents the token
// in the fence column, or in the claim that this rule assigns.
type sealed struct {
	addsNothing
	setsNothing
}

// inSet returns true if the rule must assign the claim, so that the seal's triggers see it: if the table has a claim,
// and the statement neither takes the row over nor assigns the claim itself.
func (sealed) inSet(t *render.Registered, how rowWrite) bool {
	return t.Claim != "" && !how.takesOver && !how.setsNumber
}

func (sealed) inWhere(*render.Registered, rowWrite) bool { return false }

// canSeal returns an error if a table is to be sealed, and the database has no seals.
func canSeal(d databases.Dialect, says *render.Dialect, tables []guard.Table) error {
	sealed := func(t guard.Table) bool { return t.Sealed }
	if says.Guard.Unsealable == "" || !slices.ContainsFunc(tables, sealed) {
		return nil
	}
	return fmt.Errorf("a table of %v can't be sealed: %s (docs/sealed.md)", d, says.Guard.Unsealable)
}
