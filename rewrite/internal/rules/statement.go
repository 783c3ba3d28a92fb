package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// statement plans the statement that was read last, part by part.
func (p *planner) statement() bool {
	p.explained = p.explained || p.Explained
	first := len(p.targets)
	for i := range p.Parts {
		if !p.part(&p.Parts[i]) {
			return false
		}
	}
	p.addLedgerCheck(first)
	return p.findsClaims(first)
}

// addLedgerCheck adds the ledger's check in a WITH before the statement, unless the dialect checks the ledger in WHERE.
// The statement's targets begin at first.
func (p *planner) addLedgerCheck(first int) {
	if p.Dialect.LedgerInWhere() {
		return
	}
	with := "WITH"
	if p.HasWith {
		with = ""
	}
	for i := first; i < len(p.targets); i++ {
		if p.RulesOf(p.written[p.targets[i].Table]).Ledger {
			p.fragments = append(p.fragments, render.Fragment{At: p.CTEAt, Op: render.OpWith,
				Text: with, Target: int32(first),
				Row: int32(len(p.targets))})
			return
		}
	}
}

func (p *planner) part(part *read.Part) bool {
	switch part.Kind {
	case read.WritePart:
		return writing{p}.write(&p.Writes[part.Write])
	case read.NamePart:
		if !p.Dialect.ShadowsLedger(part.Name) {
			return true
		}
		if table, _ := p.mentionGuarded(part.Range); table >= 0 {
			return p.refuse(table, part.At, advise.ShadowsLedger, part.Name)
		}
	case read.IntoPart:
		return (!render.IsOwnTable(part.Name) || p.refuseOwn(part.Range)) &&
			protection{p}.keepsClaims(part.Name, part.At)
	case read.HiddenPart:
		if table, _ := p.mention(part.Range); table >= 0 {
			return p.refuse(table, part.At, advise.HiddenWrite)
		}
		return protection{p}.keepsDefinitions(part.Range)
	case read.UnreadablePart:
		if table, at := p.mention(part.Range); table >= 0 {
			if part.Reason != advise.Readable {
				return p.refuse(table, part.At, part.Reason)
			}
			return p.refuse(table, at, advise.Unreadable)
		}
		return protection{p}.keepsDefinitions(part.Range)
	case read.TooDeepPart:
		return p.refuse(-1, part.At, advise.TooDeep)
	case read.OtherPart:
		return protection{p}.other(part)
	}
	return true
}

// other decides whether a statement that isn't a write of rows passes.
func (p protection) other(part *read.Part) bool {
	table, at := p.mention(part.Range)
	switch {
	case part.Class == read.Definition && !p.keepsPlaces(part):
		return false
	case part.Class != read.NoRows && part.Class != read.Reading && !p.keepsDefinitions(part.Range):
		return false
	case part.Class == read.Do:
		return p.do(part)
	case part.Class == read.Call:
		return p.call(part)
	case part.Class == read.Dynamic:
		return p.refuse(-1, part.At, advise.RunsDynamicSQL)
	case table < 0, part.Class == read.NoRows, part.Class == read.Reading:
		return true
	case part.Class == read.Joins:
		return p.refuse(table, at, advise.JoinsTree)
	case !p.refuseOwn(part.Range):
		return false
	case part.Class == read.Definition, p.inBulkElsewhere(table, part), p.onlyRefers(part):
		return true
	}
	return p.refuse(table, at, p.againstKind(part))
}

// againstKind returns why a kind of statement can't be guarded, and what to write instead.
func (p protection) againstKind(part *read.Part) advise.Code {
	switch {
	case p.Word(part.Lo, "copy"):
		return advise.CopiesRows
	case p.Word(part.Lo, "load"):
		return advise.LoadsRows
	}
	return advise.OtherKind
}

// onlyRefers reports whether an ALTER TABLE names registered tables only as the targets of its foreign keys. Such a
// statement writes no rows of the registered tables.
func (p protection) onlyRefers(part *read.Part) bool {
	if !p.Word(part.Lo, "alter") || !p.Word(part.Lo+1, "table") || len(p.index.patterns) > 0 {
		return false
	}
	from := part.Lo
	for i := part.Lo; i < part.Hi; i++ {
		next := p.Referenced(i)
		if next == i {
			continue
		}
		if table, _ := p.named(lex.Range{Lo: from, Hi: i}); table >= 0 {
			return false
		}
		from, i = next, next-1
	}
	table, _ := p.named(lex.Range{Lo: from, Hi: part.Hi})
	return table < 0
}

// inBulkElsewhere reports whether a statement that is refused only because of a pattern fills or empties only tables
// outside of all patterns.
func (p protection) inBulkElsewhere(table int, part *read.Part) bool {
	if table >= len(p.Tables) || !p.Tables[table].Pattern {
		return false
	}
	tables, alone := p.Bulk(part)
	return alone && !slices.ContainsFunc(tables, func(t read.Target) bool {
		return p.index.covering(t.Schema, t.Name) >= 0 || p.registered(t.Schema, t.Name) >= 0
	})
}

// do decides whether PostgreSQL's DO, which runs code, passes: the text must show all the code that can run, and the
// code must not name a registered table.
func (p protection) do(part *read.Part) bool {
	code, at, reason := p.Code(*part)
	switch {
	case reason == advise.OtherLanguage:
		return p.refuse(-1, at, advise.RunsOtherLanguage)
	case reason != advise.Readable:
		return p.refuse(-1, at, reason)
	case at == part.Hi:
		return true // an error
	case !p.codeNamesNothing(at, code):
		return false
	case len(p.Tables) > 0 && againstCode(p.Dialect, code) != advise.Readable:
		return p.refuse(-1, at, againstCode(p.Dialect, code))
	case read.Executes(p.Dialect.Grammar, code):
		return p.refuse(-1, at, advise.RunsExecute)
	}
	return true
}

// call refuses a CALL that names a registered table, in its code or in a string argument, because the procedure may
// execute the string.
func (p protection) call(part *read.Part) bool {
	if table, at := p.named(part.Range); table >= 0 {
		return p.refuse(table, at, advise.CodeNames)
	}
	for i := part.Lo; i < part.Hi; i++ {
		if p.Tokens[i].Kind == lex.Text && !p.passesAlone(i) && !p.codeNamesNothing(i, p.TokenText(i)) {
			return false
		}
	}
	return true
}

// passesAlone reports whether the text at a token, which the statement prepares or executes, would pass as a statement.
func (p protection) passesAlone(i int32) bool {
	if !p.Word(p.Lo, "prepare", "execute") || !p.Word(i-1, "from", "immediate") {
		return false
	}
	plan := p.Registration.Read(lex.Unquote(p.TokenText(i)), 0)
	return plan.Verdict == guard.Pass && len(plan.Settings) == 0
}

// codeNamesNothing refuses code, at a token, that contains or may contain the name of a registered table.
func (p protection) codeNamesNothing(at int32, code string) bool {
	if table := p.search.namedIn(code); table >= 0 {
		return p.refuse(table, at, advise.CodeNames)
	}
	if len(p.index.patterns) > 0 && (mayWrite(code) || !p.Word(p.Lo, "do")) {
		return p.refuse(p.index.patterns[0], at, advise.CodeMayWrite)
	}
	if name := ownIn(code); name != "" {
		return p.refuseNamed(name, at, advise.OwnObject)
	}
	for i := range len(code) {
		if lex.HasPrefixFold(code[i:], `u&"`) {
			return p.refuse(-1, at, advise.CodeEscapes)
		}
	}
	return true
}

// keepsEncoding refuses a statement that visibly changes the encoding of the following statements.
func (p protection) keepsEncoding() bool {
	at, setters := p.ChangesEncoding(), p.Dialect.Guard.Setters
	setting, value := p.EncodingSetting()
	return at < 0 || setters != nil && p.writesOrReads() && !p.names(setters) ||
		p.refuse(-1, at, advise.ChangesEncoding, setting, value)
}

// keepsErrors refuses a statement that makes the server cut off its errors' texts, because a refusal couldn't be
// recognised any more.
func (p protection) keepsErrors() bool {
	at := p.CutsErrors()
	return at < 0 || p.refuse(-1, at, advise.CutsErrors)
}

// keepsClock refuses a statement that changes its session's time, because row locks would expire by the changed time.
func (p protection) keepsClock() bool {
	if !p.index.locks {
		return true
	}
	at := p.SetsClock()
	return at < 0 || p.refuse(-1, at, advise.SetsClock)
}

// keepsLocks refuses a statement that makes MariaDB release the lock of the ledger's row before the transaction's
// writes are committed, because a newer token could be issued before the commit.
func (p protection) keepsLocks() bool {
	if !p.index.ledger {
		return true
	}
	at := p.PreparesTransaction()
	return at < 0 || p.refuse(-1, at, advise.PreparesTransaction)
}
