package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A database with WithoutGuards sends every statement unchanged, and reports each statement that would have been
// guarded or refused once.
func TestWithBypass(t *testing.T) {
	for name, opts := range map[string][]sqlfence.Option{
		"alone": nil, "observed": observeMode, "with a statement cache": {sqlfence.WithStatementCache(8)},
	} {
		var events told
		base := &fakedb.Recorder{}
		db := open(t, base, slices.Concat(opts, []sqlfence.Option{sqlfence.WithoutGuards("migration 7"), events.option(), sqlfence.WithTable("books", fenced)})...)
		for _, tt := range []struct {
			query string
			told  bool
		}{
			{"UPDATE books SET price = 1", true},
			{"TRUNCATE books", true},
			{"UPDATE books SET fence = 1; DELETE FROM books", true},
			{"DELETE FROM fencing_tokens", true},
			{"UPDATE others SET price = 1", false},
			{"SELECT 1", false},
		} {
			for way, run := range runs {
				events = nil
				if err := run(t.Context(), db, tt.query); err != nil {
					t.Errorf("%s, %s by %s: %v", name, tt.query, way, err)
				}
				base.WantSent(t, tt.query)
				switch {
				case !tt.told && len(events) == 0:
				case len(events) != 1 || events[0].Kind != sqlfence.Bypassed || events[0].Reason != "migration 7" || events[0].Query != tt.query:
					t.Errorf("%s, %s by %s: told %+v", name, tt.query, way, events)
				}
			}
		}
		events = nil
		if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "mine"), "TRUNCATE books"); err != nil || events[0].Reason != "mine" {
			t.Errorf("%s: told %+v; %v", name, events, err)
		}
	}
}

func TestWithBypassFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []sqlfence.Option
		want string
	}{
		"empty":     {[]sqlfence.Option{sqlfence.WithoutGuards("")}, "WithoutGuards without a reason"},
		"two":       {[]sqlfence.Option{sqlfence.WithoutGuards("a"), sqlfence.WithoutGuards("b")}, "WithoutGuards twice"},
		"same":      {[]sqlfence.Option{sqlfence.WithoutGuards("a"), sqlfence.WithoutGuards("a")}, ""},
		"one empty": {[]sqlfence.Option{sqlfence.WithoutGuards("a"), sqlfence.WithoutGuards("")}, "WithoutGuards without a reason"},
	} {
		db, err := sqlfence.OpenDB(&fakedb.Recorder{}, append(tt.opts, sqlfence.WithDialect(sqlfence.SQLite))...)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			db.Close()
			continue
		}
		if !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// A tool for migrations takes a *sql.DB, and no context.
func ExampleWithBypass() {
	db, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books"),
		sqlfence.WithoutGuards("migration 7"),
		sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { fmt.Println(e.Kind, e.Reason, e.Query) }))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("ALTER TABLE books DROP COLUMN price"); err != nil {
		log.Fatal(err)
	}
	// Output: bypassed migration 7 ALTER TABLE books DROP COLUMN price
}
