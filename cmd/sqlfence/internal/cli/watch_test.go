package cli

import (
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// The newest token is shown, be it that of the name or of its lease.
func TestWatchedToken(t *testing.T) {
	names := []tokenRow{{Name: "books", Value: 5}, {Name: "hats", Value: 5}, {Name: "pens", Value: 5}}
	held := []lease.Info{
		{Key: "books", Token: sqlfence.Token{Name: "books", Value: 4}, Holder: "ada"},
		{Key: "hats", Token: sqlfence.Token{Name: "hats", Value: 6}, Holder: "bob"},
	}
	since := moment(time.Time{})
	for i, want := range []watched{
		{tokenRow{"books", 5, "000000000000005"}, "held", "ada", since},
		{tokenRow{"hats", 6, "000000000000006"}, "held", "bob", since},
		{tokenRow: names[2], Lease: "none"},
	} {
		if got := withLeases(names, held, "none")[i]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestWatchedChanges(t *testing.T) {
	row := func(name string, value int64) watched { return watched{tokenRow: tokenRow{Name: name, Value: value}} }
	got := changed([]watched{row("books", 1), row("hats", 1), row("pens", 1)}, []watched{row("books", 1), row("inks", 1), row("pens", 2)})
	want := []news{{watched: row("hats", 1), Gone: true}, {watched: row("inks", 1)}, {watched: row("pens", 2)}}
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i, n := range got {
		n.At = ""
		if n != want[i] {
			t.Errorf("%+v, want %+v", n, want[i])
		}
	}
}
