package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
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
	p.ledgerEdit(first)
	return p.findsClaims(first)
}

// ledgerEdit puts the ledger's check where it belongs, if that is before the statement,
// which has the targets from first on.
func (p *planner) ledgerEdit(first int) {
	if p.dialect.LedgerInWhere() {
		return
	}
	with := "WITH"
	if p.HasWith {
		with = ""
	}
	for i := first; i < len(p.targets); i++ {
		if p.RulesOf(p.written[p.targets[i].Table]).Ledger {
			p.edits = append(p.edits, render.Edit{At: p.CTEAt, Op: render.OpWith, Text: with, Target: int32(first),
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
		if !p.dialect.ShadowsLedger(part.Name) {
			return true
		}
		if table, _ := p.mentionGuarded(part.Span); table >= 0 {
			return p.refuse(table, part.At, "a CTE named "+part.Name+" would shadow the ledger; rename the CTE")
		}
	case read.IntoPart:
		return (!render.IsOwnTable(part.Name) || p.refuseOwn(part.Span)) && ground{p}.keepsClaims(part.Name, part.At)
	case read.HiddenPart:
		if table, _ := p.mention(part.Span); table >= 0 {
			return p.refuse(table, part.At, "a write in this place can't be guarded; write it as a statement of "+
				"its own, or put it into WITH at the top")
		}
		return ground{p}.keepsDefinitions(part.Span)
	case read.UnreadablePart:
		if table, at := p.mention(part.Span); table >= 0 {
			if part.Reason != read.Readable {
				return p.refuse(table, part.At, part.Reason.String())
			}
			return p.refuse(table, at, "this statement can't be read; write it as plain UPDATE, DELETE or INSERT")
		}
		return ground{p}.keepsDefinitions(part.Span)
	case read.TooDeepPart:
		return p.refuse(-1, part.At, read.TooDeep.String())
	case read.OtherPart:
		return ground{p}.other(part)
	}
	return true
}

// other decides about a statement that isn't a write of rows.
func (p ground) other(part *read.Part) bool {
	table, at := p.mention(part.Span)
	if part.Class == read.Call {
		table, at = p.named(part.Span)
	}
	switch {
	case part.Class == read.Definition && !p.keepsPlaces(part):
		return false
	case part.Class != read.NoRows && part.Class != read.Reading && !p.keepsDefinitions(part.Span):
		return false
	case part.Class == read.Do:
		return p.do(part)
	case table >= 0 && part.Class == read.Call:
		return p.refuse(table, at, codeNames)
	case part.Class == read.Call:
		return p.call(part)
	case part.Class == read.Unseen:
		return p.refuse(-1, part.At, "what it runs can't be seen in its text; "+noCode)
	case table < 0, part.Class == read.NoRows, part.Class == read.Reading:
		return true
	case part.Class == read.Joins:
		return p.refuse(table, at, "it makes a registered table part of an inheritance tree, so that writes to "+
			"another table can reach its rows; run it under Bypass, and register both")
	case !p.refuseOwn(part.Span):
		return false
	case part.Class == read.Definition, p.inBulkElsewhere(table, part), p.onlyRefers(part):
		return true
	}
	return p.refuse(table, at, p.againstKind(part))
}

// againstKind returns why a kind of statement can't be guarded, and what to write instead.
func (p ground) againstKind(part *read.Part) string {
	switch {
	case p.Word(part.Lo, "copy"):
		return "rows that COPY sends can't be guarded; write INSERT ... SELECT unnest($1::bigint[]), ... with an " +
			"array for each column, or use CopyFrom of package fencepgx, or run it under Bypass"
	case p.Word(part.Lo, "load"):
		return "rows of a file can't be guarded; write INSERT, or load another table and write INSERT ... SELECT, " +
			"or run it under Bypass"
	}
	return "this kind of statement on a registered table can't be guarded; write UPDATE, DELETE or INSERT, or run it " +
		"under Bypass; a migration belongs on a connection without sqlfence"
}

// onlyRefers reports whether an ALTER TABLE names registered tables only as those that its foreign keys refer to: it
// writes no rows of these.
func (p ground) onlyRefers(part *read.Part) bool {
	if !p.Word(part.Lo, "alter") || !p.Word(part.Lo+1, "table") || len(p.index.patterns) > 0 {
		return false
	}
	from := part.Lo
	for i := part.Lo; i < part.Hi; i++ {
		next := p.Referenced(i)
		if next == i {
			continue
		}
		if table, _ := p.named(lex.Span{Lo: from, Hi: i}); table >= 0 {
			return false
		}
		from, i = next, next-1
	}
	table, _ := p.named(lex.Span{Lo: from, Hi: part.Hi})
	return table < 0
}

// inBulkElsewhere reports whether a statement that is refused for a pattern alone fills or empties tables for which
// none stands.
func (p ground) inBulkElsewhere(table int, part *read.Part) bool {
	if table >= len(p.Tables) || !p.Tables[table].Pattern {
		return false
	}
	tables, alone := p.Bulk(part)
	return alone && !slices.ContainsFunc(tables, func(t read.Target) bool {
		return p.index.covering(t.Schema, t.Name) >= 0 || p.registered(t.Schema, t.Name) >= 0
	})
}

// Reasons that stand in more than one place.
const (
	noCode    = "send its statements one by one, or run it under Bypass"
	codeNames = "code that names a registered table in its text can't be guarded; " + noCode
)

// do decides about PostgreSQL's DO, which runs code. It passes if all that the
// code can run stands in it, and names no registered table.
func (p ground) do(part *read.Part) bool {
	code, at, reason := p.Code(*part)
	switch {
	case reason == read.OtherLanguage:
		return p.refuse(-1, at, reason.String()+"; "+noCode)
	case reason != read.Readable:
		return p.refuse(-1, at, reason.String())
	case at == part.Hi:
		return true // an error
	case !p.codeNamesNothing(at, code):
		return false
	case len(p.Tables) > 0 && againstCode(p.dialect, code) != "":
		return p.refuse(-1, at, againstCode(p.dialect, code))
	case read.Executes(p.dialect.Grammar, code):
		return p.refuse(-1, at, "EXECUTE runs a text that is built at run time and can't be checked; "+noCode)
	}
	return true
}

// call decides about a CALL: the procedure may run a string.
func (p ground) call(part *read.Part) bool {
	for i := part.Lo; i < part.Hi; i++ {
		if p.Tokens[i].Kind == lex.Text && !p.codeNamesNothing(i, p.TokenText(i)) {
			return false
		}
	}
	return true
}

// codeNamesNothing refuses code, at a token, in which the name of a registered table
// stands or may stand.
func (p ground) codeNamesNothing(at int32, code string) bool {
	if table := p.search.namedIn(code); table >= 0 {
		return p.refuse(table, at, codeNames)
	}
	if len(p.index.patterns) > 0 && (mayWrite(code) || !p.Word(p.Lo, "do")) {
		return p.refuse(p.index.patterns[0], at, "code that may write can't be guarded where all tables are; "+noCode)
	}
	if name := ownIn(code); name != "" {
		return p.refuseNamed(name, at, ownObject)
	}
	for i := range len(code) {
		if lex.HasPrefixFold(code[i:], `u&"`) {
			return p.refuse(-1, at, "a name spelled with escapes isn't supported in code; write it in double quotes")
		}
	}
	return true
}

// keepsEncoding refuses a statement that says it changes the encoding in which the
// database reads the statements after it.
func (p ground) keepsEncoding() bool {
	at := p.ChangesEncoding()
	if at < 0 {
		return true
	}
	setting, value := p.EncodingSetting()
	return p.refuse(-1, at, "it may change "+setting+", which decides how later statements are read; sqlfence needs "+
		""+value)
}

// keepsErrors refuses a statement that makes the server cut off its errors' texts: a refusal
// couldn't be recognized any more.
func (p ground) keepsErrors() bool {
	at := p.CutsErrors()
	return at < 0 || p.refuse(-1, at, "in this character_set_results the server cuts off its errors at the first "+
		"byte, and with them why it refused a write; leave it utf8mb4")
}

// keepsClock refuses a statement that gives its session another time: a row's lock would expire by
// that.
func (p ground) keepsClock() bool {
	if !p.index.locks {
		return true
	}
	at := p.SetsClock()
	return at < 0 || p.refuse(-1, at, "it sets the session's clock, and locks of rows would expire by that; run it "+
		"under Bypass, on a connection of its own")
}

// keepsLocks refuses a statement that makes MariaDB release the lock of the ledger's row before the
// transaction's writes are committed: a newer token could be issued in between.
func (p ground) keepsLocks() bool {
	if !p.index.ledger {
		return true
	}
	at := p.PreparesTransaction()
	return at < 0 || p.refuse(-1, at, "XA PREPARE may release the ledger's lock before the transaction commits, so "+
		"that a newer token could be issued; "+
		"write XA COMMIT ... ONE PHASE, or use RowFence")
}
