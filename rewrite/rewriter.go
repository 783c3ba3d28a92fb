package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A Rewriter plans the statements of one database. It is safe for concurrent use.
type Rewriter struct {
	dialect Dialect
	tables  []Table
	starts  []string  // of the tables' names
	first   [256]bool // the bytes with which begins what has to be looked at closer
	plans   *cache
	tokens  sync.Pool

	versioned *cache // of VersionedPlan
}

// New returns a rewriter that guards tables. It keeps the 1,024 plans used most
// lately of each kind, of statements of at most 8 KiB. A dialect that can't be guarded, a
// table without a name or a rule, and two tables that one name could mean are
// errors.
func New(d Dialect, tables []Table) (*Rewriter, error) {
	r := &Rewriter{dialect: d, tables: slices.Clone(tables), plans: newCache(1024), versioned: newCache(1024)}
	if d != Postgres && d != SQLite && len(tables) > 0 {
		return nil, fmt.Errorf("%v can't be guarded yet, only PostgreSQL and SQLite", d)
	}
	for i, t := range tables {
		switch {
		case t.Name == "":
			return nil, errors.New("a table has no name")
		case !t.Fenced() && (t.Serial == "" && !t.locks() || t.Key != ""):
			return nil, fmt.Errorf("table %q has neither a fence column nor a ledger", t.Name)
		case t.Fence != "" && t.Fence == t.Key:
			return nil, fmt.Errorf("table %q: %q can't be both fence and key", t.Name, t.Key)
		}
		if t.Serial != "" && (t.Serial == t.Fence || t.Serial == t.Key) {
			return nil, fmt.Errorf("table %q: %q can't be the serial, and fence or key", t.Name, t.Serial)
		}
		if column := t.sharedColumn(); column != "" {
			return nil, fmt.Errorf("table %q: its lock has the column %q twice, or shares it with another rule", t.Name, column)
		}
		for _, u := range tables[:i] {
			if t.Name == u.Name && (t.Schema == u.Schema || t.Schema == "" || u.Schema == "") {
				return nil, fmt.Errorf("table %q is registered twice, or with and without its schema", t.Name)
			}
		}
		r.tables[i].fence, r.tables[i].key, r.tables[i].serial = quoteName(d, t.Fence), quoteName(d, t.Key), quoteName(d, t.Serial)
		r.tables[i].Lock.quote(d)
		r.starts = append(r.starts, start(t.Name))
		for _, c := range firstBytes(t.Name) {
			r.first[c] = true
		}
	}
	r.first[';'] = len(tables) > 0
	if d == Postgres && len(tables) > 0 {
		for _, c := range []byte("cCnN") { // client_encoding, NAMES
			r.first[c] = true
		}
	}
	return r, nil
}

// equalFold compares s with a lower-case name, ASCII letters in either case.
func equalFold(s, name string) bool {
	if len(s) != len(name) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if lowerByte(s[i]) != lowerByte(name[i]) {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// read makes the plan of a statement that mentions a table.
func (r *Rewriter) read(query string) *Plan { return r.readAs(query, false) }

func (r *Rewriter) readAs(query string, versioned bool) *Plan {
	if len(query) > maxRead {
		return refusal(-1, 0, fmt.Sprintf("it has %d bytes, at most %d are read; split it", len(query), maxRead))
	}
	buf, _ := r.tokens.Get().(*[]token)
	if buf == nil {
		buf = new([]token)
	}
	toks, err := lex(r.dialect, query, (*buf)[:0])
	inOneWay := err != nil && err.what == bySetting && rejectedEscaping(query)
	if inOneWay {
		toks, err = lexAs(r.dialect, query, (*buf)[:0], standard)
	}
	if err != nil {
		return refusal(-1, err.offset, "it can't be read: "+err.reason)
	}
	rd := reader{dialect: r.dialect, src: query, toks: toks, tables: r.tables, versioned: versioned}
	p := rd.script()
	if inOneWay && p.Verdict == Guard {
		p.writer.inOneWay = true
	}
	if cap(toks) <= 4096 {
		*buf = toks
		r.tokens.Put(buf)
	}
	return p
}

func refusal(table, offset int, reason string) *Plan {
	return &Plan{Verdict: Refuse, Refusal: Refusal{Table: table, Reason: reason, Offset: offset}}
}
