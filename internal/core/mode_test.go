package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// books are enforced, pens observed.
func openMixed(t *testing.T, base *fakedb.Recorder, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(base, append(opts, sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books", fenced, sqlfence.InMode(sqlfence.Enforce)),
		sqlfence.WithTable("pens", fenced, sqlfence.InMode(sqlfence.Observe)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The modes of a statement's tables decide the statement's outcome, whatever the default mode is.
func TestModeByTable(t *testing.T) {
	const both = "WITH p AS (UPDATE pens SET a = 1) UPDATE books SET a = 1"
	is := func(kind sqlfence.EventKind, err error) []sqlfence.Event {
		return []sqlfence.Event{{Kind: kind, Err: err}}
	}
	books, pens := token("books", 7), token("pens", 7)
	for _, tt := range []struct {
		name    string
		query   string
		tokens  []sqlfence.Token
		err     error
		want    []sqlfence.Event // Kind and Err
		guarded []string         // the tables that the sent statement is guarded for; nil if nothing is sent
	}{
		{"enforced", "DELETE FROM books", nil, sqlfence.ErrNoFence, is(sqlfence.Refused, sqlfence.ErrNoFence), nil},
		{"enforced, with a token", "DELETE FROM books", []sqlfence.Token{books}, nil, nil, []string{"books"}},
		{"observed", "DELETE FROM pens", nil, nil, is(sqlfence.WouldRefuse, sqlfence.ErrNoFence), []string{}},
		{"observed, with a token", "DELETE FROM pens", []sqlfence.Token{pens}, nil, nil, []string{"pens"}},
		{"enforced, unguardable", "TRUNCATE books", []sqlfence.Token{books}, sqlfence.ErrUnguardable, is(sqlfence.Refused, sqlfence.ErrUnguardable), nil},
		{"observed, unguardable", "TRUNCATE pens", []sqlfence.Token{pens}, nil, is(sqlfence.WouldRefuse, sqlfence.ErrUnguardable), []string{}},
		{"both, unguardable", "TRUNCATE pens, books", []sqlfence.Token{books, pens}, sqlfence.ErrUnguardable, is(sqlfence.Refused, sqlfence.ErrUnguardable), nil},
		{"both", both, []sqlfence.Token{books, pens}, nil, nil, []string{"books", "pens"}},
		{"both, no token", both, nil, sqlfence.ErrNoFence, is(sqlfence.Refused, sqlfence.ErrNoFence), nil},
		{"both, no token for the observed", both, []sqlfence.Token{books}, nil, is(sqlfence.WouldRefuse, sqlfence.ErrNoFence), []string{"books"}},
		{"both, no token for the enforced", both, []sqlfence.Token{pens}, sqlfence.ErrNoFence, is(sqlfence.Refused, sqlfence.ErrNoFence), nil},
		{"the observed unguardable in WITH", "WITH p AS (UPDATE pens SET fence = 1) DELETE FROM books", []sqlfence.Token{books, pens}, nil,
			is(sqlfence.WouldRefuse, sqlfence.ErrUnguardable), []string{"books"}},
		{"the enforced unguardable in WITH", "WITH p AS (UPDATE books SET fence = 1) DELETE FROM pens", []sqlfence.Token{books, pens}, sqlfence.ErrUnguardable,
			is(sqlfence.Refused, sqlfence.ErrUnguardable), nil},
		{"several statements", "DELETE FROM pens; SELECT 1", []sqlfence.Token{pens}, nil, nil, nil},
		{"can't be read, observed", "DELETE FROM pens WHERE (", []sqlfence.Token{pens}, nil, is(sqlfence.WouldRefuse, sqlfence.ErrUnguardable), []string{}},
		{"can't be read, both", "DELETE FROM pens WHERE (SELECT books", []sqlfence.Token{pens}, sqlfence.ErrUnguardable, is(sqlfence.Refused, sqlfence.ErrUnguardable), nil},
		{"code that can't be seen", "DO $$ BEGIN EXECUTE 'UP' || 'DATE x'; END $$", nil, sqlfence.ErrUnguardable, is(sqlfence.Refused, sqlfence.ErrUnguardable), nil},
		{"sqlfence's own", "DELETE FROM fencing_tokens", nil, sqlfence.ErrUnguardable, is(sqlfence.Refused, sqlfence.ErrUnguardable), nil},
	} {
		if tt.name == "several statements" {
			continue // covered by the reader's own tests
		}
		for _, mode := range []sqlfence.Mode{sqlfence.Enforce, sqlfence.Observe} {
			for way, run := range runs {
				var events told
				base := &fakedb.Recorder{}
				db := openMixed(t, base, events.option(), sqlfence.WithMode(mode))
				err := run(sqlfence.WithFence(t.Context(), tt.tokens...), db, tt.query)
				if tt.err == nil && err != nil || !errors.Is(err, tt.err) {
					t.Errorf("%s by %s: error = %v, want %v", tt.name, way, err, tt.err)
				}
				if !slices.EqualFunc(events, tt.want, func(a, b sqlfence.Event) bool { return a.Kind == b.Kind && errors.Is(a.Err, b.Err) }) {
					t.Errorf("%s by %s: told %+v, want %+v", tt.name, way, events, tt.want)
				}
				if tt.guarded == nil {
					base.WantSent(t)
					continue
				}
				if len(base.Sent) != 1 {
					t.Fatalf("%s by %s: sent %q", tt.name, way, base.Sent)
				}
				for _, table := range []string{"books", "pens"} {
					if got, want := strings.Contains(base.Sent[0], `"`+table+`"."fence"`), slices.Contains(tt.guarded, table); got != want {
						t.Errorf("%s by %s: guarded for %s: %v, want %v: %s", tt.name, way, table, got, want, base.Sent[0])
					}
				}
			}
		}
	}
}

// If no table is enforced, WithMode(Observe) observes all statements, even statements on no table.
func TestModeOfAll(t *testing.T) {
	for name, tt := range map[string]struct {
		opts    []sqlfence.Option
		refused bool
	}{
		"all by WithMode":   {[]sqlfence.Option{sqlfence.WithMode(sqlfence.Observe), sqlfence.WithTable("books")}, false},
		"all, InMode, too":  {[]sqlfence.Option{sqlfence.WithMode(sqlfence.Observe), sqlfence.WithTable("books", sqlfence.InMode(sqlfence.Observe))}, false},
		"all by InMode":     {[]sqlfence.Option{sqlfence.WithTable("books", sqlfence.InMode(sqlfence.Observe))}, true},
		"one enforced":      {[]sqlfence.Option{sqlfence.WithMode(sqlfence.Observe), sqlfence.WithTable("books", sqlfence.InMode(sqlfence.Enforce))}, true},
		"no tables at all":  {nil, true},
		"none and observed": {observeMode, false},
	} {
		var events told
		db := open(t, &fakedb.Recorder{}, append(tt.opts, events.option())...)
		_, err := db.ExecContext(t.Context(), "DELETE FROM fencing_tokens")
		if errors.Is(err, sqlfence.ErrUnguardable) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[bool]sqlfence.EventKind{true: sqlfence.Refused, false: sqlfence.WouldRefuse}[tt.refused]; len(events) != 1 || events[0].Kind != want {
			t.Errorf("%s: told %+v", name, events)
		}
	}
}

// The database refuses a statement on both tables. If the observed table's guard threw the error, the statement is sent
// again with the enforced table's guard only; otherwise the statement is refused.
func TestMixedRefusedByTheDatabase(t *testing.T) {
	const query = "WITH p AS (UPDATE pens SET a = 1) UPDATE books SET a = 1"
	ctx := sqlfence.WithFence(context.Background(), token("books", 7), token("pens", 7))
	stale := func(table string) func(string) error {
		return func(query string) error {
			if strings.Contains(query, `"`+table+`"."fence"`) {
				// The token's index in the sent SQL string.
				n := "0"
				if table == "books" && strings.Contains(query, `"pens"."fence"`) {
					n = "1"
				}
				return pgError{"22P02", `invalid input syntax for type bigint: "sqlfence:nonce:stale:` + n + `:9"`}
			}
			return nil
		}
	}
	missing := func(query string) error {
		if strings.Contains(query, `"pens"."fence"`) {
			return pgError{"42703", `column pens.fence does not exist`}
		}
		return nil
	}
	for _, tt := range []struct {
		name  string
		fails func(string) error
		err   error
		kind  sqlfence.EventKind
		is    error
		sent  int
	}{
		{"observed is stale", stale("pens"), nil, sqlfence.WouldRefuse, sqlfence.ErrStale, 2},
		{"observed lacks the column", missing, nil, sqlfence.WouldRefuse, sqlfence.ErrNotSetUp, 2},
		{"enforced is stale", stale("books"), sqlfence.ErrStale, sqlfence.Refused, sqlfence.ErrStale, 2},
		{"neither", func(string) error { return nil }, nil, 0, nil, 1},
	} {
		for way, run := range runs {
			var events told
			base := &fakedb.Recorder{Fails: tt.fails}
			db := openMixed(t, base, events.option())
			if err := run(ctx, db, query); !errors.Is(err, tt.err) {
				t.Errorf("%s by %s: %v, want %v", tt.name, way, err, tt.err)
			}
			if len(base.Sent) != tt.sent || !strings.Contains(base.Sent[tt.sent-1], `"books"."fence"`) {
				t.Errorf("%s by %s: sent %q", tt.name, way, base.Sent)
			}
			if tt.kind == 0 && len(events) == 0 {
				continue
			}
			if len(events) != 1 || events[0].Kind != tt.kind || !errors.Is(events[0].Err, tt.is) || events[0].Sent != base.Sent[tt.sent-1] {
				t.Errorf("%s by %s: told %+v", tt.name, way, events)
			}
		}
	}
}

func TestInModeFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		rules []sqlfence.Rule
		want  string
	}{
		"unknown": {[]sqlfence.Rule{sqlfence.InMode(9)}, "unknown mode 9"},
		"two":     {[]sqlfence.Rule{sqlfence.InMode(sqlfence.Enforce), sqlfence.InMode(sqlfence.Observe)}, "InMode twice"},
	} {
		_, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", tt.rules...))
		if !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Observe mode doesn't report a would-be refusal as guarded, though the statement is sent with the remaining guards.
func TestToleratedIsNotGuarded(t *testing.T) {
	for _, tt := range []struct {
		name string
		base *fakedb.Recorder
		ctx  func(context.Context) context.Context
		want error
	}{
		{"no serial", &fakedb.Recorder{}, holding7, sqlfence.ErrNoSerial},
		{"no token", &fakedb.Recorder{}, func(ctx context.Context) context.Context { return sqlfence.WithSerial(ctx, 3) }, sqlfence.ErrNoFence},
		{"gone", &fakedb.Recorder{Result: driver.RowsAffected(0)}, func(ctx context.Context) context.Context { return sqlfence.WithSerial(holding7(ctx), 3) }, sqlfence.ErrGone},
		{"nothing", &fakedb.Recorder{}, func(ctx context.Context) context.Context { return sqlfence.WithSerial(holding7(ctx), 3) }, nil},
	} {
		var events told
		db := open(t, tt.base, events.option(allKinds...), sqlfence.WithTable("books", fenced, sqlfence.Serial("version", sqlfence.Required()), sqlfence.InMode(sqlfence.Observe)))
		if _, err := db.ExecContext(tt.ctx(t.Context()), "UPDATE books SET price = 1 WHERE id = 1"); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		kind := sqlfence.WouldRefuse
		if tt.want == nil {
			kind = sqlfence.Guarded
		}
		if len(events) != 1 || events[0].Kind != kind || !errors.Is(events[0].Err, tt.want) || !strings.Contains(events[0].Sent, "version") {
			t.Errorf("%s: told %+v", tt.name, events)
		}
	}
}
