package statements_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var severalRules = map[string][]sqlfence.Rule{
	"row fence": {sqlfence.RowFence("fence_token")},
	"ledger":    {sqlfence.Ledger()},
	"both":      {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
}

// severalParts are statements, some of which form a text.
var severalParts = []string{
	"UPDATE books SET price = price + 1 WHERE id = 1",
	"UPDATE books SET price = 2 /* ; */ WHERE isbn <> ';'",
	"DELETE FROM books WHERE id = 3",
	"INSERT INTO books (id, isbn) VALUES (7, 'i7;') ON CONFLICT DO NOTHING",
	"INSERT INTO books (id, price) SELECT id + 10, 4 FROM books WHERE id < 3 ON CONFLICT (id) DO UPDATE SET price = 5",
	"WITH x AS (SELECT 2 AS id) UPDATE books SET price = 6 WHERE id IN (SELECT id FROM x)",
	"INSERT INTO books (id, isbn, price, stock) VALUES (8, 'i8', 8, 8) ON CONFLICT DO NOTHING",
	"UPDATE pens SET price = price + 1",
	"INSERT INTO pens VALUES (1, 3) ON CONFLICT DO NOTHING",
	"SELECT price FROM books -- ; DELETE FROM books\n",
	"INSERT INTO books (id, price) VALUES (1, 1)", // fails: key 1 exists
	"",
}

// randomText returns some of the statements, joined with semicolons.
func randomText(random *rand.Rand) string {
	parts := make([]string, 2+random.IntN(3))
	for i := range parts {
		parts[i] = severalParts[random.IntN(len(severalParts))]
	}
	return strings.Join(parts, []string{";", " ;\n", ";;"}[random.IntN(3)])
}

// eachScript runs test on the bases that guard several statements in one text.
func eachScript(t *testing.T, test func(t *testing.T, b harness.Base)) {
	t.Helper()
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Scripts() {
			t.Skip("several statements are refused")
		}
		test(t, b)
	})
}

// A multi-statement string has the same effect as through the base driver.
func TestSeveralStatements(t *testing.T) {
	eachScript(t, func(t *testing.T, b harness.Base) {
		for name, rules := range severalRules {
			t.Run(name, func(t *testing.T) {
				s, plain := harness.NewShop(t, b, rules...), harness.NewShop(t, b)
				for n := range 60 {
					text := randomText(rand.New(rand.NewPCG(uint64(n), 3)))
					s.Reset(t, 5)
					plain.Reset(t, 5)
					got, err := affected(s.DB.ExecContext(harness.Holding(t, 5), text))
					want, errPlain := affected(plain.Plain.ExecContext(t.Context(), text))
					if (err == nil) != (errPlain == nil) || got != want {
						t.Errorf("%s: %d rows, %v; by the base driver %d, %v", text, got, err, want, errPlain)
					}
					if got, want := s.State(t, false)+pensOf(t, s.Plain), plain.State(t, false)+pensOf(t, plain.Plain); got != want {
						t.Errorf("%s leaves %s; the base driver %s", text, got, want)
					}
				}
			})
		}
	})
}

// A stale statement changes no guarded row. The effects of the statements before it stay or are undone as after other
// errors.
func TestSeveralStatementsStale(t *testing.T) {
	eachScript(t, func(t *testing.T, b harness.Base) {
		for name, rules := range severalRules {
			t.Run(name, func(t *testing.T) {
				s := harness.NewShop(t, b, rules...)
				s.Reset(t, 9)
				s.Exec(t, "INSERT INTO pens VALUES (1, 3)")
				unchanged := s.Unchanged(t)
				const text = "UPDATE pens SET price = 4; UPDATE books SET price = 30 WHERE id = 1; DELETE FROM books"
				_, err := s.DB.ExecContext(harness.Holding(t, 8), text)
				harness.WantStale(t, err, 8, 9)
				unchanged()
				want := "1:4 "
				if b.Dialect == sqlfence.Postgres {
					want = "1:3 "
				}
				if got := pensOf(t, s.Plain); got != want {
					t.Errorf("pens are %s, want %s", got, want)
				}
				s.Exec(t, "UPDATE pens SET price = 3")
				tx, err := s.DB.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = tx.ExecContext(harness.Holding(t, 8), text)
				harness.WantStale(t, err, 8, 9)
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				unchanged()
				if got := pensOf(t, s.Plain); got != "1:3 " {
					t.Errorf("after the rollback pens are %s", got)
				}
				for n := range 60 {
					text := randomText(rand.New(rand.NewPCG(uint64(n), 4)))
					before := bookLines(s.State(t, true))
					_, err := s.DB.ExecContext(harness.Holding(t, 8), text)
					after := " " + s.State(t, true) + " "
					for _, book := range before {
						if !strings.Contains(after, " "+book+" ") {
							t.Errorf("%s: %v; %s is gone from%s", text, err, book, after)
						}
					}
					if name != "row fence" && len(before) != len(bookLines(after)) {
						t.Errorf("%s: %v; books are%s", text, err, after)
					}
					s.Reset(t, 9)
				}
			})
		}
	})
}

// Two tables, each with its token: the error names the stale token.
func TestSeveralStatementsOfTwoTables(t *testing.T) {
	eachScript(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		s.Reset(t, 5)
		s.Raise(t, "pens", 6)
		s.Exec(t, "INSERT INTO pens VALUES (1, 3)")
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.Ledger()), sqlfence.WithTable("pens", sqlfence.Ledger()))
		const text = "SELECT 1; UPDATE books SET price = 30 WHERE id = 1; UPDATE pens SET price = 4; UPDATE books SET price = 31 WHERE id = 2"
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 5}, sqlfence.Token{Name: "pens", Value: 5})
		var stale *sqlfence.StaleError
		if _, err := db.ExecContext(ctx, text); !errors.As(err, &stale) || stale.Table != "pens" || stale.Current != 6 {
			t.Errorf("%v, want stale pens", err)
		}
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "pens", Value: 6})
		if _, err := db.ExecContext(ctx, text); err != nil {
			t.Error(err)
		}
		if got := s.State(t, false) + " " + pensOf(t, s.Plain); got != "1:30 2:31 3:10 1:4 " {
			t.Errorf("left %s", got)
		}
	})
}

// Each row has a separate token, in every statement that writes the row.
func TestSeveralStatementsByKey(t *testing.T) {
	eachScript(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
		s.Reset(t, 5)
		token := func(key string, value int64) sqlfence.Token {
			return sqlfence.Token{Name: "books/" + key, Value: value}
		}
		const text = "INSERT INTO books (id, price) VALUES (7, 7), (8, 8); UPDATE books SET price = 30 WHERE id = 1; INSERT INTO books (id) VALUES (9); DELETE FROM books WHERE id = 2"
		ctx := sqlfence.WithFence(t.Context(), token("1", 6), token("2", 4), token("7", 10), token("8", 11), token("9", 12))
		if _, err := s.DB.ExecContext(ctx, text); !errors.Is(err, sqlfence.ErrStale) || !strings.Contains(err.Error(), "books/2") {
			t.Errorf("%v, want stale books/2", err)
		}
		s.Reset(t, 5)
		if _, err := s.DB.ExecContext(sqlfence.WithFence(ctx, token("2", 5)), text+"; UPDATE books SET price = 1 WHERE id = 3"); !errors.Is(err, sqlfence.ErrOutOfScope) {
			t.Errorf("%v, want ErrOutOfScope for 3", err)
		}
		s.Reset(t, 5)
		if _, err := s.DB.ExecContext(sqlfence.WithFence(ctx, token("2", 5)), text); err != nil {
			t.Error(err)
		}
		if got := s.State(t, true); got != "1:30@6 3:10@5 7:7@10 8:8@11 9:10@12" {
			t.Errorf("books are %s", got)
		}
	})
}

// A text is refused if the driver wouldn't run all of its statements, or might run one twice, and if it does more than
// write and read rows.
func TestSeveralStatementsRefused(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		s.Reset(t, 5)
		unchanged := s.Unchanged(t)
		db, count := b.Counted(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")))
		const text = "UPDATE books SET price = 30; DELETE FROM books"
		want := func(how string, err error) {
			var refused *sqlfence.UnguardableError
			if !errors.As(err, &refused) {
				t.Errorf("%s: %v, want ErrUnguardable", how, err)
			}
		}
		for how, run := range harness.Ways {
			if how != "exec" {
				want(how, run(harness.Holding(t, 5), db, text))
				want(how, run(harness.Holding(t, 5), db, "UPDATE books SET price = 30; SELECT 1"))
				want(how, run(harness.Holding(t, 5), db, "SELECT 1; UPDATE books SET price = 30"))
			}
			for _, query := range []string{
				"UPDATE books SET price = $1; DELETE FROM books",
				"BEGIN; UPDATE books SET price = 30; COMMIT",
				"UPDATE books SET price = 30; COMMIT",
				"SAVEPOINT x; UPDATE books SET price = 30",
				"CREATE TABLE x (id integer); UPDATE books SET price = 30",
				"UPDATE books SET price = 30; DROP TABLE pens",
				"EXPLAIN SELECT 1; UPDATE books SET price = 30",
				"UPDATE books SET price = 30; UPDATE fencing_tokens SET token = 1",
				"CREATE TRIGGER x AFTER UPDATE ON pens BEGIN SELECT 1; UPDATE books SET price = 30; END",
				"CREATE FUNCTION f() RETURNS void BEGIN ATOMIC DELETE FROM pens; UPDATE books SET price = 30; END",
			} {
				want(query+" by "+how, run(harness.Holding(t, 5), db, query))
			}
		}
		if b.IsPgx() {
			_, err := db.ExecContext(harness.Holding(t, 5), text, pgx.QueryExecModeSimpleProtocol)
			want("a mode", err)
		}
		if got := count.Texts(); len(got) != 0 {
			t.Errorf("reached the database: %q", got)
		}
		unchanged()
	})
}

// In Observe mode a text of several statements is sent unchanged, once, and reported.
func TestSeveralStatementsObserved(t *testing.T) {
	eachScript(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		s.Reset(t, 9)
		s.Exec(t, "INSERT INTO pens VALUES (1, 3)")
		var told []string
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, fmt.Sprint(e.Kind, e.Tables)) }))
		if _, err := db.ExecContext(harness.Holding(t, 8), "UPDATE pens SET price = price + 1; UPDATE books SET price = 30 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		if got := s.State(t, true) + " " + pensOf(t, s.Plain); got != "1:30@9 2:10@9 3:10@9 1:4 " {
			t.Errorf("left %s", got)
		}
		if len(told) != 1 || !strings.Contains(told[0], "books") {
			t.Errorf("told %q", told)
		}
	})
}

// affected returns the number of rows, or -1 if the driver has no result, as modernc after an empty last statement.
func affected(res sql.Result, err error) (n int64, _ error) {
	if err != nil {
		return 0, err
	}
	defer func() {
		if recover() != nil {
			n = -1
		}
	}()
	return res.RowsAffected()
}

func bookLines(state string) []string { return strings.Fields(state) }

func pensOf(t *testing.T, db *sql.DB) (all string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, price FROM pens ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, price int
		if err := rows.Scan(&id, &price); err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%d:%d ", id, price)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// The token's name is a constant in the text. Its meaning doesn't depend on its characters, nor on how the session
// reads strings.
func TestSeveralStatementsTokenNames(t *testing.T) {
	eachScript(t, func(t *testing.T, b harness.Base) {
		for _, name := range []string{`a'b\c`, `\'); DELETE FROM books; --`, `$1 ? :a @b $$`} {
			s := harness.NewShop(t, b, sqlfence.Resource(name), sqlfence.RowFence("fence_token"), sqlfence.Ledger())
			s.Raise(t, name, 5)
			conn, err := s.DB.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			settings := []string{"SELECT 1"}
			if b.Dialect == sqlfence.Postgres {
				settings = []string{"SET standard_conforming_strings = off", "SET standard_conforming_strings = on"}
			}
			for _, setting := range settings {
				if _, err := conn.ExecContext(t.Context(), setting); err != nil {
					t.Fatal(err)
				}
				s.Reset(t, 5)
				unchanged := s.Unchanged(t)
				const text = "SELECT 'x'; UPDATE books SET price = 30 WHERE id = 1; DELETE FROM books WHERE id = 2"
				_, err := conn.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: 4}), text)
				harness.WantError(t, err, sqlfence.ErrStale)
				unchanged()
				if _, err := conn.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: 5}), text); err != nil {
					t.Error(err)
				}
				if got := s.State(t, false); got != "1:30 3:10" {
					t.Errorf("%s, %q: left %s", setting, name, got)
				}
			}
		}
	})
}
