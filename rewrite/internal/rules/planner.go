package rules

import (
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A planner goes through what was read of a text, and notes the edits that guard it. A
// method that meets something it can't guard says so through refuse, and returns
// false; nothing is guessed.
type planner struct {
	values
	*Registration
	render.TableList
	versioned bool // the caller has a serial
	takesOver bool // the caller takes rows over
	escapes   lex.Escapes

	plan    *render.Planned // nil until a registered table is written to
	edits   []render.Edit
	repeats render.Repeats
	written []int // distinct registered tables written to, as indexes in tables
	targets []render.Written
	assigns []bool // whether the serial of each of written is assigned, as far as it goes
	refused *guard.Refusal

	settings []int // as Plan.Settings

	replacement *render.Replacement

	target    target    // of the write that is being planned
	insertion insertion // of the INSERT, or arm of a MERGE, that is being planned
	explained bool      // a statement is run by EXPLAIN
	comments  bool      // words of the statement are put into comments
	apart     bool      // a statement is one that none which is guarded may stand beside
}

// maxRead is how many bytes of a statement are read at all.
const maxRead = 64 << 20

var planners = sync.Pool{New: func() any { return new(planner) }}

// Read makes the plan of a text that has to be read.
func (r *Registration) Read(query string, v guard.Variant) *render.Plan {
	if len(query) > maxRead {
		return Refuse(0, advise.TooLong, len(query), maxRead)
	}
	text, err := read.Open(r.Dialect.Grammar, query, v.Escapes())
	if err != nil {
		if err.Fault == lex.Conditional && r.readsAnyway(query, err.Offset) {
			return render.Pass
		}
		plan := Refuse(err.Offset, advise.NotRead, err.Reason)
		plan.Refusal.Ambiguous = err.Fault == lex.Ambiguous
		return plan
	}
	p := planners.Get().(*planner)
	p.values, p.Registration, p.Tables = values{text}, r, r.index.tables
	p.versioned, p.takesOver, p.escapes = v&guard.Versioned != 0, v&guard.TakesOver != 0, v.Escapes()
	plan := p.script()
	p.release()
	text.Close()
	return plan
}

// release keeps a planner for another text.
func (p *planner) release() {
	p.plan, p.refused, p.explained, p.apart, p.comments = nil, nil, false, false, false
	p.repeats, p.written, p.targets, p.assigns, p.settings = render.Repeats{}, nil, nil, nil, nil
	p.Covered, p.replacement = nil, nil
	if cap(p.edits) > render.MaxRoom {
		p.edits = nil
	}
	clear(p.edits)
	p.edits = p.edits[:0]
	planners.Put(p)
}

// script plans the whole text: one statement, or several with semicolons between
// them, which pass only if every one of them does.
func (p *planner) script() *render.Plan {
	ok := p.foldsClearly()
	for count := 1; ok && p.Next(); count++ {
		ok = p.keepsReading(count) && ground{p}.keepsGround() && p.statement() &&
			p.isTogether(count) && p.endsAlone(count)
	}
	switch {
	case !ok:
		return &render.Plan{Verdict: guard.Refuse, Refusal: *p.refused}
	case len(p.written) == 0 && len(p.settings) > 0:
		return &render.Plan{Verdict: guard.Pass, Settings: p.settings}
	case len(p.written) == 0:
		return render.Pass
	}
	render.Order(p.edits, p.Src)
	return p.guarded()
}

// keepsReading refuses a text of several statements that is read by the session's settings, because a statement before
// the last one may change them.
func (p *planner) keepsReading(count int) bool {
	return count == 1 || p.escapes == lex.EscapesUnknown || p.refuse(-1, p.Lo,
		advise.SettingsMayChange)
}

// guarded returns the plan of a text with edits.
func (p *planner) guarded() *render.Plan {
	inputs := p.NumberInputs()
	plan := &p.plan.Plan
	plan.Form = &p.plan.Form
	plan.Verdict, plan.Settings = guard.Guard, p.settings
	plan.Tables, plan.Targets = p.written, p.targets
	plan.Inputs = inputs.Count
	plan.Params = plan.Several == 0 && p.takesParams(inputs) &&
		plan.Inputs+render.DefaultArgs*len(plan.Tables) <= p.Dialect.Guard.MaxInputs
	if inputs.OnlyBare() {
		p.countInputs()
	}
	edits := append(p.plan.Edits[:0], p.edits...)
	plan.Source = render.Source{Dialect: p.Dialect, Nonce: p.Nonce, Src: p.Src, Edits: edits, Repeats: p.repeats,
		TableList: p.TableList, Plan: plan,
		Assigns: p.assigns, Counts: inputs.OnlyBare(), TakesOver: p.takesOver,
		NeedsSCSOn: p.NeedsSCSOn, Escapes: p.escapes,
		Comments:    p.comments,
		Replacement: p.replacement}
	plan.CountRows()
	if !plan.RenderDefault(p.Text) {
		p.refuse(p.written[0], 0, advise.Damaged)
		p.refused.Offset = 0
		return &render.Plan{Verdict: guard.Refuse, Refusal: *p.refused}
	}
	return plan
}

// takesParams reports whether there are numbers for the guard's placeholders: without
// names, and either behind those of all others, or everywhere in between.
func (p *planner) takesParams(inputs read.Inputs) bool {
	return !inputs.Named && (!inputs.Numbered || inputs.Bare == 0 && inputs.Count <= p.Dialect.MaxNumbered())
}

// countInputs notes how many placeholders stand before each edit.
func (p *planner) countInputs() {
	i, last := 0, int32(0)
	p.EachBare(lex.Span{Hi: int32(len(p.Tokens))}, func(at int32, number int) {
		for ; i < len(p.edits) && p.edits[i].At < at; i++ {
			p.edits[i].Inputs = last
		}
		last = int32(number)
	})
	for ; i < len(p.edits); i++ {
		p.edits[i].Inputs = last
	}
}

// endsAlone notes whether anything stands behind the statement's semicolon, be it a comment.
// It refuses a versioned statement there, where a driver may take that for another statement
// and count its rows.
func (p *planner) endsAlone(count int) bool {
	if p.plan == nil {
		return true
	}
	p.plan.Alone = count == 1 && strings.TrimSpace(p.Behind()) == ""
	return p.plan.Alone || !p.plan.Versioned || p.Dialect.CountsRows ||
		p.refuse(p.written[0], p.Hi, advise.SerialNotAlone)
}

// refuse notes why the statement can't be guarded; the first reason stays.
func (p *planner) refuse(table int, token int32, code advise.Code, of ...any) bool {
	if p.refused == nil {
		p.refused = &guard.Refusal{Table: table, Reason: code.Sentence(of...), Offset: int(p.Offset(token))}
		switch {
		case p.isOwn(table):
			p.refused.Table, p.refused.Name = -1, render.OwnTables[table-len(p.Tables)]
		case table >= len(p.Tables):
			t := p.RulesOf(table)
			p.refused.Table, p.refused.Name = t.CoveredBy, t.FullName()
		}
	}
	return false
}

// refuseTarget refuses a write of the target's.
func (p *planner) refuseTarget(token int32, code advise.Code, of ...any) bool {
	return p.refuse(p.target.table, token, code, of...)
}

// Refuse returns the plan of a statement that can't be guarded, whatever it names.
func Refuse(offset int, code advise.Code, of ...any) *render.Plan {
	refusal := guard.Refusal{Table: -1, Reason: code.Sentence(of...), Offset: offset}
	return &render.Plan{Verdict: guard.Refuse, Refusal: refusal}
}

func (p *planner) insertText(at int32, s string) {
	p.edits = append(p.edits, render.Edit{At: at, Text: s})
}

// insert adds an edit for the target.
func (p *planner) insert(at int32, o render.Op, rules render.RuleSet, s string) {
	p.edits = append(p.edits, render.Edit{At: at, Op: o, Target: int32(p.target.index), Rules: rules, Text: s})
}
