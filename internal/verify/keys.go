package verify

import (
	"fmt"
	"regexp"
	"slices"
)

// A key is what a relation's rows are unique, found, linked or divided by.
type key struct {
	name    string
	kind    string // as "primary key", "unique index", "index"
	columns []string
	reads   string // the texts of its expressions and its condition
}

// checkKeys looks for fence columns that are part of a key: a guard gives each row that it
// writes another mark, and so another key.
func checkKeys(l *look) error {
	var of []*relation
	for _, t := range l.targets {
		if t.Fence != "" && !slices.Contains(of, t.rel) {
			of = append(of, t.rel)
		}
	}
	if len(of) == 0 {
		return nil
	}
	keys, err := l.db.keys(l, of)
	if err != nil {
		return err
	}
	for _, t := range l.targets {
		for _, k := range keys[t.rel.id] {
			l.judgeKey(t, k)
		}
	}
	return nil
}

func (l *look) judgeKey(t target, k key) {
	isFence := func(column string) bool { return l.db.same(column) == l.db.same(t.Fence) }
	if t.Fence == "" {
		return
	}
	named := k.kind
	if k.name != "" {
		named += " " + quoteIfNeeded(l.db, k.name)
	}
	f := Finding{Severity: Warning, Code: "fence-key"}
	fence := "The fence column " + quoteIfNeeded(l.db, t.Fence) + " of table " + l.name(t.rel)
	switch {
	case slices.ContainsFunc(k.columns, isFence):
		if k.kind == "index" {
			return
		}
		f.Problem = fmt.Sprintf("%s is in the %s: each guarded write gives the row the token as its mark, and so another key, which two rows with one token may share.", fence, named)
		f.Remedy = "Register a column of its own."
	case newBody(l.db, constants.ReplaceAllString(k.reads, "''")).words[l.db.same(t.Fence)]:
		f.Problem = fmt.Sprintf("%s is read by the %s: a guarded write may put the row into it, or take it out, or give it another place there.", fence, named)
		f.Remedy = "Don't let it depend on the mark; a row that isn't in it isn't unique by it."
		if k.kind == "index" {
			f.Severity, f.Remedy = Note, "Nothing has to be done, if no query relies on it."
		}
	default:
		return
	}
	l.add(t.Table, f)
}

var constants = regexp.MustCompile(`'(?:[^']|'')*'`)

// keysOf puts rows together: a relation's id, the kind, the name, a column, and the texts that are read. Those of one
// key are one behind another.
func keysOf(rows [][]string) map[string][]key {
	found := make(map[string][]key)
	for _, r := range rows {
		of := found[r[0]]
		if last := len(of) - 1; last < 0 || of[last].kind != r[1] || of[last].name != r[2] {
			of = append(of, key{kind: r[1], name: r[2]})
		}
		k := &of[len(of)-1]
		if r[3] != "" {
			k.columns = append(k.columns, r[3])
		}
		k.reads += " " + r[4]
		found[r[0]] = of
	}
	return found
}
