package cli

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	stale := counted{What: "refused", Table: "books", Statement: "UPDATE", Error: "stale", Program: "p1"}
	other := stale
	other.Program = "p2"
	before := look{names: []watched{row("books", 1), row("hats", 1), row("pens", 1)},
		waits: []database.Wait{wait("bob", "active"), wait("cid", "active")}, counts: map[counted]int64{stale: 3, other: 3}}
	now := look{names: []watched{row("books", 1), row("inks", 1), row("pens", 2)},
		waits: []database.Wait{wait("bob", "idle in transaction"), wait("dan", "active")}, counts: map[counted]int64{stale: 5, other: 1}}
	want := []string{
		"hats  gone", "inks  1", "pens  2",
		"books  cid waits no longer", "books  dan waits since 9:00 for ada, active since 8:00",
		"p1  refused: UPDATE books (stale): 2 more, 5 in all",
		"p2  refused: UPDATE books (stale): 1 more, 1 in all",
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

// If a program doesn't answer for a while, the next answer is compared with its last one, so a count isn't reported
// twice.
func TestSilentProgram(t *testing.T) {
	var out strings.Builder
	l := &lines{app: &app{out: &answers{w: &out}, errs: database.NewRedactor(io.Discard)}}
	c := counted{What: "lost", Resource: "books", Program: "p1"}
	for _, counts := range []map[counted]int64{{c: 2}, {}, {c: 2}, {c: 3}} {
		if err := l.show(look{counts: counts}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.HasSuffix(out.String(), "p1  lost: the lease of books: 1 more, 3 in all\n") {
		t.Errorf("%q", out.String())
	}
}

// A count of Prometheus is shown with the program's address, or with the instance that Prometheus has added.
func TestCount(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `sqlfence_writes_total{db_collection_name="books",db_operation_name="UPDATE",error_type="stale",sqlfence_outcome="refused",otel_scope_version="1"} 1
sqlfence_writes_total{db_collection_name="books",db_operation_name="UPDATE",error_type="stale",sqlfence_outcome="refused"} 2
sqlfence_writes_total{db_collection_name="books",db_operation_name="UPDATE",sqlfence_outcome="guarded"} 100
sqlfence_lease_events_total{sqlfence_lease_event="contended",sqlfence_resource="books",instance="shop-1"} 4
sqlfence_lease_events_total{sqlfence_lease_event="extended",sqlfence_resource="books"} 4
`)
	}))
	t.Cleanup(server.Close)
	got := make(map[counted]int64)
	if err := count(t.Context(), server.URL, got); err != nil {
		t.Fatal(err)
	}
	want := map[counted]int64{
		{What: "refused", Table: "books", Statement: "UPDATE", Error: "stale", Program: server.Listener.Addr().String()}: 3,
		{What: "contended", Resource: "books", Program: "shop-1"}:                                                        4,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := checkAddresses([]string{"localhost:9464"}); err == nil {
		t.Error("an address without http:// is taken")
	}
}

// A page fits the window, and shows no characters that control a terminal.
func TestPage(t *testing.T) {
	var out strings.Builder
	p := &page{app: &app{out: &answers{w: &out}}, columns: 30, rows: 8, interval: time.Second}
	var found look
	for i := range 20 {
		found.names = append(found.names, watched{tokenRow: newTokenRow(sqlfence.Token{Name: fmt.Sprintf("a long name\x1b[2J of jobs/%d", i), Value: 7})})
	}
	if err := p.show(found); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\r\n")
	if len(lines) != p.rows || strings.Contains(out.String(), "\x1b[2J") || !strings.HasPrefix(lines[p.rows-2], "… and ") {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		if shown := strings.TrimSuffix(strings.TrimPrefix(line, home), clearLine); utf8.RuneCountInString(shown) > p.columns {
			t.Errorf("%q is wider than %d", shown, p.columns)
		}
	}
}

// A terminal of 80 columns shows the session that has to end.
func TestPageShowsTheSessionThatHasToEnd(t *testing.T) {
	var out strings.Builder
	p := &page{app: &app{out: &answers{w: &out}}, columns: screenColumns, rows: screenLines, interval: time.Second}
	wait := database.Wait{Name: "books", Who: "shop@10.20.30.41, pid 1234567, price-service", Since: moment(time.Now()),
		For: "shop@10.20.30.42, pid 7654321, price-service", Does: "idle in transaction", Began: moment(time.Now())}
	if err := p.show(look{names: []watched{{tokenRow: newTokenRow(sqlfence.Token{Name: "books", Value: 7})}}, waits: []database.Wait{wait}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{wait.Who, wait.For, wait.Does + ", since " + wait.Began} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
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
	l := &lines{app: &app{out: &answers{w: io.Discard}, errs: database.NewRedactor(&errs)}}
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
