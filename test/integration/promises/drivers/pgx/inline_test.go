package pgx_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In the simple protocol pgx writes the arguments into the text. If pgx's scanner and the server's read a text
// differently, the text isn't sent. Every sent text has the same meaning as in the extended protocol. The texts consist
// of pieces that scanners read differently.
func TestPgxInlines(t *testing.T) {
	pieces := []string{
		"a$1", "$1", "$2", "'$1'", "'it''s'", `"a$1"`, "E'\\'$1'", "date'\\'", "time'$1'", "$$ $1 ' $$", "$x$ ' $x$",
		"-- '\n", "/* ' /* $1 */ */", "U&'\\0041'", "n'$1'", "b'1'", "e", "\n", " ", "-", "::text", "||", "a$b$", "$3",
	}
	rw, err := rewrite.New(dialect.Postgres, []rewrite.Table{{Name: "books", FenceColumn: "fence_token"}})
	if err != nil {
		t.Fatal(err)
	}
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Exec(t, `ALTER TABLE books ADD COLUMN "a$1" text, ADD COLUMN note text`)
		r := rand.New(rand.NewPCG(1, 2))
		sent, refused := 0, 0
		for range 800 {
			var b strings.Builder
			for range 1 + r.IntN(4) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			query := fmt.Sprintf("UPDATE books SET note = (%s), isbn = $1::text || $2::text WHERE id = 1", b.String())
			var left [2]string
			var errs [2]error
			for i, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
				s.Reset(t, 9)
				_, errs[i] = s.DB.ExecContext(harness.Holding(t, 9), query, mode, "it's", `x\y`)
				if err := s.Plain.QueryRow("SELECT concat(isbn, ' ', note, ' ', fence_token) FROM books WHERE id = 1").Scan(&left[i]); err != nil {
					t.Fatal(err)
				}
			}
			if p := rw.Plan(query); p.Verdict == guard.Guard && !p.Inlines() {
				refused++
				for _, err := range errs {
					harness.WantOnly(t, err, sqlfence.ErrUnguardable)
				}
				continue
			}
			if errs[0] == nil {
				if sent++; errs[1] == nil && left[0] != left[1] {
					t.Errorf("%q\nleft %s\nand in the simple protocol %s", query, left[0], left[1])
				}
			}
		}
		t.Logf("%d sent, %d refused", sent, refused)
		if sent < 20 || refused < 20 {
			t.Errorf("%d sent, %d refused", sent, refused)
		}
	})
}

// A statement without arguments is sent with the guard's values in its text.
func TestPgxInlinesNothing(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		const query = "UPDATE books SET price = 30, isbn = $$it's$$ WHERE id = 1 RETURNING id"
		for _, name := range []string{"exec", "query"} {
			s.Reset(t, 9)
			harness.WantOnly(t, harness.Ways[name](harness.Holding(t, 8), s.DB, query), sqlfence.ErrStale)
			if err := harness.Ways[name](harness.Holding(t, 9), s.DB, query); err != nil {
				t.Errorf("by %s: %v", name, err)
			}
			if got := s.State(t, true); !strings.HasPrefix(got, "1:30@9 ") {
				t.Errorf("by %s: books are %s", name, got)
			}
		}
	})
}

// An argument ends no string, even in a statement that writes no registered table: the rest of the argument would be a
// statement without a plan.
func TestArgumentsOfOtherStatementsAreNoStatements(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		const write = "; UPDATE books SET price = 30 WHERE id = 1; --"
		for _, open := range []string{
			"E'a'\n'b\\' || ", "name'\\' || '", "date'\\", "$$", "$a$", "$é$", "a$a$", "$ø1$", "'", "E'\\'", "U&'", "\"", "/* /* */", "--",
		} {
			for _, end := range []string{"", "'", "$$", "$a$", "$é$", "\"", "*/", "\n"} {
				for _, text := range []string{"SELECT " + open + " $1", "SELECT " + open + "$1 -- '", "SELECT 1 AS a, " + open + " $1 " + end} {
					for _, value := range []string{write, end + write, " " + end + ", 1" + write} {
						_, _ = s.DB.ExecContext(harness.Holding(t, 8), text, pgx.QueryExecModeSimpleProtocol, value)
						named := pgx.NamedArgs{"v": value}
						_, _ = s.DB.ExecContext(harness.Holding(t, 8), strings.ReplaceAll(text, "$1", "@v"), pgx.QueryExecModeSimpleProtocol, named)
					}
				}
			}
		}
		unchanged()
		for _, text := range []string{"SELECT 'a\\' || $1 -- $2", "SELECT e'\\'$2' || $1", `SELECT $1 AS "$2"`, "SELECT $1 LIKE '%\\_' ESCAPE '\\'"} {
			if _, err := s.DB.ExecContext(t.Context(), text, "'"); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		for _, text := range []string{"SELECT $$it's $1$$", "SELECT date'2020-01-01' + 1"} {
			if _, err := s.DB.ExecContext(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// The same holds in a write without a guard, because its table is observed or accepts writes without a token.
func TestArgumentsOfWritesWithoutGuardsAreNoStatements(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		for name, option := range map[string]sqlfence.Rule{
			"observed": sqlfence.InMode(sqlfence.Observe), "optional": sqlfence.Optional(),
		} {
			db := s.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")),
				sqlfence.WithTable("pens", sqlfence.RowFence("fence_token"), option))
			s.Reset(t, 9)
			unchanged := s.Unchanged(t)
			for _, text := range []string{
				"UPDATE pens SET price = 3 WHERE 'x' = E'a'\n'b\\' || $1 -- '", "TRUNCATE pens; SELECT E'a'\n'b\\' ||  $1",
				"UPDATE pens SET price = 3 WHERE 'x' = E'a'\n'b\\' ||  $1",
			} {
				_, err := db.ExecContext(harness.Holding(t, 8), text, pgx.QueryExecModeSimpleProtocol,
					"; UPDATE books SET price = 30 WHERE id = 1; --")
				if !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s: %s: %v", name, text, err)
				}
			}
			unchanged()
		}
	})
}
