package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A rowFence is the rule RowFence: a column stores the token of the row's last write. NULL counts as 0.
type rowFence struct{}

func (rowFence) adds(t *render.Registered) added { return added{what: "fence", column: t.Quoted.Fence} }

func (rowFence) assigned(p writing, a *read.Assignment, _ bool) bool {
	for i := a.Names.Lo; i < a.Names.Hi; i++ {
		if column, ok := p.Name(int(i)); ok && column == p.target.rules.FenceColumn {
			return p.refuseTarget(a.Lo, advise.AssignsFence)
		}
	}
	return true
}

func (rowFence) inserted(p inserting, column string, token int32, _ int) bool {
	return column != p.target.rules.FenceColumn ||
		p.refuseTarget(token, advise.NamesFence)
}

// inWhere returns false for an UPDATE: its guard compares the tokens in the assignment of the fence column, which the
// database evaluates for the newest version of the row, at any isolation level.
func (rowFence) inWhere(_ *render.Registered, how rowWrite) bool { return !how.updates }

func (rowFence) inSet(*render.Registered, rowWrite) bool { return true }
