package adopting_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The first table is enforced, the second is observed. The coverage report shows which table is ready to be enforced.
func TestTableByTable(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 9)
		sh.Raise(t, "pens", 9)
		driverName, dsn := b.DriverName, sh.Source

		seen := coverage.New()
		db, err := sqlfence.Open(driverName, dsn, seen.Option(),
			sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.InMode(sqlfence.Enforce)),
			sqlfence.WithTable("pens", sqlfence.Ledger()))

		harness.CloseAtEnd(t, db, err)
		_, err = db.ExecContext(t.Context(), "UPDATE books SET price = 20 WHERE id = 1")
		harness.WantError(t, err, sqlfence.ErrNoFence)
		_, err = db.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 20 WHERE id = 1")
		harness.WantError(t, err, sqlfence.ErrStale)
		if _, err = db.ExecContext(harness.Holding(t, 9), "UPDATE books SET price = 20 WHERE id = 1"); err != nil {
			t.Error(err)
		}
		for range 2 {
			if _, err = db.ExecContext(t.Context(), "UPDATE pens SET price = 20 WHERE id = 1"); err != nil {
				t.Errorf("observed: %v", err)
			}
		}
		if got := sh.State(t, true); got != "1:20@9 2:10@9 3:10@9" {
			t.Errorf("the books are %s", got)
		}

		var out bytes.Buffer
		if err := report(&out, seen); err != nil {
			t.Fatal(err)
		}
		tables, statements, _ := strings.Cut(out.String(), "\n\n")
		onPage(t, tables)
		for _, reason := range []string{"stale fencing token", `no fencing token: table "books"`, `no fencing token: table "pens"`} {
			if !strings.Contains(statements, reason) {
				t.Errorf("the report doesn't have %q:\n%s", reason, statements)
			}
		}
		if err := seen.Report().Check(); err == nil || !strings.Contains(err.Error(), "UPDATE pens") {
			t.Errorf("Check: %v", err)
		}
	})
}

// A table whose name is misspelled isn't guarded. The report shows it.
func TestMisspelledTable(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		seen := coverage.New()
		db := b.Fenced(t, sh.Source, seen.Option(), sqlfence.WithTable("bokos"))
		harness.MustExec(t, db, "UPDATE books SET price = 20 WHERE id = 1")
		report := seen.Report()
		if len(report.Tables) != 0 || len(report.Statements) != 1 || report.Statements[0].Passed != 1 {
			t.Errorf("the report has %+v", report)
		}
	})
}

func report(w io.Writer, seen *coverage.Collector) error {
	return seen.Report().WriteText(w)
}

// Explain returns a statement's guarded SQL, or the reason for its refusal, without executing the statement.
func TestExplain(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Fenced(t, b.DSN(t), harness.Books(sqlfence.RowFence("fence_token")))
		var out bytes.Buffer
		explain := func(db *sql.DB) error {
			for _, query := range []string{
				b.Text(t, harness.SetPrice),
				"ALTER TABLE books ADD COLUMN pages bigint",
			} {
				x, err := sqlfence.Explain(db, query)
				if err != nil {
					return err
				}
				fmt.Fprintln(&out, x.Kind, x.Tables, x.SQL, x.Err)
			}
			return nil
		}
		if err := explain(db); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "guarded [books] UPDATE") || !strings.Contains(out.String(), "refused [books]") {
			t.Errorf("explained\n%s", &out)
		}
	})
}
