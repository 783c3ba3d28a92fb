package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A code is a function, a trigger or other code that the database stores.
type code struct {
	kind, name   string   // as messages show them
	fires        []string // the ids of the relations that a trigger is on
	on           string   // the names of these relations, as messages show them
	body         string
	bare         string // the name without its schema or arguments
	searchSchema string // the schema in which the code finds names without a schema; empty if unknown
	hidden       bool   // the role can't see the body
}

func hearCode(l *look, r []string) {
	l.code = append(l.code, code{kind: r[0], name: r[1], fires: strings.Split(r[2], ","), on: r[3], body: r[4],
		bare: r[5], searchSchema: r[6], hidden: r[7] == "1"})
}

// codeWords returns the identifiers to search stored code for. Code without any of these identifiers isn't read.
func (l *look) codeWords() []string {
	var words []string
	for _, t := range l.targets {
		words = append(words, strings.ToLower(t.rel.name))
		for _, column := range []string{t.FenceColumn, t.Claim} {
			if column != "" {
				words = append(words, strings.ToLower(column))
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// checkCode looks for stored code that writes to registered tables, because the statements of a program don't show the
// writes of stored code.
func checkCode(l *look) {
	var hidden []string
	for _, c := range l.code {
		switch {
		// The ledger's, or a seal's.
		case strings.HasPrefix(c.bare, "sqlfence_"), strings.HasPrefix(c.bare, "sqlfence-"):
		case c.hidden:
			hidden = append(hidden, c.name)
		default:
			b := newBody(l.db, c)
			for _, t := range l.targets {
				l.judgeCode(t, c, b)
			}
		}
	}
	if len(hidden) > 0 {
		l.noteDenied("what some stored code does", fmt.Sprintf("%d routines, such as %s", len(hidden), hidden[0]))
	}
}

func (l *look) judgeCode(t target, c code, b *body) {
	what, table := strings.ToUpper(c.kind[:1])+c.kind[1:]+" "+c.name, l.name(t.rel)
	if c.on != "" {
		what += " on " + c.on
	}
	f := Finding{Level: Warning, Code: "side-effect"}
	switch {
	case t.FenceColumn != "" && slices.Contains(c.fires, t.rel.id) && b.assigns[l.db.same(t.FenceColumn)]:
		f.Problem = what + " sets the fence column " + l.spell("", t.FenceColumn) + ": a guard's token isn't what is stored."
		f.Remedy = "Leave the column to sqlfence."
		l.add(t.Table, f)
		return
	case t.Claim != "" && slices.Contains(c.fires, t.rel.id) && b.assigns[l.db.same(t.Claim)]:
		f.Problem = what + " sets the claim column " + l.spell("", t.Claim) +
			": what a takeover raises isn't what is stored, " +
			"and the claim before it may go on passing."
		f.Remedy = "Leave the column to the statements that take rows over."
		l.add(t.Table, f)
		return
	case b.writes(t.rel):
		f.Problem = what + " writes to table " + table + ": such a write carries no token."
	case !b.names(t.rel):
		return
	case b.hides != "":
		f.Problem = what + " names table " + table + " and " + b.hides + ": it may write without a token."
		f.Remedy = "Look at what it does, and let the application write in its place, or seal the table."
	default:
		f.Level = Note
		f.Problem = what + " names table " + table + "; no write to it was found in its text."
		f.Remedy = "Look whether it writes to the table in another way."
	}
	if f.Level > Note {
		f = l.sealed(t, f)
	}
	l.add(t.Table, f)
}

// A body holds the tables that some stored code writes to, and the identifiers in the code and in its constants,
// because the code may execute a constant as SQL.
type body struct {
	db           *Database
	searchSchema string
	targets      []relationName
	words        map[string]bool // the identifiers, normalised by same
	assigns      map[string]bool // columns of the new row
	hides        string          // why the code may do more than its text shows; empty if it can't
}

// newBody reads some code. If the code can't be read, each word counts as an assigned column.
func newBody(db *Database, c code) *body {
	b := &body{db: db, searchSchema: c.searchSchema, words: make(map[string]bool), assigns: make(map[string]bool)}
	if !b.read(c.body) {
		b.hides, b.assigns = "can't be read", b.words
	}
	return b
}

// read reads a body, or a constant in the body, and reports whether the lexer could read the text.
func (b *body) read(src string) bool {
	t := b.db.text(src)
	if !t.read {
		for _, word := range t.unread() {
			b.words[word.name] = true
		}
	}
	for i := range t.toks {
		switch t.toks[i].Kind {
		case lex.Text:
			b.words[t.name(i)] = true
			b.read(t.constant(i))
		case lex.Quoted:
			b.words[t.name(i)] = true
		case lex.Word:
			b.words[t.name(i)] = true
			b.statement(t, i)
			b.assignment(t, i)
		}
	}
	return t.read
}

// beforeTable lists the keywords that are allowed between a verb and its table.
var beforeTable = []string{"or", "replace", "ignore", "abort", "fail", "rollback", "low_priority", "high_priority",
	"delayed", "quick",
	"into", "from", "only", "table"}

// statement records the tables that the statement at token i writes to.
func (b *body) statement(t text, i int) {
	verb := t.word(i)
	switch {
	case verb == "execute", verb == "exec", verb == "prepare", strings.HasPrefix(verb, "dblink"):
		b.hides = "runs SQL that it makes itself"
		return
	case !slices.Contains([]string{"insert", "replace", "update", "delete", "merge", "truncate", "copy", "load"}, verb),
		t.is(i-1, "for", "key", "on"):
		return
	case verb == "load":
		for !t.is(i, "into") && t.toks[i].Kind != lex.End && !t.toks[i].Is(';') {
			i++
		}
	}
	for i++; t.is(i, beforeTable...); i++ {
	}
	switch {
	case verb == "truncate":
		b.targets = append(b.targets, t.tables(i)...)
	case b.db.writesJoined() && (verb == "update" || verb == "delete"):
		b.targets = append(b.targets, t.tables(i, "set", "where")...)
	default:
		if table, _, ok := t.table(i); ok {
			b.targets = append(b.targets, table)
		}
	}
}

// assignment records an assigned column of the new row: NEW.a := 1, or NEW.a = 1 at the beginning of a statement.
// Elsewhere NEW.a = 1 is a comparison.
func (b *body) assignment(t text, i int) {
	if t.word(i) != "new" || !t.toks[i+1].Is('.') {
		return
	}
	begins := i == 0 || t.toks[i-1].Is(';') || t.toks[i-1].Is(',') || t.is(i-1, "then", "else", "begin", "loop", "set")
	switch column, sign := t.name(i+2), i+3; {
	case column == "":
	case t.toks[sign].Is('='):
		b.assigns[column] = b.assigns[column] || begins
	case t.toks[sign].Is(':') && t.toks[sign+1].Is('='):
		b.assigns[column] = true
	}
}

func (b *body) names(rel *relation) bool { return b.words[b.db.same(rel.name)] && b.finds(rel) }

// finds reports whether a name without a schema may be the relation's.
func (b *body) finds(rel *relation) bool {
	schema := b.db.same(rel.schema)
	return b.searchSchema == "" || b.db.same(b.searchSchema) == schema || b.words[schema]
}

func (b *body) writes(rel *relation) bool {
	return slices.ContainsFunc(b.targets, func(n relationName) bool {
		return n.name == b.db.same(rel.name) && (n.schema == b.db.same(rel.schema) || n.schema == "" && b.finds(rel))
	})
}
