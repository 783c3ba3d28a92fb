package confirm

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// listPieces are what random texts with lists consist of.
var listPieces = strings.Split(`1|22|$1|$|?|?2|:a|'a'|'it''s'|E'a\'|x'1'|'|,|, |,|(|)|[|]| |--|/*|*/|1.5|.|1e5|a|"a"|$$|`+
	`UPDATE books SET|INSERT INTO books|VALUES|WHERE|id IN (|SELECT|CASE|END|AND|OR|;|=|;UPDATE|(1, 2), (3, 4)|1, 2, 3,`, "|")

// randomList returns a text with lists.
func randomList(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(40) {
		if b.WriteString(listPieces[r.IntN(len(listPieces))]); r.IntN(2) == 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// sameByMembers goes through a text token by token, and beside it with the members of lists in
// one step, and compares what is known wherever both have come to.
func sameByMembers(t *testing.T, d *Dialect, text string, stop int) {
	t.Helper()
	one, other := Begin(), Begin()
	defer one.Release()
	defer other.Release()
	for _, c := range []*Check{one, other} {
		c.scanner = scanner{dialect: d, text: text}
		c.frames = append(c.frames[:0], frame{head: true})
	}
	for other.next() && other.step(false) {
		if other.sign == ',' || other.sign == '(' || other.sign == '[' {
			at := other.hi
			if other.members([]Piece{{Lo: max(stop, at)}}); other.hi > max(stop, at) {
				t.Fatalf("%s: it went to %d of %q, behind %d", d.name(), other.hi, text, stop)
			}
		}
		for one.hi < other.hi {
			if !one.next() || !one.step(false) {
				t.Fatalf("%s: at %d of %q it has gone on to %d", d.name(), one.hi, text, other.hi)
			}
		}
		if !reflect.DeepEqual(one.scanner, other.scanner) || !slices.Equal(one.frames, other.frames) {
			t.Fatalf("%s: of %q\n%+v %+v\n%+v %+v", d.name(), text, one.scanner, one.frames, other.scanner, other.frames)
		}
	}
}

// TestMembers shows that the members of a list change nothing in one step that they don't
// change one by one.
func TestMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := randomList(r)
		for _, d := range All() {
			sameByMembers(t, d, text, r.IntN(len(text)+1))
		}
	}
}

// TestMember shows which members are taken in one step.
func TestMember(t *testing.T) {
	for text, want := range map[string]map[*Dialect]sign{
		"1,":      {Postgres: signNumber, SQLite: signNumber, MySQL: signNumber},
		" 12 ,":   {},
		"12,":     {Postgres: signNumber, SQLite: signNumber, MySQL: signNumber},
		"1.5,":    {},
		"1a,":     {},
		"1":       {},
		"$1,":     {Postgres: signInput},
		"$,":      {},
		"?,":      {SQLite: signInput, MySQL: signInput},
		"?7,":     {SQLite: signInput, MySQL: signInput},
		":a,":     {},
		"'a''b',": {Postgres: signString, SQLite: signString, MySQL: signString},
		"'a\\b',": {Postgres: signString, SQLite: signString, MySQL: signString},
		"'a\\',":  {Postgres: signString, SQLite: signString},
		"'a,":     {},
		"'a'b,":   {},
		"a,":      {},
		",":       {},
		"":        {},
	} {
		for _, d := range All() {
			s := scanner{dialect: d, text: text}
			if got := s.member(len(text)); got != want[d] || got != 0 && s.hi != len(text) || got == 0 && s.hi != 0 {
				t.Errorf("%s: %q is %q, to %d", d.name(), text, got, s.hi)
			}
			s = scanner{dialect: d, text: text}
			if got := s.member(max(0, len(text)-1)); got != 0 {
				t.Errorf("%s: %q is taken beyond the end", d.name(), text)
			}
		}
	}
}
