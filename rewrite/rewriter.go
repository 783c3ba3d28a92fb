package rewrite

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// A Rewriter plans the statements of one database. It is safe for concurrent use.
type Rewriter struct {
	dialect Dialect
	tables  []Table
	starts  []string // of the names that a statement is read for
	begins  pairs    // their first two bytes, in either case
	plans   *cache
	tokens  sync.Pool

	versioned *cache // of VersionedPlan
}

// New returns a rewriter that guards tables. It keeps the 1,024 plans used most
// lately of each kind, of statements of at most 8 KiB. A dialect that can't be guarded, a
// table without a name or a rule, one of those that sqlfence's packages keep, and two tables that
// one name could mean are errors, which are returned together. Statements that write to or define one of those are
// refused, also without any table.
func New(d Dialect, tables []Table) (*Rewriter, error) {
	r := &Rewriter{dialect: d, tables: slices.Clone(tables), plans: newCache(1024), versioned: newCache(1024)}
	if _, err := d.guarded(); err != nil && len(tables) > 0 {
		return nil, err
	}
	if err := checkTables(tables); err != nil {
		return nil, err
	}
	for i, t := range tables {
		r.tables[i].quote(d)
		r.lookFor(start(t.Name))
	}
	if d == Postgres && len(tables) > 0 {
		r.begins.add(";") // a statement may follow that names nothing
		r.lookFor("client_encoding")
		r.begins.add("names") // it counts only as a whole word
	}
	if d == Postgres || d == SQLite {
		r.lookFor("fencing_")
		r.lookFor("rowlocks")
	}
	switch {
	case d == Postgres:
		r.lookFor(`u&"`) // it spells any name: U&"\0062ooks"
	case d == SQLite && len(tables) > 0:
		r.lookFor("sqlite_") // the tables of the schema
	}
	return r, nil
}

func (r *Rewriter) lookFor(start string) {
	r.starts = append(r.starts, start)
	r.begins.add(start)
}

// pairs is a set of two bytes: for each first one the bits of those that follow.
type pairs [256][256 / 64]uint64

// add adds what a name may begin with in a statement, in either case: every second
// byte where the name has one byte, or begins with a letter outside of ASCII, and
// those of other such letters, which a locale may fold to its second one.
func (p *pairs) add(name string) {
	const all = ^uint64(0)
	for _, first := range firstBytes(name) {
		if len(name) == 1 || first >= utf8.RuneSelf {
			p[first] = [4]uint64{all, all, all, all}
			continue
		}
		p[first][2], p[first][3] = all, all
		for _, second := range [...]byte{lowerByte(name[1]), upperByte(name[1])} {
			p[first][second/64] |= 1 << (second % 64)
		}
	}
}

func (p *pairs) has(a, b byte) bool { return p[a][b/64]&(1<<(b%64)) != 0 }

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

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		c &^= 0x20
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
	rd := reader{dialect: r.dialect, src: query, toks: toks, tables: r.tables, inOneWay: inOneWay, versioned: versioned}
	p := rd.script()
	if cap(toks) <= maxKept {
		*buf = toks
		r.tokens.Put(buf)
	}
	return p
}

// maxKept is how many tokens' room is kept for the next statement.
const maxKept = 64 << 10

func refusal(table, offset int, reason string) *Plan {
	return &Plan{Verdict: Refuse, Refusal: Refusal{Table: table, Reason: reason, Offset: offset}}
}
