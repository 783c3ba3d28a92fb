package confirm

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/random"
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
	for range random.Rounds(t, 20_000) {
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

// rowPieces are what random rows consist of; what stands in «» is a piece.
var rowPieces = strings.Split(`(1, $1, 'a')|(1«, $3»)|(1«, $3»)|($1, ?«, $3»)|(?, 2«, ?3»«, 1»)|(1«, f($3, ')')»)|('a' «, $3»)|(1«, $3» )|`+
	`(1«, 2»«/**/, 1»)|(1, 2) |()|(«, 1»)|(1«»)|(1«, 1)»|(1«, 'a»')|(1«, 1 -- »)|(1«, (1»)|(-1«, $3»)|(now()«, $3»)|(1)«, $3»|((1)«, $3»)|(1«, $3», 2)|`+
	`(1 /* a */«, $3»)|( 12 , 3)|('a''b'«, $3»)|('a\\'«, $3»)|a|,|)|;|RETURNING a`, "|")

// TestRows shows that what is confirmed of rows in one step is what is confirmed of their tokens.
func TestRows(t *testing.T) {
	r, rounds, confirmed := rand.New(rand.NewPCG(7, 8)), random.Rounds(t, 30_000), 0
	for range rounds {
		text := "INSERT INTO books (a) VALUES "
		if r.IntN(4) == 0 {
			text = []string{"UPDATE books SET a = ", "VALUES ", "REPLACE INTO books VALUES "}[r.IntN(3)]
		}
		for n := range 1 + r.IntN(6) {
			if n > 0 {
				text += [...]string{", ", ",", " , ", ", -- a\n"}[r.IntN(4)]
			}
			text += rowPieces[r.IntN(len(rowPieces)>>(2*r.IntN(2)))]
		}
		for _, d := range All() {
			one, pieces := Begin(), []Piece{}
			plain := strings.NewReplacer("«", "", "»", "").Replace(text)
			for i, rest := 0, text; rest != ""; {
				before, piece, found := strings.Cut(rest, "«")
				if i += len(before); !found {
					break
				}
				inner, behind, _ := strings.Cut(piece, "»")
				kind := RowValue
				if r.IntN(20) == 0 {
					kind = Condition
				}
				pieces = append(pieces, Piece{Kind: kind, Lo: i, Hi: i + len(inner)})
				i, rest = i+len(inner), behind
			}
			other := Begin()
			for _, c := range []*Check{one, other} {
				c.Number(3)
				c.scanner = scanner{dialect: d, text: plain, numbers: c.numbers}
				c.frames = append(c.frames[:0], frame{head: true})
			}
			got, want := one.walk(pieces), other.walkTokens(pieces)
			if got != want || got && !(reflect.DeepEqual(one.inputs, other.inputs) && slices.Equal(one.frames, other.frames)) {
				t.Fatalf("%s: %s is confirmed: %v, and token by token: %v\n%+v %+v\n%+v %+v", d.name(), text, got, want,
					one.inputs, one.frames, other.inputs, other.frames)
			}
			if got && len(pieces) > 1 {
				confirmed++
			}
			one.Release()
			other.Release()
		}
	}
	if confirmed < rounds/30 {
		t.Errorf("only %d texts with several pieces are confirmed", confirmed)
	}
}

// walkTokens is walk for pieces that are whole, token by token.
func (c *Check) walkTokens(pieces []Piece) bool {
	for c.next() {
		if len(pieces) == 0 || c.hi <= pieces[0].Lo {
			if !c.step(false) {
				return false
			}
			continue
		}
		p := &pieces[0]
		if !c.begins(p) || !c.belongs(p) || !c.skip(p) {
			return false
		}
		pieces = pieces[1:]
	}
	return !c.failed && len(pieces) == 0 && len(c.frames) == 1
}
