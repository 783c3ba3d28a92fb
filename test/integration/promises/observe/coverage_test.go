package observe_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The coverage counts a program's statements by their outcome, with their places in the program, on every driver, also
// if they are prepared.
func TestCoverage(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	here := "observe/" + filepath.Base(file)
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 9)
		seen := coverage.New(coverage.WithCallers("github.com/sqlfence/sqlfence/test/integration/harness"))
		db := b.Fenced(t, sh.Source, seen.Option(), harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithTable("pens", sqlfence.Optional()))
		ways := int64(len(harness.Ways))
		for _, tt := range []struct {
			query       string
			fingerprint string
			ctx         context.Context
			args        []any
			counts      coverage.Counts
			open        bool
		}{
			{"UPDATE books SET price = $1 WHERE id = 1 RETURNING id", "UPDATE books SET price = ? WHERE id = ? RETURNING id", harness.Holding(t, 9), []any{30}, coverage.Counts{Guarded: ways}, false},
			{"UPDATE books SET price = 30 WHERE id = 2 RETURNING id", "UPDATE books SET price = ? WHERE id = ? RETURNING id", harness.Holding(t, 9), nil, coverage.Counts{Guarded: 2 * ways}, false},
			{"DELETE FROM books WHERE id = 2 RETURNING id", "DELETE FROM books WHERE id = ? RETURNING id", harness.Holding(t, 8), nil, coverage.Counts{Refused: ways}, false},
			{"DELETE FROM books WHERE price > 7", "DELETE FROM books WHERE price > ?", t.Context(), nil, coverage.Counts{Refused: ways}, true},
			{"UPDATE books SET fence_token = 7", "UPDATE books SET fence_token = ?", harness.Holding(t, 9), nil, coverage.Counts{Refused: ways}, true},
			{"DELETE FROM pens", "DELETE FROM pens", t.Context(), nil, coverage.Counts{Unfenced: ways}, true},
			{"DELETE FROM books WHERE id > 70", "DELETE FROM books WHERE id > ?", sqlfence.Bypass(t.Context(), "repair"), nil, coverage.Counts{Bypassed: ways}, false},
			{"SELECT id FROM books WHERE id IN ($1, $2)", "SELECT id FROM books WHERE id IN (?)", t.Context(), []any{1, 2}, coverage.Counts{Passed: ways}, false},
		} {
			for _, run := range harness.Ways {
				_ = run(tt.ctx, db, tt.query, tt.args...) // refusals are counted
			}
			report := seen.Report()
			i := slices.IndexFunc(report.Statements, func(s coverage.Statement) bool { return s.Fingerprint == b.Text(t, tt.fingerprint) })
			if i < 0 {
				t.Fatalf("%q isn't in %+v", tt.fingerprint, report.Statements)
			}
			s := report.Statements[i]
			s.Time = 0
			if s.Counts != tt.counts || s.IsOpen() != tt.open {
				t.Errorf("%s: %+v, want %+v, open %v", tt.query, s, tt.counts, tt.open)
			}
			if len(s.Places) == 0 || !strings.HasPrefix(s.Places[0], here+":") {
				t.Errorf("%s: places %q", tt.query, s.Places)
			}
		}
		if report := seen.Report(); len(report.Tables) != 2 || report.Tables[0].Name != "books" || report.Tables[0].Time <= 0 {
			t.Errorf("tables = %+v", report.Tables)
		}
	})
}

// A pool with WithoutGuards is for tools that pass no context. The pool sends the tools' statements unchanged, also
// several statements in one text.
func TestWithBypass(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		w := harness.Watch(t, b, sqlfence.WithoutGuards("migration"), harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
		w.Clear(t, 9)
		const script = "ALTER TABLE books ADD COLUMN shelf integer; UPDATE books SET shelf = 1, fence_token = NULL; UPDATE fencing_tokens SET token = 10"
		texts := []string{script}
		if b.Dialect == sqlfence.MySQL { // MySQL's driver sends several statements only with multiStatements
			texts = strings.Split(script, "; ")
		}
		for _, text := range texts {
			if _, err := w.DB.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := w.DB.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("DELETE FROM books WHERE shelf = $1 AND id > 1", 1); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := w.State(t, true); got != "1:10@0" {
			t.Errorf("it left %s", got)
		}
		if len(w.Events) != len(texts)+1 || w.Events[0].Kind != sqlfence.Bypassed || w.Events[0].Query != texts[0] || w.Events[len(texts)].Reason != "migration" {
			t.Errorf("told %+v", w.Events)
		}
	})
}
