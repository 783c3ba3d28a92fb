package rules

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"slices"
)

// repeat repeats a part of a condition behind it.
func (p *planner) repeat(part lex.Span, at int32) {
	begin, r := p.Offset(part.Lo), &p.repeats
	known := len(r.Bare)
	r.Bare = slices.Grow(r.Bare, min(p.NumberInputs().Bare, int(part.Hi-part.Lo)))
	p.EachBare(part, func(end int32, number int) {
		r.Bare = append(r.Bare, render.Bare{End: end - begin, Number: int32(number)})
	})
	index := int32(render.NoBare)
	if len(r.Bare) > known {
		index = int32(len(r.Ends))
		r.Ends = append(r.Ends, int32(len(r.Bare)))
	}
	p.edits = append(p.edits, render.Edit{At: at, Op: render.OpRepeat, Row: index, Text: p.Source(part)})
}
