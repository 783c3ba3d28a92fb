package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// A text of several statements is guarded statement by statement, with constants. It has to
// consist of writes of rows and of reads: another one may hold semicolons of its own, as CREATE
// TRIGGER does, or begin or end a transaction. And it has no arguments, which drivers
// give to the statements of one text in different ways.

// isTogether notes whether the statement may stand beside one that is guarded, and refuses it
// where it has to.
func (p *planner) isTogether(count int) bool {
	p.apart = p.apart || !p.writesOrReads()
	switch {
	case count == 1 || len(p.written) == 0:
		return true
	case !p.Dialect.GuardsSeveral():
		return p.refuse(p.written[0], p.Lo, advise.Several)
	case p.apart:
		return p.refuse(p.written[0], p.Lo,
			advise.SeveralKinds)
	case p.NumberInputs().Count > 0:
		return p.refuse(p.written[0], p.Lo, advise.SeveralWithArguments)
	case p.versioned && p.plan.Serial:
		return p.refuse(p.written[0], p.Lo, advise.SeveralWithSerial)
	}
	if p.plan.Several == 0 {
		p.plan.Several = int(p.Offset(p.Lo))
	}
	return true
}

// writesOrReads reports whether the statement does nothing but write and read rows.
func (p *planner) writesOrReads() bool {
	for i := range p.Parts {
		switch part := &p.Parts[i]; part.Kind {
		case read.WritePart, read.NamePart:
		case read.OtherPart:
			if part.Class != read.Reading {
				return false
			}
		default:
			return false
		}
	}
	return !p.Explained && len(p.Parts) > 0
}
