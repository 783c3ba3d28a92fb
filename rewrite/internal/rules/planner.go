package rules

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A planner goes through a parsed SQL string, and records the insertions that guard it. If a method meets a part of the
// string that can't be guarded, it calls refuse and returns false. No method guesses.
type planner struct {
	values
	*Registration
	render.TableList
	versioned bool // the caller presents a row version by WithSerial
	takesOver bool // the caller takes rows over by WithTakeover
	escapes   lex.Escapes
	unsettled bool // an earlier statement of the text may have changed the session

	plan      *render.Planned // nil until a registered table is written to
	fragments []render.Fragment
	repeats   render.Repeats
	written   []int // indexes of the registered tables that the text writes to, each once
	targets   []render.Written
	assigns   []bool // for each of written, whether the text assigns the row version; may be shorter than written
	refused   *guard.Refusal

	settings []int // as Plan.Settings

	replacement *render.Replacement

	target    target    // the table of the write that is being planned
	insertion insertion // the columns of the INSERT, or arm of a MERGE, that is being planned
	explained bool      // EXPLAIN runs a statement of the text
	comments  bool      // the guard puts words of the statement into comments
	apart     bool      // a statement of the text can't share the text with a guarded statement
}

// maxRead is the largest statement in bytes that is read.
const maxRead = 64 << 20

var planners = sync.Pool{New: func() any { return new(planner) }}

// Read returns the plan of a text for which Finds has reported true.
func (r *Registration) Read(query string, v guard.PlanKind) *render.Plan {
	if len(query) > maxRead {
		return Refuse(0, advise.TooLong, len(query), maxRead)
	}
	text, err := read.Open(r.Dialect.Grammar, query, v.Escapes())
	if err != nil {
		if err.Kind == lex.Conditional && r.readsAnyway(query, err.Offset) {
			return render.Pass
		}
		plan := Refuse(err.Offset, advise.NotRead, err.Reason)
		plan.Refusal.Ambiguous = err.Kind == lex.Ambiguous
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

// release empties the planner and keeps it for another text.
func (p *planner) release() {
	p.plan, p.refused, p.explained, p.apart, p.comments = nil, nil, false, false, false
	p.repeats, p.written, p.targets, p.assigns, p.settings = render.Repeats{}, nil, nil, nil, nil
	p.Covered, p.replacement = nil, nil
	if cap(p.fragments) > render.MaxBuffer {
		p.fragments = nil
	}
	clear(p.fragments)
	p.fragments = p.fragments[:0]
	planners.Put(p)
}

// script plans the whole text, a single statement or several statements separated by semicolons. Several statements
// pass only if each statement passes.
func (p *planner) script() *render.Plan {
	ok := p.foldsClearly()
	for count := 1; ok && p.Next(); count++ {
		ok = p.keepsReading(count) && protection{p}.keepsProtected() && p.statement() &&
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
	render.Order(p.fragments, p.Src)
	return p.guarded()
}

// keepsReading refuses a statement that the server may read by other settings than the planner: it follows a statement
// that may change them, and the server reads each statement only when it reaches the statement.
func (p *planner) keepsReading(count int) bool {
	if count > 1 && p.unsettled && p.escapes != lex.EscapesUnknown && p.Dialect.Grammar.Lex.TwoModes.Is() {
		return p.refuse(-1, p.Lo, advise.SettingsMayChange)
	}
	p.unsettled = count > 1 && p.unsettled || slices.ContainsFunc(p.Parts, func(part read.Part) bool {
		return part.Kind == read.OtherPart && part.Class != read.Reading
	})
	return true
}

// guarded returns the plan of a text with edits.
func (p *planner) guarded() *render.Plan {
	inputs := p.NumberInputs()
	plan := &p.plan.Plan
	plan.Form = &p.plan.Form
	plan.Verdict, plan.Settings = guard.Guard, p.settings
	changes := session.Changes(p.Src)
	plan.Unsettles = changes || p.Dialect.MayChangeSchema(p.Src, changes)
	plan.Tables, plan.Targets = p.written, p.targets
	plan.Inputs = inputs.Count
	plan.Params = plan.MultiStatement == 0 && p.takesParams(inputs) &&
		plan.Inputs+render.DefaultArgs*len(plan.Tables) <= p.Dialect.Guard.MaxInputs
	if inputs.OnlyBare() {
		p.countInputs()
	}
	edits := p.fragments
	if cap(edits) > render.MaxBuffer {
		p.fragments = nil // the planner would keep no room of this size
	} else {
		edits = append(p.plan.Fragments[:0], edits...)
	}
	plan.Source = render.Source{Dialect: p.Dialect, Nonce: p.Nonce, Src: p.Src, Fragments: edits, Repeats: p.repeats,
		TableList: p.TableList, Plan: plan,
		Assigns: p.assigns, Counts: inputs.OnlyBare(), TakesOver: p.takesOver,
		NeedsSCSOn: p.NeedsSCSOn, Escapes: p.escapes,
		Comments:    p.comments,
		Replacement: p.replacement}
	plan.CountRows()
	if !plan.RenderParameterised(p.Text) {
		p.refuse(p.written[0], 0, advise.Damaged)
		p.refused.Offset = 0
		return &render.Plan{Verdict: guard.Refuse, Refusal: *p.refused}
	}
	return plan
}

// takesParams reports whether the guard can use numbered placeholders. It can't if a placeholder of the text has a
// name. If all placeholders are bare, the guard's placeholders are counted among them; otherwise the guard's numbers
// follow all numbers of the text.
func (p *planner) takesParams(inputs read.Inputs) bool {
	return !inputs.Named && (!inputs.Numbered || inputs.Bare == 0 && inputs.Count <= p.Dialect.MaxNumbered())
}

// countInputs records for each edit the number of the statement's placeholders before the edit.
func (p *planner) countInputs() {
	i, last := 0, int32(0)
	p.EachBare(lex.Range{Hi: int32(len(p.Tokens))}, func(at int32, number int) {
		for ; i < len(p.fragments) && p.fragments[i].At < at; i++ {
			p.fragments[i].Inputs = last
		}
		last = int32(number)
	})
	for ; i < len(p.fragments); i++ {
		p.fragments[i].Inputs = last
	}
}

// endsAlone records whether only blanks follow the statement's semicolon; a comment is more than blanks. It refuses a
// statement under WithSerial with text after the semicolon, because a driver may read this text as a second statement
// and report the second statement's row count.
func (p *planner) endsAlone(count int) bool {
	if p.plan == nil {
		return true
	}
	p.plan.Alone = count == 1 && strings.TrimSpace(p.Rest()) == ""
	return p.plan.Alone || !p.plan.Versioned || p.Dialect.CountsRows ||
		p.refuse(p.written[0], p.Hi, advise.SerialNotAlone)
}

// refuse records why the statement can't be guarded, unless an earlier reason is recorded, and returns false. table is
// the index of the table that the error names, or -1, and token is the place that the error points at.
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

// refuseTarget calls refuse for the target's table.
func (p *planner) refuseTarget(token int32, code advise.Code, of ...any) bool {
	return p.refuse(p.target.table, token, code, of...)
}

// Refuse returns the plan of a statement that can't be guarded, for any table.
func Refuse(offset int, code advise.Code, of ...any) *render.Plan {
	refusal := guard.Refusal{Table: -1, Reason: code.Sentence(of...), Offset: offset}
	return &render.Plan{Verdict: guard.Refuse, Refusal: refusal}
}

func (p *planner) insertText(at int32, s string) {
	p.fragments = append(p.fragments, render.Fragment{At: at, Text: s})
}

// insert adds an edit for the target.
func (p *planner) insert(at int32, o render.Op, rules render.RuleSet, s string) {
	p.fragments = append(p.fragments, render.Fragment{At: at, Op: o,
		Target: int32(p.target.index), Rules: rules, Text: s})
}

// conditional matches a comment that servers execute from some version on. It matches only names, numbers, plain
// strings and a few signs, and no slash, so all servers find the same end of the comment. Some servers read the sixth
// digit as part of the version, other servers as the first digit of the code.
var conditional = regexp.MustCompile(`^(/\*[Mm]?!(?:\d{5})?)(\d?)` +
	"([\\s,=()@+<>](?:[\\w\\s,.=()@*+<>%]|'[\\w\\s,.:%+]*'|`\\w*`)*)" + `(\*/)`)

// readsAnyway reports whether a text writes to no registered table, both on a server that executes the comment at an
// offset, and on a server that skips the comment.
func (r *Registration) readsAnyway(query string, offset int) bool {
	const most = 4
	found := conditional.FindStringSubmatch(query[offset:])
	if found == nil || strings.Count(query[offset:], "!") > most {
		return false
	}
	const comment = "/**/" // no blank: behind -- it would begin a comment
	before, behind := query[:offset]+comment, comment+query[offset+len(found[0]):]
	for _, code := range [...]string{found[2] + found[3], found[3], ""} {
		plan := r.Read(before+code+behind, 0)
		if plan.Verdict != guard.Pass || len(plan.Settings) > 0 {
			return false
		}
	}
	return true
}

// A text of several statements is guarded statement by statement, with constants. The text must consist of writes of
// rows and of reads. Any other statement may hold semicolons, as CREATE TRIGGER does, or begin or end a transaction.
// The text can't have arguments, because drivers assign arguments to the statements of a text in different ways.

// isTogether refuses a text of several statements that writes to a registered table, if one of its statements can't
// share a text with a guarded statement. p.apart is set once such a statement was read.
func (p *planner) isTogether(count int) bool {
	p.apart = p.apart || !p.writesOrReads()
	switch {
	case count == 1 || len(p.written) == 0:
		return true
	case !p.Dialect.GuardsMultiStatement():
		return p.refuse(p.written[0], p.Lo, advise.Multi)
	case p.apart:
		return p.refuse(p.written[0], p.Lo,
			advise.MultiKinds)
	case p.NumberInputs().Count > 0:
		return p.refuse(p.written[0], p.Lo, advise.MultiWithArguments)
	case p.versioned && p.plan.Serial:
		return p.refuse(p.written[0], p.Lo, advise.MultiWithSerial)
	}
	if p.plan.MultiStatement == 0 {
		p.plan.MultiStatement = int(p.Offset(p.Lo))
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

// registered returns the index of the table that a normalised name may mean, or -1. The indexes of sqlfence's tables
// follow the registered tables. schema may be empty.
func (p *planner) registered(schema, name string) int {
	if table := p.index.find(schema, name); table >= 0 {
		return table
	}
	return p.own(name)
}

// own returns the index of an sqlfence table, or -1.
func (p *planner) own(name string) int {
	if own := slices.Index(render.OwnTables[:], name); own >= 0 {
		return len(p.Tables) + own
	}
	return -1
}

// isOwn reports whether an index means an sqlfence table.
func (p *planner) isOwn(table int) bool {
	return len(p.Tables) <= table && table < len(p.Tables)+len(render.OwnTables)
}

// mention searches some tokens for the name of a registered table, of a table that a pattern may cover, or of an
// sqlfence table. It returns the table's index and the token, or -1.
func (p *planner) mention(s lex.Range) (table int, at int32) {
	table, at = p.named(s)
	if table < 0 && len(p.index.patterns) > 0 {
		return p.index.patterns[0], s.Lo
	}
	return table, at
}

// named is mention, but it ignores patterns.
func (p *planner) named(s lex.Range) (table int, at int32) {
	return p.Find(s, func(name string) int { return p.registered("", name) })
}

// mentionGuarded is mention, but it ignores sqlfence's own tables.
func (p *planner) mentionGuarded(s lex.Range) (table int, at int32) {
	if len(p.index.patterns) > 0 {
		return p.index.patterns[0], s.Lo
	}
	return p.Find(s, func(name string) int { return p.index.find("", name) })
}

// refuseOwn refuses a statement if its tokens include the name of an sqlfence table.
func (p *planner) refuseOwn(s lex.Range) bool {
	table, at := p.Find(s, p.own)
	return table < 0 || p.refuse(table, at, advise.OwnTable)
}

// foldsClearly refuses a text with a word that the database's locale may fold to the name of a registered table or of a
// rule's column.
func (p *planner) foldsClearly() bool {
	table, at := p.FoldsByLocale(p.index.mayBe)
	return table < 0 || p.refuse(table, at,
		advise.WordFoldsByLocale)
}
