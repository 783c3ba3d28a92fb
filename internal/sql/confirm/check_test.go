package confirm

import (
	"strings"
	"testing"
)

// A kind that nobody has described is never confirmed.
func TestNoKind(t *testing.T) {
	for _, kind := range []Kind{0, Returning + 1} {
		if confirmed(Postgres, "UPDATE books SET a = 1«, fence = 7»", kind) {
			t.Errorf("a piece of the kind %d is confirmed", kind)
		}
	}
}

// Every piece has to be met, and in the order in which they were added.
func TestSeveralPieces(t *testing.T) {
	for text, want := range map[string]bool{
		"UPDATE books SET a = 1«, fence = 7»«, serial = 2» WHERE b":          true,
		"UPDATE books SET a = 1«, fence = 7» «, serial = 2» WHERE b":         true,
		"UPDATE books SET a = 1«, fence = 7»; UPDATE books SET b = 2«, c=3»": true,
		"UPDATE books SET a = 1«, fence = 7», b = 2«, serial = 2»":           false,
		"UPDATE books SET a = 1«, fence = 7» WHERE b«, serial = 2»":          false,
		"UPDATE books SET a = 1«, fence = 7» WHERE b -- «, serial = 2»":      false,
	} {
		if got := confirmed(Postgres, text, Assignment, Assignment); got != want {
			t.Errorf("confirmed = %v, want %v: %s", got, want, text)
		}
	}
}

// A text without pieces is only read.
func TestNoPieces(t *testing.T) {
	for text, want := range map[string]bool{"SELECT 1": true, "": true, "SELECT (1": false, "SELECT 1)": false, "SELECT 'a": false} {
		if got := confirmed(Postgres, text); got != want {
			t.Errorf("confirmed = %v, want %v: %q", got, want, text)
		}
	}
}

func TestNesting(t *testing.T) {
	nested := func(n int) string {
		return "UPDATE books SET a = " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + "«, fence = 7»"
	}
	for n, want := range map[int]bool{maxNesting - 1: true, maxNesting: false} {
		if got := confirmed(Postgres, nested(n), Assignment); got != want {
			t.Errorf("confirmed = %v, want %v, in %d brackets", got, want, n)
		}
	}
}

// A check that comes back has nothing of the one before, and no more room than is kept.
func TestRelease(t *testing.T) {
	c := Begin()
	c.Add(Piece{Kind: Column, Hi: 1, Target: "t"})
	c.Confirms(Postgres, "SELECT 1")
	c.Release()
	if c.text != "" || len(c.pieces) != 0 || c.pieces[:1][0] != (Piece{}) {
		t.Errorf("a released check holds %q, %+v", c.text, c.pieces[:1])
	}
	for _, large := range []*Check{{pieces: make([]Piece, 0, maxPieces+1)}, {frames: make([]frame, 0, maxFrames+1)}} {
		large.text = "left alone"
		large.Release()
		if large.text == "" {
			t.Error("a check with much room is kept for the next one")
		}
	}
}

// A check begins anew with each text, whatever it has met in the one before.
func TestReuse(t *testing.T) {
	c := Begin()
	c.Add(Piece{Kind: BeforeValue, Lo: len("UPDATE books SET a = "), Hi: len("UPDATE books SET a = f("), Target: `"books"`})
	if c.Confirms(Postgres, "UPDATE books SET a = f(1)") {
		t.Error("a piece around a value is confirmed without the other one")
	}
	c.pieces = nil
	if !c.Confirms(Postgres, "SELECT (1)") {
		t.Error("the next text isn't confirmed")
	}
}

// A target is compared as the database folds names: a long one as it is cut.
func TestTarget(t *testing.T) {
	long := strings.Repeat("b", maxPlain+1)
	for _, tt := range []struct {
		name, target string
		want         bool
	}{
		{"BOOKS", `"books"`, true},
		{"books", `"BOOKS"`, false},
		{`"BOOKS"`, `"BOOKS"`, true},
		{`"books"`, `"BOOKS"`, false},
		{long[1:], `"` + long[1:] + `"`, true},
		{long, `"` + long + `"`, false},
		{long, `"` + long[1:] + `"`, true},
		{"b", ``, false},
		{"b", `"`, false},
	} {
		text := "UPDATE " + tt.name + " SET a = 1"
		c := Begin()
		c.Add(Piece{Kind: Assignment, Lo: len(text), Hi: len(text) + len(", b = 2"), Target: tt.target})
		got := c.Confirms(Postgres, text+", b = 2")
		if got != tt.want {
			t.Errorf("confirmed = %v, want %v: %s for %s", got, tt.want, tt.name, tt.target)
		}
		c.Release()
	}
}

// Any text and any piece are read without a fault, and an assignment that is confirmed
// has its comma and stands behind SET.
func FuzzConfirms(f *testing.F) {
	for text := range assignments {
		f.Add(strings.NewReplacer("«", "", "»", "").Replace(text), uint8(Assignment), 10, 20)
	}
	f.Fuzz(func(t *testing.T, text string, kind uint8, lo, hi int) {
		if lo < 0 || lo >= hi || hi > len(text) {
			return
		}
		for _, d := range dialects {
			c := Begin()
			c.Add(Piece{Kind: Kind(kind), Lo: lo, Hi: hi, Target: d.Names.Quote("books")})
			if c.Confirms(d, text) && Kind(kind) == Assignment {
				if !strings.Contains(text[lo:hi], ",") || !strings.Contains(strings.ToUpper(text[:lo]), "SET") {
					t.Errorf("%s: confirmed from %d to %d of %q", d.name(), lo, hi, text)
				}
			}
			c.Release()
			d.Inlines(text, true)
			sameByMembers(t, d, text, lo)
		}
	})
}
