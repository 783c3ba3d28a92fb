package confirm

import (
	"strings"
	"testing"
)

// confirmed takes the check of a text in which «» are around each piece, of these
// kinds in their order. The pieces are written for the table books.
func confirmed(d *Dialect, marked string, kinds ...Kind) bool {
	c := Begin()
	defer c.Release()
	text := ""
	for _, kind := range kinds {
		before, rest, _ := strings.Cut(marked, "«")
		inside, after, _ := strings.Cut(rest, "»")
		lo := len(text) + len(before)
		c.Add(Piece{Kind: kind, Lo: lo, Hi: lo + len(inside), Target: d.Names.Quote("books")})
		text, marked = text+before+inside, after
	}
	return c.Confirms(d, text+marked)
}

// around returns the kinds of the pieces in a text: a closing one has "serial".
func around(marked string) (kinds []Kind) {
	for _, p := range strings.Split(marked, "«")[1:] {
		inside, _, _ := strings.Cut(p, "»")
		if strings.Contains(inside, "serial") {
			kinds = append(kinds, BehindValue)
		} else {
			kinds = append(kinds, BeforeValue)
		}
	}
	return kinds
}

// testKind confirms texts with a piece of one kind in PostgreSQL's dialect.
func testKind(t *testing.T, kind Kind, texts map[string]bool) {
	t.Helper()
	for text, want := range texts {
		if got := confirmed(Postgres, text, kind); got != want {
			t.Errorf("confirmed = %v, want %v: %s", got, want, text)
		}
	}
}
