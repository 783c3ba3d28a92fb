package confirm

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/random"
)

// plainPieces are what random pieces consist of.
var plainPieces = strings.Split(`1|22|$1|$2|$|?|?2|:a|::int|@|'a'|'it''s'|'a\'|E'a\'|x'1'|_utf8mb4'a'|1e'a'|&'|U&'a'|"a"|"|'|,|(|)|[|]|-|-1|`+
	`--|/|*|/*|*/|#|1.5|.|1e5|a|e|ab|a$|"a""b"|$$|{|é|\|+|||=|CASE|END|;|`+"`a`|`|\uFEFF|\n", "|")

// plainText returns a text of some of them.
func plainText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		if b.WriteString(plainPieces[r.IntN(len(plainPieces))]); r.IntN(3) == 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// sameByBytes compares what is said of a piece, from lo to hi, by its bytes and by its tokens. It
// reports whether its bytes say something.
func sameByBytes(t *testing.T, d *Dialect, text string, lo, hi int) bool {
	t.Helper()
	start := func() *Check {
		c := Begin()
		c.scanner = scanner{dialect: d, text: text, hi: lo, numbers: []int{1}}
		return c
	}
	one, other := start(), start()
	defer one.Release()
	defer other.Release()
	if !one.scanner.next() || one.lo >= hi || !other.scanner.next() {
		return false
	}
	stop := hi - len(text[lo:hi]) + len(strings.TrimRight(text[lo:hi], " "))
	last, whole := other.plainEnd(stop)
	if !whole {
		if !reflect.DeepEqual(one.scanner, other.scanner) {
			t.Fatalf("%s: %q has moved it from %+v to %+v", d.name(), text, one.scanner, other.scanner)
		}
		return false
	}
	wantLast, want := one.tokensEnd(&Piece{Lo: lo, Hi: hi}, stop)
	one.lo, one.sign, other.lo, other.sign = 0, 0, 0, 0 // of the last token, which isn't looked at again
	if !want || (last == ',') != (wantLast == ',') || !reflect.DeepEqual(one.scanner, other.scanner) {
		t.Fatalf("%s: %q of %q is whole: %v, and ends with %q; by its bytes with %q\n%+v\n%+v", d.name(), text[lo:hi], text, want,
			wantLast, last, one.scanner, other.scanner)
	}
	return true
}

// TestPlainEnd shows that what the bytes of a piece say of it, its tokens say, too.
func TestPlainEnd(t *testing.T) {
	r, rounds, said := rand.New(rand.NewPCG(5, 6)), random.Rounds(t, 100_000), 0
	for range rounds {
		before, piece := plainText(r, 3), plainText(r, 8)
		text := before + piece + plainText(r, 3)
		if piece == "" {
			continue
		}
		for _, d := range All() {
			if sameByBytes(t, d, text, len(before), len(before)+len(piece)) {
				said++
			}
		}
	}
	if said < rounds/10 {
		t.Errorf("only %d pieces were looked at", said)
	}
}

// TestPlainEndOfAll tries all pieces of up to four of some bytes, between any two of these.
func TestPlainEndOfAll(t *testing.T) {
	const some = `a1e'"-(),$? \.&`
	var try func(text string, n int)
	try = func(text string, n int) {
		if len(text) >= 2 {
			for _, d := range All() {
				for _, hi := range []int{len(text) - 1, len(text)} {
					sameByBytes(t, d, text, 0, hi)
					sameByBytes(t, d, "a"+text, 1, hi+1)
				}
			}
		}
		for i := range len(some) {
			if n > 0 {
				try(text+some[i:i+1], n-1)
			}
		}
	}
	longest := 4
	if testing.Short() {
		longest = 3 // a fifteenth of the texts
	}
	try("", longest)
}

// FuzzPlainEnd is TestPlainEnd for any text.
func FuzzPlainEnd(f *testing.F) {
	f.Add(", \"fence_token\" = CASE WHEN $1 <= -1 THEN 'a' END", 0, 20)
	f.Fuzz(func(t *testing.T, text string, lo, hi int) {
		if 0 <= lo && lo < hi && hi <= len(text) && strings.Trim(text[lo:hi], " ") != "" {
			for _, d := range All() {
				sameByBytes(t, d, text, lo, hi)
			}
		}
	})
}
