package cli

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// The newest token is shown, from the name or from the name's lease.
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
	wait := func(who, does string) database.Wait {
		return database.Wait{Name: "books", Who: who, Since: "9:00", For: "ada", Does: does, Began: "8:00"}
	}
	before := look{names: []watched{row("books", 1), row("hats", 1), row("pens", 1)},
		waits: []database.Wait{wait("bob", "active"), wait("cid", "active")}}
	now := look{names: []watched{row("books", 1), row("inks", 1), row("pens", 2)},
		waits: []database.Wait{wait("bob", "idle in transaction"), wait("dan", "active")}}
	want := []string{
		"hats  gone", "inks  1", "pens  2",
		"books  cid waits no longer", "books  dan waits since 9:00 for ada, active since 8:00",
	}
	var got []string
	for _, n := range changed(before, now) {
		got = append(got, n.text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if again := changed(now, now); len(again) > 0 {
		t.Errorf("%q without a change", again)
	}
}

// A watch of a name that the ledger doesn't have reports this once.
func TestWatchOfAMissingName(t *testing.T) {
	freshDatabase(t)
	program(t, statusDone, "init", "--apply")
	source, err := (&app{errs: database.NewRedactor(io.Discard)}).source(false)
	if err != nil {
		t.Fatal(err)
	}
	db, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := source.Leases(db)
	if err != nil {
		t.Fatal(err)
	}
	w := watcher{ledger: &ledger{store, db, source}, leases: leases, only: []string{"nosuch"}}
	var errs strings.Builder
	l := &lines{app: &app{out: &stdout{w: io.Discard}, errs: database.NewRedactor(&errs)}}
	for range 2 {
		found, err := w.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.show(found); err != nil {
			t.Fatal(err)
		}
	}
	if errs.String() != "sqlfence: the ledger has no name nosuch\n" {
		t.Errorf("%q", errs.String())
	}
}
