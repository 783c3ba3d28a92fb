package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A claim is the rule Claim: a column counts how often a row was taken over, such as the attempt of a job. A writer
// that increments the column takes the row over, and every other write must present the current value. A token in the
// context is always compared, even if the write needs no token (see takeover). The values must be equal: the guard
// stores nothing, so a higher value was never issued. NULL counts as 0.
type claim struct{ addsNothing }

func (claim) inserted(inserting, string, int32, int) bool { return true }

// assigned guards an item of a SET list that assigns the claim: the new value must be higher than the row's.
func (claim) assigned(p writing, a *read.Assignment, _ bool) bool {
	return p.assignsNumber(a, p.target.rules.Claim, "claim", "assign it column + 1")
}

// claims decides how a write of existing rows treats their claims. The write is a takeover if the statement increments
// the claim or the caller requests a takeover. Any other write must present the current claim.
func (p writing) claims(w *read.Write, updates bool) bool {
	t := &p.target
	switch t.takesOver = updates && (t.setsNumber || p.takesOver); {
	case t.rules.Claim == "":
		t.takesOver = false
	case !updates && p.takesOver:
		return p.refuseTarget(w.At, advise.DeleteTakesOver)
	case t.takesOver && (t.newKey || t.returnsKey):
		return p.refuseTarget(w.At, advise.TakesOverKey)
	default:
		t.presents = t.presents || !t.takesOver
	}
	return true
}

// keepsRow reports whether an upsert's update leaves the row unchanged: assigning the row only its key is a way to
// write DO NOTHING. An unchanged row needs no claim value, unless a seal requires one.
func (p writing) keepsRow(set *read.Assignments) bool {
	if p.target.rules.Claim == "" || p.target.rules.Sealed || set.Empty() {
		return false
	}
	for i := range set.Items {
		a := &set.Items[i]
		if !p.Assigns(*a, p.target.rules.Key) || a.Names.Hi-a.Names.Lo != 1 {
			return false
		}
		if !p.keepsKey(a) || p.target.returnsKey {
			return false
		}
	}
	return true
}

// inWhere returns true unless the write takes rows over: a write that presents a claim assigns none, so its guard
// compares the claim in the condition.
func (claim) inWhere(_ *render.Registered, how rowWrite) bool { return !how.takesOver }

// A takeover is the check of rows that are taken over. It needs no token for these rows. But a token in the context is
// compared as for any other write: a caller that was replaced is refused, and doesn't become the holder again by
// incrementing the claim.
type takeover struct {
	addsNothing
	setsNothing
}

// inWhere returns false: the SET list, which increments the claim, also compares the row. So the database can use an
// index for the statement's condition.
func (takeover) inWhere(*render.Registered, rowWrite) bool { return false }

// inSet returns true if the guard must increment the claim: the caller uses WithTakeover, and the statement doesn't
// assign the column.
func (claim) inSet(_ *render.Registered, how rowWrite) bool { return how.takesOver && !how.setsNumber }
