package rules

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// System tables hold the definitions of all tables, triggers and functions. A client that writes to system tables can
// replace a registered table, or switch off the objects that guards and seals depend on. Reads of system tables pass.

// isDefining reports whether a table, by its normalised name, is a system table that defines tables, triggers or
// functions.
func (p *planner) isDefining(schema, name string) bool {
	return len(p.Tables) > 0 && defines(p.Dialect, schema, name)
}

// defines reports whether the rows of a table are definitions of tables, triggers or functions.
func defines(d *render.Dialect, schema, name string) bool {
	g := d.Guard
	return slices.Contains(g.DefiningTables, name) &&
		(schema == "" || g.DefiningSchema == "" || schema == g.DefiningSchema)
}

// keepsDefinitions refuses a statement that the parser has read neither as a write of rows nor as code, and that writes
// to a system table with definitions.
func (p protection) keepsDefinitions(s lex.Range) bool {
	if len(p.Tables) == 0 {
		return true
	}
	at := writesDefinitions(p.Dialect, p.Text, s)
	return at < 0 || p.refuse(-1, at, advise.DefinesTables)
}

// writesDefinitions returns the token of a system table with definitions that the tokens of s write to, or -1.
func writesDefinitions(d *render.Dialect, t *read.Text, s lex.Range) int32 {
	alters, creates := false, false
	for i := s.Lo; i < s.Hi; i++ {
		goesOn := !t.Tokens[i].Is(';')
		alters = goesOn && (alters || t.Word(i, "truncate", "alter", "drop"))
		creates = goesOn && (creates || t.Word(i, "create"))
		name, ok := t.Name(int(i))
		if !ok || t.Tokens[i+1].Is('.') {
			continue
		}
		schema, before := "", i-1
		if before > s.Lo && t.Tokens[before].Is('.') {
			schema, _ = t.Name(int(i) - 2)
			before = i - 3
		}
		if defines(d, schema, name) && (alters || isWritten(t, s.Lo, before, creates)) {
			return i
		}
	}
	return -1
}

// isWritten reports whether the words from token lo to token i, before a table's name, write to the table. creates
// reports whether the words belong to a CREATE.
//
//	UPDATE [ONLY] | INTO | DELETE FROM [ONLY] | COPY | CREATE TRIGGER ... ON | CREATE RULE ... TO |
//	CREATE VIRTUAL TABLE ... USING
//
// The module of a virtual table counts as written, because the new table may be another name of the module's own table.
func isWritten(t *read.Text, lo, i int32, creates bool) bool {
	for i > lo && (t.Tokens[i].Is('(') || t.Tokens[i].Is('.') || t.Tokens[i+1].Is('.') || t.Word(i, "only", "binary")) {
		i--
	}
	switch {
	case i < lo:
		return false
	case creates && (t.Word(i, "on", "to") || t.Word(i, "using") && t.Word(lo+1, "virtual")):
		return true
	}
	return t.Word(i, "update", "into", "copy") || i > lo && t.Word(i, "from") && t.Word(i-1, "delete")
}

// againstCode returns why code must not run: it may change a setting that the text doesn't show, or it writes to a
// system table with definitions. The result is empty for any other code. Code that can't be read is refused.
func againstCode(d *render.Dialect, code string) advise.Code {
	unseen := d.Guard.DynamicSetting
	if unseen == nil {
		return advise.Readable
	}
	t, err := read.Open(d.Grammar, code, lex.EscapesUnknown)
	if err != nil {
		return sqltext.DynamicSetting
	}
	defer t.Close()
	for i := range t.Tokens[:len(t.Tokens)-1] {
		if reason := unseen(&t.Scanned, int32(i)); reason != "" {
			return advise.Code(reason)
		}
	}
	if writesDefinitions(d, t, lex.Range{Hi: int32(len(t.Tokens) - 1)}) >= 0 {
		return advise.DefinesTables
	}
	return advise.Readable
}

// keepsPlaces refuses the definition of an object that statements or guards could find in a table's place. It refuses a
// view with the name of a table in which guards read columns, in any schema, because sessions choose where names are
// resolved. It refuses a temporary object with the name of a table with claims.
//
//	CREATE [...] [TEMP | TEMPORARY] [...] {TABLE | VIEW} [IF NOT EXISTS] [schema.]name
func (p protection) keepsPlaces(part *read.Part) bool {
	temporary := false
	for i := part.Lo; i < part.Hi; i++ {
		temporary = temporary || p.Word(i, "temp", "temporary")
		if !p.Word(i, "table", "view") {
			continue
		}
		at := i + 1
		if p.Word(at, "if") {
			at = min(at+3, part.Hi)
		}
		schema, name, _, ok := p.Dialect.Grammar.Lex.QualifiedName(p.Src, p.Tokens, int(at))
		if !ok {
			continue
		}
		temporary = temporary || schema == "temp" || strings.HasPrefix(schema, "pg_temp")
		return (!p.Word(i, "view") || p.keepsViews(name, at)) && (!temporary || p.keepsClaims(name, at))
	}
	return true
}

// keepsViews refuses a view with the name of a table with columns that guards read.
func (p protection) keepsViews(name string, at int32) bool {
	_, alone := p.index.exact[schemaAndName{"", name}] // no pattern covers the name
	alone = alone || p.index.isExempt("", name)
	table := slices.IndexFunc(p.Tables, func(t render.Registered) bool {
		return len(t.Owned) > 0 && (t.Pattern && !alone || !t.Pattern && t.Name == name)
	})
	return table < 0 || p.refuse(table, at, advise.ViewInPlace)
}
