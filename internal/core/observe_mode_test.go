package core_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func TestEventKindString(t *testing.T) {
	for kind, want := range map[sqlfence.EventKind]string{
		sqlfence.Refused: "refused", sqlfence.WouldRefuse: "would refuse", sqlfence.Bypassed: "bypassed",
		sqlfence.RawAccess: "raw access", 0: "unknown", 99: "unknown",
	} {
		if got := kind.String(); got != want {
			t.Errorf("String of %d = %q, want %q", kind, got, want)
		}
	}
}

type ctxKey struct{}

// An observed holds the events of the observers, their contexts, and the log.
type observed struct {
	events []sqlfence.Event
	marks  []any // marks of the events' contexts
	log    bytes.Buffer
}

// opts observe and log; the log has no times in it.
func (o *observed) opts() []sqlfence.Option {
	return []sqlfence.Option{
		sqlfence.WithObserver(func(ctx context.Context, e sqlfence.Event) {
			o.events = append(o.events, e)
			o.marks = append(o.marks, ctx.Value(ctxKey{}))
		}),
		sqlfence.WithLogger(slog.New(slog.NewTextHandler(&o.log, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))),
	}
}

func TestEvents(t *testing.T) {
	const (
		write = "UPDATE books SET price = 1"
		query = "UPDATE books SET price = 1 RETURNING id"
		odd   = "TRUNCATE books"
	)
	type want struct {
		kind   sqlfence.EventKind
		is     error
		reason string
	}
	stale := func(string) error { return fakedb.ErrStaleAt9 }
	tests := []struct {
		name  string
		opts  []sqlfence.Option
		fails func(string) error
		do    func(ctx context.Context, d *observedDB) error
		err   error // the application's error
		query string
		want  []want
		log   string
	}{
		{"nothing to tell", nil, nil, func(ctx context.Context, d *observedDB) error { return d.exec(ctx, write, 1) }, nil, "", nil, ""},
		{"no token", nil, nil, func(ctx context.Context, d *observedDB) error { return d.exec(ctx, write, 0) },
			sqlfence.ErrNoFence, write, []want{{sqlfence.Refused, sqlfence.ErrNoFence, ""}},
			`level=WARN msg="sqlfence: refused" query="UPDATE books SET price = 1" error="sqlfence: no fencing token: `},
		{"unguardable", nil, nil, func(ctx context.Context, d *observedDB) error { return d.exec(ctx, odd, 1) },
			sqlfence.ErrUnguardable, odd, []want{{sqlfence.Refused, sqlfence.ErrUnguardable, ""}},
			`level=WARN msg="sqlfence: refused" query="TRUNCATE books" error="sqlfence: statement can't be guarded: `},
		{"stale", nil, stale, func(ctx context.Context, d *observedDB) error { return d.exec(ctx, write, 1) },
			sqlfence.ErrStale, write, []want{{sqlfence.Refused, sqlfence.ErrStale, ""}},
			`level=WARN msg="sqlfence: refused" query="UPDATE books SET price = 1" error="sqlfence: stale fencing token: `},
		{"stale prepared", nil, stale, func(ctx context.Context, d *observedDB) error { return d.prepared(ctx, write, 1) },
			sqlfence.ErrStale, write, []want{{sqlfence.Refused, sqlfence.ErrStale, ""}}, ""},
		{"stale query", nil, stale, func(ctx context.Context, d *observedDB) error { return d.query(ctx, query, 1) },
			sqlfence.ErrStale, query, []want{{sqlfence.Refused, sqlfence.ErrStale, ""}}, ""},
		{"unrelated", nil, func(string) error { return errors.New("disk full") },
			func(ctx context.Context, d *observedDB) error { return d.exec(ctx, write, 1) }, nil, "", nil, ""},
		{"bypass", nil, nil, func(ctx context.Context, d *observedDB) error {
			return d.exec(sqlfence.Bypass(ctx, "repair 7"), write, 0)
		}, nil, write, []want{{sqlfence.Bypassed, nil, "repair 7"}},
			`level=INFO msg="sqlfence: bypassed" query="UPDATE books SET price = 1" reason="repair 7"` + "\n"},
		{"bypass of what can't be guarded", nil, nil, func(ctx context.Context, d *observedDB) error {
			return d.exec(sqlfence.Bypass(ctx, "repair 7"), odd, 0)
		}, nil, odd, []want{{sqlfence.Bypassed, nil, "repair 7"}}, ""},
		{"bypass of what concerns no table", nil, nil, func(ctx context.Context, d *observedDB) error {
			return d.exec(sqlfence.Bypass(ctx, "repair 7"), "UPDATE others SET price = 1", 0)
		}, nil, "", nil, ""},
		{"observed, no token", observeMode, nil, func(ctx context.Context, d *observedDB) error { return d.exec(ctx, write, 0) },
			nil, write, []want{{sqlfence.WouldRefuse, sqlfence.ErrNoFence, ""}},
			`level=WARN msg="sqlfence: would refuse" query="UPDATE books SET price = 1" error="sqlfence: no fencing token: `},
		{"observed, unguardable", observeMode, nil, func(ctx context.Context, d *observedDB) error { return d.exec(ctx, odd, 1) },
			nil, odd, []want{{sqlfence.WouldRefuse, sqlfence.ErrUnguardable, ""}}, ""},
		{"observed, bypass", observeMode, nil, func(ctx context.Context, d *observedDB) error {
			return d.exec(sqlfence.Bypass(ctx, "repair 7"), write, 0)
		}, nil, write, []want{{sqlfence.Bypassed, nil, "repair 7"}}, ""},
		{"raw access", nil, nil, func(_ context.Context, d *observedDB) error { return d.raw() },
			nil, "", []want{{sqlfence.RawAccess, nil, ""}}, `level=INFO msg="sqlfence: raw access"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var o observed
			base := &fakedb.Recorder{Fails: tt.fails}
			db := &observedDB{t, open(t, base, slices.Concat(o.opts(), tt.opts, []sqlfence.Option{sqlfence.WithTable("books", fenced)})...)}
			err := tt.do(context.WithValue(t.Context(), ctxKey{}, "mine"), db)
			if tt.err != nil && !errors.Is(err, tt.err) || tt.err == nil && tt.fails == nil && err != nil {
				t.Errorf("error = %v, want %v", err, tt.err)
			}
			var got []want
			for i, e := range o.events {
				w := want{kind: e.Kind, reason: e.Reason}
				if found := is(e.Err); len(found) == 1 {
					w.is = found[0]
				} else if e.Err != nil {
					t.Errorf("the event's error %v is %v", e.Err, found)
				}
				got = append(got, w)
				if e.Query != tt.query {
					t.Errorf("the event's query = %q, want %q", e.Query, tt.query)
				}
				if e.Kind == sqlfence.Refused && !errors.Is(err, e.Err) {
					t.Errorf("the observer got %v, the application %v", e.Err, err)
				}
				// sql.Conn.Raw takes no context.
				if e.Kind != sqlfence.RawAccess && o.marks[i] != "mine" {
					t.Error("the observer got another context")
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("events = %v, want %v", got, tt.want)
			}
			if n := strings.Count(o.log.String(), "\n"); n != len(tt.want) || !strings.HasPrefix(o.log.String(), tt.log) {
				t.Errorf("log = %s\nwant %s", &o.log, tt.log)
			}
		})
	}
}

var observeMode = []sqlfence.Option{sqlfence.WithMode(sqlfence.Observe)}

func TestObserversInOrder(t *testing.T) {
	var order []string
	add := func(name string) sqlfence.Option {
		return sqlfence.WithObserver(func(context.Context, sqlfence.Event) { order = append(order, name) })
	}
	db := open(t, &fakedb.Recorder{}, add("first"), sqlfence.WithTable("books"), add("second"))
	_, _ = db.ExecContext(t.Context(), "DELETE FROM books")
	if !slices.Equal(order, []string{"first", "second"}) {
		t.Errorf("called: %q", order)
	}
}

// A logger's level decides what is logged.
func TestLoggerLevel(t *testing.T) {
	var log bytes.Buffer
	db := open(t, &fakedb.Recorder{}, sqlfence.WithTable("books"), sqlfence.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))))
	_, _ = db.ExecContext(t.Context(), "DELETE FROM books")
	if log.Len() != 0 {
		t.Errorf("a refusal is logged as an error: %s", &log)
	}
}

// In Observe mode a refused write is sent again without the guard that refused it.
func TestObserveSendsAgain(t *testing.T) {
	base := &fakedb.Recorder{Fails: func(query string) error {
		if strings.Contains(query, "sqlfence:nonce:stale") {
			return fakedb.ErrStaleAt9
		}
		return nil
	}}
	db := open(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithMode(sqlfence.Observe))
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1 WHERE id = ?", 2); err != nil {
		t.Fatal(err)
	}
	base.WantSent(t,
		"UPDATE OR ABORT books SET price = 1, `fence` = CASE WHEN abs(max(COALESCE(CAST(`books`.`fence` AS INTEGER), 0), -9223372036854775807)) <= ?1 THEN ?1"+
			" ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence`) END WHERE id = ?",
		"UPDATE books SET price = 1 WHERE id = ?")
	if len(base.Args) != 1 || base.Args[0].Value != int64(2) {
		t.Errorf("arguments = %v", base.Args)
	}
}

// An observedDB sends statements, and returns their errors. The token of the context has the given value; 0 means no
// token.
type observedDB struct {
	t  *testing.T
	db *sql.DB
}

func (d *observedDB) exec(ctx context.Context, query string, value int64) error {
	_, err := d.db.ExecContext(with(ctx, value), query)
	return err
}

func (d *observedDB) query(ctx context.Context, query string, value int64) error {
	var n int
	return d.db.QueryRowContext(with(ctx, value), query).Scan(&n)
}

func (d *observedDB) prepared(ctx context.Context, query string, value int64) error {
	s, err := d.db.PrepareContext(ctx, query)
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	_, err = s.ExecContext(with(ctx, value))
	return err
}

func (d *observedDB) raw() error {
	c, err := d.db.Conn(d.t.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(dc any) error {
		if _, ok := dc.(interface{ Raw() driver.Conn }).Raw().(*fakedb.RecorderConn); !ok {
			return errors.New("not the base driver's connection")
		}
		return nil
	})
}

func with(ctx context.Context, value int64) context.Context {
	if value == 0 {
		return ctx
	}
	return sqlfence.WithFence(ctx, token("books", value))
}
