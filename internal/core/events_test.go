package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// allKinds are requested by name.
var allKinds = []sqlfence.EventKind{sqlfence.Refused, sqlfence.WouldRefuse, sqlfence.Bypassed, sqlfence.RawAccess,
	sqlfence.Unfenced, sqlfence.Guarded, sqlfence.Passed}

// told is an observer that collects events of all kinds.
type told []sqlfence.Event

func (all *told) option(kinds ...sqlfence.EventKind) sqlfence.Option {
	return sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { *all = append(*all, e) }, kinds...)
}

// take returns the collected events without their durations, and clears the collection.
func (all *told) take(t *testing.T) []sqlfence.Event {
	t.Helper()
	events := *all
	*all = nil
	for i := range events {
		if events[i].Dialect != sqlfence.SQLite {
			t.Errorf("the dialect of %+v", events[i])
		}
		if d := events[i].Duration; (d > 0) != (events[i].Kind == sqlfence.Guarded) {
			t.Errorf("%v took %v", events[i].Kind, d)
		}
		events[i].Dialect, events[i].Duration = 0, 0
	}
	return events
}

// The fields of each kind of event.
func TestEventFacts(t *testing.T) {
	const write, guardedWrite = "UPDATE books SET price = 1", "UPDATE OR ABORT books SET price = 1, `fence` = CASE WHEN " +
		"abs(max(COALESCE(CAST(`books`.`fence` AS INTEGER), 0), -9223372036854775807)) <= 7 THEN 7 ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence`) END"
	token7 := []sqlfence.Token{token("books", 7)}
	books := []string{"books"}
	stale := &fakedb.Recorder{Fails: func(string) error { return fakedb.ErrStaleAt9 }}
	for _, tt := range []struct {
		name  string
		base  *fakedb.Recorder
		query string
		ctx   func(ctx context.Context) context.Context
		want  []sqlfence.Event // without Err
		err   error
	}{
		{"guarded", new(fakedb.Recorder), write, holding7, []sqlfence.Event{{Kind: sqlfence.Guarded, Query: write, Sent: guardedWrite, Tables: books, Tokens: token7}}, nil},
		{"passed", new(fakedb.Recorder), "UPDATE others SET price = 1", holding7, []sqlfence.Event{{Kind: sqlfence.Passed, Query: "UPDATE others SET price = 1", Sent: "UPDATE others SET price = 1"}}, nil},
		{"read", new(fakedb.Recorder), "SELECT price FROM books", holding7, []sqlfence.Event{{Kind: sqlfence.Passed, Query: "SELECT price FROM books", Sent: "SELECT price FROM books"}}, nil},
		{"no token", new(fakedb.Recorder), write, nil, []sqlfence.Event{{Kind: sqlfence.Refused, Query: write, Tables: books}}, sqlfence.ErrNoFence},
		{"unguardable", new(fakedb.Recorder), "TRUNCATE books", holding7, []sqlfence.Event{{Kind: sqlfence.Refused, Query: "TRUNCATE books", Tables: books}}, sqlfence.ErrUnguardable},
		{"own table", new(fakedb.Recorder), "DELETE FROM fencing_tokens", holding7, []sqlfence.Event{{Kind: sqlfence.Refused, Query: "DELETE FROM fencing_tokens", Tables: []string{"fencing_tokens"}}}, sqlfence.ErrUnguardable},
		{"stale", stale, write, holding7, []sqlfence.Event{{Kind: sqlfence.Refused, Query: write, Sent: guardedWrite, Tables: books, Tokens: token7}}, sqlfence.ErrStale},
		{"bypassed", new(fakedb.Recorder), write, func(ctx context.Context) context.Context { return sqlfence.Bypass(ctx, "why") },
			[]sqlfence.Event{{Kind: sqlfence.Bypassed, Query: write, Sent: write, Tables: books, Reason: "why"}}, nil},
		{"unfenced", new(fakedb.Recorder), "DELETE FROM pens", nil, []sqlfence.Event{{Kind: sqlfence.Unfenced, Query: "DELETE FROM pens", Sent: "DELETE FROM pens", Tables: []string{"pens"}, Reason: "Optional"}}, nil},
		{"not the guard's error", &fakedb.Recorder{Fails: func(string) error { return errors.New("disk full") }}, write, holding7, nil, nil},
	} {
		for _, way := range []string{"exec", "query", "prepared exec", "prepared query"} {
			t.Run(tt.name+"/"+way, func(t *testing.T) {
				var events told
				db := open(t, tt.base, events.option(allKinds...), sqlfence.WithTable("books", fenced), sqlfence.WithTable("pens", sqlfence.Optional(), sqlfence.Resource("p")))
				ctx := t.Context()
				if tt.ctx != nil {
					ctx = tt.ctx(ctx)
				}
				err := runs[way](ctx, db, tt.query)
				if tt.err != nil && !errors.Is(err, tt.err) || tt.err == nil && tt.base.Fails == nil && err != nil {
					t.Errorf("error = %v, want %v", err, tt.err)
				}
				got := events.take(t)
				for i := range got {
					if !errors.Is(got[i].Err, tt.err) {
						t.Errorf("event's error = %v, want %v", got[i].Err, tt.err)
					}
					got[i].Err = nil
				}
				want := slices.Clone(tt.want)
				if way != "exec" && len(want) > 0 && len(got) == len(want) { // other ways pass the values as arguments
					want[0].Sent = got[0].Sent
					if (got[0].Sent == "") != (tt.want[0].Sent == "") {
						t.Errorf("sent %q", got[0].Sent)
					}
				}
				if !reflect.DeepEqual(got, want) && (len(got) > 0 || len(want) > 0) {
					t.Errorf("told\n%+v\nwant\n%+v", got, want)
				}
			})
		}
	}
}

func holding7(ctx context.Context) context.Context { return with(ctx, 7) }

// An observer without kinds gets no event that most statements cause. An observer with kinds gets only these kinds. An
// event without an observer isn't made.
func TestKindsOfObserver(t *testing.T) {
	var few, all, guarded told
	db := open(t, &fakedb.Recorder{}, few.option(), all.option(allKinds...), guarded.option(sqlfence.Guarded), sqlfence.WithTable("books", fenced))
	_, _ = db.ExecContext(with(t.Context(), 7), "DELETE FROM books")
	_, _ = db.ExecContext(t.Context(), "DELETE FROM books")
	_, _ = db.ExecContext(t.Context(), "SELECT 1")
	if len(few) != 1 || few[0].Kind != sqlfence.Refused {
		t.Errorf("by default it is told %+v", few)
	}
	if len(all) != 3 || len(guarded) != 1 || guarded[0].Kind != sqlfence.Guarded {
		t.Errorf("told %+v and %+v", all, guarded)
	}
	for _, kind := range []sqlfence.EventKind{0, 99, -1} {
		_, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite), all.option(kind))
		if !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

// A query is reported as guarded once, when its rows are closed without a refusal.
func TestGuardedQuery(t *testing.T) {
	var events told
	base := &fakedb.Recorder{}
	db := open(t, base, events.option(sqlfence.Guarded, sqlfence.Refused), sqlfence.WithTable("books", fenced))
	rows, err := db.QueryContext(with(t.Context(), 7), "UPDATE books SET price = 1 RETURNING id")
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 0 {
		t.Errorf("before the rows are read it is told %+v", events)
	}
	for rows.Next() {
	}
	if err := errors.Join(rows.Err(), rows.Close(), rows.Close()); err != nil || len(events) != 1 {
		t.Errorf("told %+v; %v", events, err)
	}
	events = nil
	base.FailsNext = fakedb.ErrStaleAt9
	if err := runs["query"](with(t.Context(), 7), db, "UPDATE books SET price = 1 RETURNING id"); !errors.Is(err, sqlfence.ErrStale) {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Kind != sqlfence.Refused {
		t.Errorf("told %+v", events)
	}
}

// If a statement has a token for one table and none for an Optional table, it is reported as guarded for the first and
// unfenced for the second.
func TestPartlyUnfenced(t *testing.T) {
	var events told
	base := &fakedb.Recorder{}
	db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(sqlfence.Postgres), events.option(sqlfence.Guarded, sqlfence.Unfenced),
		sqlfence.WithTable("books", fenced), sqlfence.WithTable("pens", fenced, sqlfence.Optional()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(with(t.Context(), 7), "WITH p AS (DELETE FROM pens) DELETE FROM books"); err != nil {
		t.Fatal(err)
	}
	if len(events) != 2 || events[0].Kind != sqlfence.Unfenced || !slices.Equal(events[0].Tables, []string{"pens"}) ||
		events[1].Kind != sqlfence.Guarded || !slices.Equal(events[1].Tables, []string{"books"}) {
		t.Errorf("told %+v", events)
	}
}

// A driver that returns ErrSkip gets a statement twice, and the observer gets one event.
func TestToldOnceAfterSkip(t *testing.T) {
	for _, tt := range []struct {
		query string
		ctx   context.Context
		opts  []sqlfence.Option
		kind  sqlfence.EventKind
	}{
		{"DELETE FROM books", with(context.Background(), 7), nil, sqlfence.Guarded},
		{"DELETE FROM others", context.Background(), nil, sqlfence.Passed},
		{"DELETE FROM pens", context.Background(), nil, sqlfence.Unfenced},
		{"DELETE FROM books", sqlfence.Bypass(context.Background(), "why"), nil, sqlfence.Bypassed},
		{"DELETE FROM books", context.Background(), []sqlfence.Option{sqlfence.WithoutGuards("why")}, sqlfence.Bypassed},
		{"DELETE FROM books", context.Background(), observeMode, sqlfence.WouldRefuse},
	} {
		var events told
		base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return skippingConn{c} }}
		db := open(t, base, slices.Concat(tt.opts, []sqlfence.Option{events.option(allKinds...), sqlfence.WithTable("books", fenced), sqlfence.WithTable("pens", sqlfence.Optional())})...)
		for name, run := range runs {
			events = nil
			if err := run(tt.ctx, db, tt.query); err != nil {
				t.Errorf("%s by %s: %v", tt.query, name, err)
			}
			if len(events) != 1 || events[0].Kind != tt.kind {
				t.Errorf("%s by %s: told %+v, want one event, %v", tt.query, name, events, tt.kind)
			}
		}
	}
}

// skippingConn executes only prepared statements.
type skippingConn struct{ *fakedb.RecorderConn }

func (skippingConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, driver.ErrSkip
}
func (skippingConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

// Verb and Fingerprint follow the event's dialect.
func TestEventText(t *testing.T) {
	e := sqlfence.Event{Query: "update books SET price = 7", Dialect: sqlfence.SQLite, Duration: time.Second}
	if e.Verb() != "UPDATE" || e.Fingerprint() != "update books SET price = ?" {
		t.Errorf("%q, %q", e.Verb(), e.Fingerprint())
	}
}

// runs are the ways to run a statement.
var runs = map[string]func(ctx context.Context, db *sql.DB, query string) error{
	"exec": func(ctx context.Context, db *sql.DB, query string) error {
		_, err := db.ExecContext(ctx, query)
		return err
	},
	"query": func(ctx context.Context, db *sql.DB, query string) error {
		return readAll(db.QueryContext(ctx, query))
	},
	"prepared exec": func(ctx context.Context, db *sql.DB, query string) error {
		s, err := db.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.ExecContext(ctx)
		return err
	},
	"prepared query": func(ctx context.Context, db *sql.DB, query string) error {
		s, err := db.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer s.Close()
		return readAll(s.QueryContext(ctx))
	},
}

func readAll(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}
