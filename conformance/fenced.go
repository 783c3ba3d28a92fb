package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// A fenced is a database with the tables books and pens and a ledger, for the
// checks of the guarantees. Each check opens the fenced databases that it needs.
type fenced struct {
	kit
	store  *tokens.Store
	events *events
}

func guarantee(t testing.TB, h Harness, d sqlfence.Dialect, check func(*fenced)) (reason string) {
	t.Helper()
	f := &fenced{kit: newKit(t, h, d), events: new(events)}
	defer func() {
		f.cleanup()
		reason = f.reason()
	}()
	defer f.endIfStopped()
	f.create()
	f.exec("CREATE TABLE pens (id integer PRIMARY KEY, price integer)")
	var err error
	f.store, err = tokens.New(f.open(nil))
	f.must(err)
	f.setup()
	check(f)
	return ""
}

func (f *fenced) setup() {
	f.must(f.store.Setup(context.Background()))
	f.must(f.store.Ensure(context.Background(), "books"))
}

// open fences the database, or what c connects to.
func (f *fenced) open(c *recorder, opts ...sqlfence.Option) *sql.DB {
	opts = append(opts, sqlfence.WithObserver(f.events.add))
	if c != nil {
		return f.closing(f.harness.open(c, opts...))
	}
	return f.closing(f.harness.open(sharing{f.connector}, opts...))
}

func books(rules ...sqlfence.Rule) sqlfence.Option { return sqlfence.WithTable("books", rules...) }

// A fence is a rule that compares tokens.
type fence struct {
	name string
	rule func() sqlfence.Rule
}

// fences are the two rules that compare tokens.
var fences = []fence{
	{"row fence", func() sqlfence.Rule { return sqlfence.RowFence("fence_token") }},
	{"ledger", sqlfence.Ledger},
}

// fences returns the rules that the harness doesn't skip.
func (f *fenced) fences() []fence {
	return slices.DeleteFunc(slices.Clone(fences), func(r fence) bool {
		_, skipped := f.harness.Skip[r.name]
		return skipped
	})
}

// reset sets the books 1, 2 and 3 to price 10. mark becomes the stored token of each book and the ledger's newest
// token.
func (f *fenced) reset(mark int64) {
	f.exec("DELETE FROM books")
	f.exec(fmt.Sprintf("INSERT INTO books (id, isbn, fence_token) VALUES (1, 'i1', %d), (2, 'i2', %[1]d), (3, 'i3', %[1]d)", mark))
	f.issue(mark)
}

// issue sets the newest token of books in the ledger. For a lower token issue creates a new ledger, because the
// ledger's triggers refuse to lower a token.
func (f *fenced) issue(token int64) {
	var newest int64
	f.must(f.plain.QueryRow("SELECT token FROM fencing_tokens WHERE name = 'books'").Scan(&newest))
	if token < newest {
		f.exec("DROP TABLE fencing_tokens")
		f.setup()
	}
	f.exec(fmt.Sprintf("UPDATE fencing_tokens SET token = %d WHERE name = 'books'", token))
}

// state returns the books as "id:price@token".
func (f *fenced) state() string {
	rows := must(f.plain.Query("SELECT id, price, COALESCE(fence_token, 0) FROM books ORDER BY id"))
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price, mark int64
		f.must(rows.Scan(&id, &price, &mark))
		all = append(all, fmt.Sprintf("%d:%d@%d", id, price, mark))
	}
	f.must(rows.Err())
	return strings.Join(all, " ")
}

// changesNothing resets the books with the token 9, and records a failure if do changes the books.
func (f *fenced) changesNothing(what string, do func()) {
	f.reset(9)
	before := f.state()
	do()
	f.want(what+" left", f.state(), before)
}

func (f *fenced) want(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		f.errorf("%s: %v, want %v", what, got, want)
	}
}

func (f *fenced) wantPassed(what string, err error) {
	if err != nil {
		f.errorf("%s: %s", what, text(err))
	}
}

func (f *fenced) wantError(what string, err, target error) {
	if !errors.Is(err, target) {
		f.errorf("%s: error %s, want %q", what, text(err), target)
	}
}

// wantStale notes a failure unless err has all facts of the refusal.
func (f *fenced) wantStale(what string, err error, token, current int64) {
	var stale *sqlfence.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, sqlfence.ErrStale) {
		f.errorf("%s: error %s, want ErrStale", what, text(err))
		return
	}
	if want := (sqlfence.Token{Name: "books", Value: token}); stale.Table != "books" || stale.Token != want ||
		stale.Current != current {
		f.errorf("%s: %q, want table books, token %v, current %d", what, stale, want, current)
	}
	if stale.Unwrap() == nil {
		f.errorf("%s: the driver's own error is lost", what)
	}
}

// observed returns the events that the observer ([sqlfence.WithObserver]) has got since the last call. It records a
// failure if there are none or if an event has a different kind. The check "observer" counts the events.
func (f *fenced) observed(what string, want sqlfence.EventKind) []sqlfence.Event {
	events := f.events.take()
	for _, e := range events {
		if e.Kind != want {
			f.errorf("%s: the observer got %v, want %v", what, e.Kind, want)
		}
	}
	if len(events) == 0 {
		f.errorf("%s: the observer got nothing, want %v", what, want)
	}
	return events
}

// wantEvents notes a failure unless the observer got exactly these kinds.
func (f *fenced) wantEvents(what string, want ...sqlfence.EventKind) {
	var kinds []sqlfence.EventKind
	for _, e := range f.events.take() {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Equal(kinds, want) {
		f.errorf("%s: the observer got %v, want %v", what, kinds, want)
	}
}
