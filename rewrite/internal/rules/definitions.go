package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A database's own tables hold the definitions of all others, of their triggers and functions. Who may write to them
// can replace a registered table, or switch off what guards and seals rely on. Reads of them pass.

// isDefining reports whether a table, by its normalised name, has definitions that matter.
func (p *planner) isDefining(schema, name string) bool {
	return len(p.Tables) > 0 && defines(p.Dialect, schema, name)
}

// defines reports whether a table's rows are definitions.
func defines(d *render.Dialect, schema, name string) bool {
	g := d.Guard
	return slices.Contains(g.DefiningTables, name) &&
		(schema == "" || g.DefiningSchema == "" || schema == g.DefiningSchema)
}

// keepsDefinitions refuses a statement that isn't read as a write of rows, or code, and writes to a table with
// definitions all the same.
func (p ground) keepsDefinitions(s lex.Span) bool {
	if len(p.Tables) == 0 {
		return true
	}
	at := writesDefinitions(p.Dialect, p.Text, s)
	return at < 0 || p.refuse(-1, at, advise.DefinesTables)
}

// writesDefinitions returns the token of a table with definitions that some tokens write to, or -1.
func writesDefinitions(d *render.Dialect, t *read.Text, s lex.Span) int32 {
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

// isWritten reports whether what ends at a token, in front of a table's name, writes to the table. creates: it is a
// part of a CREATE.
//
//	UPDATE [ONLY] | INTO | DELETE FROM [ONLY] | COPY | CREATE TRIGGER ... ON | CREATE RULE ... TO
func isWritten(t *read.Text, lo, i int32, creates bool) bool {
	for i > lo && (t.Tokens[i].Is('(') || t.Tokens[i].Is('.') || t.Tokens[i+1].Is('.') || t.Word(i, "only", "binary")) {
		i--
	}
	switch {
	case i < lo:
		return false
	case creates && t.Word(i, "on", "to"):
		return true
	}
	return t.Word(i, "update", "into", "copy") || i > lo && t.Word(i, "from") && t.Word(i-1, "delete")
}
