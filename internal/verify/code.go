package verify

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// checkCode looks for stored code that writes to registered tables: what it does, no statement
// shows.
func checkCode(l *look) error {
	if len(l.targets) == 0 {
		return nil
	}
	var words []string
	for _, t := range l.targets {
		words = append(words, strings.ToLower(t.rel.name))
		if t.Fence != "" {
			words = append(words, strings.ToLower(t.Fence))
		}
	}
	slices.Sort(words)
	all, err := l.db.code(l, slices.Compact(words))
	if err != nil {
		return err
	}
	var hidden []string
	for _, c := range all {
		switch {
		case isOwn(c.bare):
		case c.hidden:
			hidden = append(hidden, c.name)
		default:
			b := newBody(l.db, c.body)
			b.home = c.home
			l.readCode(c, b)
		}
	}
	if len(hidden) > 0 {
		l.unseen("what some stored code does", fmt.Sprintf("%d routines, such as %s", len(hidden), hidden[0]))
	}
	return nil
}

// isOwn reports whether a function or trigger is sqlfence's: the ledger's, or a seal's.
func isOwn(name string) bool {
	return strings.HasPrefix(name, "sqlfence_") || strings.HasPrefix(name, "sqlfence-")
}

// readCode reports what some code does to the registered tables.
func (l *look) readCode(c code, b body) {
	kind := strings.ToUpper(c.kind[:1]) + c.kind[1:]
	for _, t := range l.targets {
		on := ""
		if c.on != "" {
			on = " on " + c.on
		}
		f := Finding{Code: c.kind}
		if c.kind != "trigger" { // MariaDB has packages, too
			f.Code = "function"
		}
		switch {
		case t.Fence != "" && slices.Contains(c.fires, t.rel.id) && b.setsNew(l.db, t.Fence):
			f.Severity = Warning
			f.Problem = fmt.Sprintf("%s %s%s sets the fence column %s: a guard's token isn't what is stored.", kind, c.name, on, quoteIfNeeded(l.db, t.Fence))
			f.Remedy = "Leave the column to sqlfence."
		case b.writes(l.db, t.rel):
			f.Severity = Warning
			f.Problem = fmt.Sprintf("%s %s%s writes to table %s: such a write carries no token.", kind, c.name, on, l.name(t.rel))
			f.Remedy = "Let the application write in its place, or seal the table."
			l.sealed(t, &f)
		case b.names(l.db, t.rel) && b.dynamic:
			f.Severity = Warning
			f.Problem = fmt.Sprintf("%s %s%s names table %s and runs SQL that it makes itself: it may write without a token.", kind, c.name, on, l.name(t.rel))
			f.Remedy = "Look at what it does, and let the application write in its place, or seal the table."
			l.sealed(t, &f)
		case b.names(l.db, t.rel):
			f.Problem = fmt.Sprintf("%s %s%s names table %s; no write to it was found in its text.", kind, c.name, on, l.name(t.rel))
			f.Remedy = "Look whether it writes to the table in another way."
		default:
			continue
		}
		l.add(t.Table, f)
	}
}

// A body is the text of some stored code, read roughly: which tables it writes to, and which
// words it has.
type body struct {
	text    string
	home    string // the schema in which it finds names without one; empty if that isn't known
	targets []written
	words   map[string]bool // as same has them
	dynamic bool            // it runs texts as SQL
}

// written is a table that a statement names as its target; schema may be empty.
type written struct{ schema, name string }

const ident = "(?:\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`|\\[[^\\]]+\\]|[\\p{L}_][\\p{L}\\p{N}_$]*)"

var (
	comments = regexp.MustCompile(`--[^\n]*|(?s:/\*.*?\*/)`)
	words    = regexp.MustCompile(ident)
	dynamic  = regexp.MustCompile(`(?i)\b(?:execute|prepare|dblink\w*|exec)\b`)
	targets  = regexp.MustCompile(`(?i)\b(?:` +
		`insert\s+(?:or\s+\w+\s+|low_priority\s+|delayed\s+|high_priority\s+|ignore\s+)*(?:into\s+)?|` +
		`replace\s+(?:low_priority\s+|delayed\s+)?(?:into\s+)?|` +
		`update\s+(?:or\s+\w+\s+|low_priority\s+|ignore\s+)*(?:only\s+)?|` +
		`delete\s+(?:low_priority\s+|quick\s+|ignore\s+)*from\s+(?:only\s+)?|` +
		`merge\s+into\s+(?:only\s+)?|` +
		`truncate\s+(?:table\s+)?(?:only\s+)?|` +
		`load\s+data\s[^;]*?\binto\s+table\s+|` +
		`copy\s+)(` + ident + `(?:\s*\.\s*` + ident + `)?)`)
	truncated = regexp.MustCompile(`(?i)\btruncate\b[^;]*,[^;]*`)
	joined    = regexp.MustCompile(`(?is)\b(?:update|delete)\b[^;]*?\b(?:join|using)\b[^;]*`)
)

func newBody(db Database, text string) body {
	b := body{text: comments.ReplaceAllString(text, " "), words: make(map[string]bool)}
	for _, match := range targets.FindAllStringSubmatch(b.text, -1) {
		parts := words.FindAllString(match[1], 2)
		w := written{name: db.same(db.word(parts[len(parts)-1]))}
		if len(parts) == 2 {
			w.schema = db.same(db.word(parts[0]))
		}
		b.targets = append(b.targets, w)
	}
	for _, statement := range truncated.FindAllString(b.text, -1) {
		for _, word := range words.FindAllString(statement, -1) {
			b.targets = append(b.targets, written{name: db.same(db.word(word))})
		}
	}
	if db.writesJoined() {
		for _, statement := range joined.FindAllString(b.text, -1) {
			for _, word := range words.FindAllString(statement, -1) {
				b.targets = append(b.targets, written{name: db.same(db.word(word))})
			}
		}
	}
	for _, word := range words.FindAllString(b.text, -1) {
		b.words[db.same(db.word(word))] = true
	}
	b.dynamic = dynamic.MatchString(b.text)
	return b
}

func (b body) names(db Database, rel *relation) bool {
	return b.words[db.same(rel.name)] && b.finds(db, rel)
}

// finds reports whether a name without a schema may be the relation's.
func (b body) finds(db Database, rel *relation) bool {
	schema := db.same(rel.schema)
	return b.home == "" || db.same(b.home) == schema || b.words[schema]
}

func (b body) writes(db Database, rel *relation) bool {
	return slices.ContainsFunc(b.targets, func(w written) bool {
		return w.name == db.same(rel.name) && (w.schema == db.same(rel.schema) || w.schema == "" && b.finds(db, rel))
	})
}

// setsNew reports whether a trigger assigns a column of the new row.
func (b body) setsNew(db Database, column string) bool {
	for _, match := range assigned.FindAllStringSubmatch(b.text, -1) {
		if name := cmp.Or(match[1], match[2]); db.same(db.word(name)) == db.same(column) {
			return true
		}
	}
	return false
}

// assigned: = is an assignment where a statement begins, and a comparison elsewhere.
var assigned = regexp.MustCompile(`(?i)(?:^|;|,|\b(?:then|else|begin|loop|set)\b)\s*new\s*\.\s*(` + ident + `)\s*=|\bnew\s*\.\s*(` + ident + `)\s*:=`)
