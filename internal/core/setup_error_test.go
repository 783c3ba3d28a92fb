package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func TestSetupError(t *testing.T) {
	const query = "UPDATE books SET price = 1"
	for _, test := range []struct {
		name  string
		rules []sqlfence.Rule
		query string
		base  string
		want  string // empty for the base driver's error
	}{
		{"fence column", []sqlfence.Rule{fenced}, query, "no such column: fence",
			"ALTER TABLE books ADD COLUMN fence bigint NOT NULL DEFAULT 0"},
		{"an odd name", []sqlfence.Rule{sqlfence.RowFence(`"fence-token"`)}, query, "no such column: fence-token",
			"ALTER TABLE books ADD COLUMN `fence-token` bigint NOT NULL DEFAULT 0"},
		{"serial column", []sqlfence.Rule{sqlfence.Serial("serial")}, query, "no such column: serial",
			"ALTER TABLE books ADD COLUMN serial bigint NOT NULL DEFAULT 1"},
		{"lock's column", []sqlfence.Rule{sqlfence.EditLock("a", "b_since", "c")}, query, "no such column: b_since",
			"ALTER TABLE books ADD COLUMN b_since integer"},
		{"ledger", []sqlfence.Rule{sqlfence.Ledger()}, query, "no such table: fencing_tokens",
			"CREATE TABLE IF NOT EXISTS fencing_tokens (\n\tname  text   NOT NULL PRIMARY KEY,\n\ttoken bigint NOT NULL\n)"},
		{"a column of the application's", []sqlfence.Rule{fenced}, query, "no such column: price", ""},
		{"a column that the application names", []sqlfence.Rule{fenced}, query + " WHERE Fence > 1", "no such column: fence", ""},
		{"a ledger that nobody needs", []sqlfence.Rule{fenced}, query, "no such table: fencing_tokens", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			missing := errors.New(test.base)
			base := &fakedb.Recorder{Fails: func(sent string) error {
				if sent != test.query {
					return missing
				}
				return nil
			}}
			ctx := sqlfence.WithFence(t.Context(), token("books", 7))
			_, err := open(t, base, sqlfence.WithTable("books", test.rules...)).ExecContext(ctx, test.query)
			var setup *sqlfence.SetupError
			switch found := errors.As(err, &setup); {
			case !errors.Is(err, missing):
				t.Errorf("%v doesn't wrap the base driver's error", err)
			case found != (test.want != "") || found != errors.Is(err, sqlfence.ErrNotSetUp):
				t.Errorf("error %v, want the SQL %q", err, test.want)
			case found && (setup.SQL != test.want || !strings.Contains(err.Error(), setup.SQL) || setup.Temporary()):
				t.Errorf("error %v with the SQL %q, want %q", err, setup.SQL, test.want)
			}

			var told []error
			db := open(t, base, sqlfence.WithTable("books", test.rules...), sqlfence.WithMode(sqlfence.Observe),
				sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, e.Err) }))
			_, _ = db.ExecContext(ctx, test.query)
			for _, err := range told {
				if errors.Is(err, sqlfence.ErrNotSetUp) != (test.want != "") {
					t.Errorf("in Observe mode the observer is told %v", err)
				}
			}
		})
	}
}
