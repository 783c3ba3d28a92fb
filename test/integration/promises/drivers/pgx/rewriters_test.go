package pgx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The server gets the statement that a query rewriter among the arguments returns, so this statement must be guarded.

// rewriter is an application's QueryRewriter, which may return any statement.
type rewriter struct {
	query string
	args  []any
}

func (r rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return r.query, r.args, nil
}

// NamedArgs is an application's type that only resembles pgx's.
type NamedArgs map[string]any

func (NamedArgs) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "UPDATE books SET price = 30 WHERE id = 1", nil, nil
}

// An asking rewriter sends a query on the connection that pgx passes to RewriteQuery.
type asking struct{ asked *int64 }

func (a asking) RewriteQuery(ctx context.Context, c *pgx.Conn, query string, args []any) (string, []any, error) {
	if err := c.QueryRow(ctx, "SELECT max(id) FROM books").Scan(a.asked); err != nil {
		return "", nil, err
	}
	return strings.ReplaceAll(query, "<price>", "$1"), args, nil
}

// failing is a rewriter that returns an error.
type failing struct{ err error }

func (f *failing) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "UPDATE books SET price = 30", nil, f.err
}

// An argument's name may be any word, also a keyword, in a place of the statement where a value stands.
func TestPgxNamesThatAreKeywords(t *testing.T) {
	words := strings.Fields(`case end as from where limit order set returning when then else and or not is in on do
		select union values using with update delete insert into group having window between fetch offset matched null default`)
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		for _, word := range words {
			for i, tt := range []harness.Write{
				{Name: "set", Query: "UPDATE books SET price = @%s::int WHERE id = @id RETURNING id", Args: nil},
				{Name: "condition", Query: "UPDATE books SET price = 30 WHERE id = @id AND @%s::int = 30", Args: nil},
				{Name: "upsert", Query: "INSERT INTO books (id, price) VALUES (@id, 10) ON CONFLICT (id) DO UPDATE SET price = @%s::int RETURNING id", Args: nil},
				{Name: "merge", Query: "MERGE INTO books USING (SELECT @id::int AS i) AS s ON id = s.i WHEN MATCHED AND 0 < @%s::int THEN UPDATE SET price = 30", Args: nil},
				{Name: "case", Query: "UPDATE books SET price = CASE WHEN @%s::int = 30 THEN 30 ELSE 1 END WHERE id = @id", Args: nil},
			} {
				args := []any{pgx.NamedArgs{word: 30, "id": 1}}
				if i%2 == 1 {
					args = []any{harness.PgxModes[i%len(harness.PgxModes)], pgx.StrictNamedArgs{word: 30, "id": 1}}
				}
				query := fmt.Sprintf(tt.Query, word)
				harness.Directly(func(name string, run harness.RunFunc) {
					staleThenFresh(t, s, fmt.Sprint(tt.Name, " ", word, " ", name), func(ctx context.Context) error { return run(ctx, s.DB, query, args...) })
				})
			}
		}
		// A MERGE that deletes stores no token. With a stale token it changes nothing.
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		merge := "MERGE INTO books b USING (SELECT 1 AS i) s ON b.id = s.i WHEN MATCHED AND b.price < @as THEN DELETE"
		harness.WantStale(t, harness.Ways["exec"](harness.Holding(t, 8), s.DB, merge, pgx.NamedArgs{"as": 30}), 8, 9)
		unchanged()
	})
}

// If two callers have read version 1, only one of them can write.
func TestPgxNamesUnderSerial(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Exec(t, "ALTER TABLE books ADD COLUMN serial integer")
		db := s.Fenced(t, s.Source, sqlfence.WithTable("books", sqlfence.Serial("serial")))
		s.Exec(t, "INSERT INTO books (id, serial) VALUES (1, 1)")
		ctx := sqlfence.WithSerial(t.Context(), 1)
		write := func() error {
			_, err := db.ExecContext(ctx, "UPDATE books SET price = @case::int WHERE id = @id", pgx.NamedArgs{"case": 30, "id": 1})
			return err
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		harness.WantOnly(t, write(), sqlfence.ErrConflict)
	})
}

// With positional arguments the token is an argument, so every token has the same text, and pgx caches one statement.
func TestPgxNamesFillNoCache(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		c, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.Reset(t, 1)
		for value := int64(1); value <= 20; value++ {
			s.Raise(t, "books", value)
			if _, err := c.ExecContext(harness.Holding(t, value), "UPDATE books SET price = @p WHERE id = @id", pgx.NamedArgs{"p": 1, "id": 1}); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%books%'").Scan(&n); err != nil || n > 2 {
			t.Errorf("%d prepared statements, %v; want one", n, err)
		}
	})
}

// The guard covers the text of an application's rewriter, and the rewriter gets pgx's connection.
func TestPgxQueryRewriter(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		sneak := rewriter{query: "UPDATE books SET price = 30 WHERE id = 1"}
		for _, query := range []string{"SELECT 1", "UPDATE pens SET price = 1", "UPDATE books SET price = 1 WHERE id = 1"} {
			for _, args := range [][]any{
				{sneak}, {&sneak}, {pgx.QueryExecModeExec, sneak}, {sneak, pgx.QueryExecModeExec}, {NamedArgs{}}, {sneak, 1},
				{rewriter{harness.SetPrice, []any{30, 1}}}, {pgx.QueryExecModeSimpleProtocol, rewriter{harness.SetPrice, []any{30, 1}}},
			} {
				harness.Directly(func(name string, run harness.RunFunc) {
					staleThenFresh(t, s, fmt.Sprint(name, " ", query, args), func(ctx context.Context) error { return run(ctx, s.DB, query, args...) })
				})
			}
		}
		var asked int64
		staleThenFresh(t, s, "asking", func(ctx context.Context) error {
			return harness.Ways["exec"](ctx, s.DB, "UPDATE books SET price = <price> WHERE id = 1", asking{&asked}, 30)
		})
		if asked != 3 {
			t.Errorf("the rewriter found %d, want 3", asked)
		}
		// A rewriter is also called for a statement without a registered table.
		var got int
		if err := s.DB.QueryRowContext(t.Context(), "SELECT 1", rewriter{"SELECT $1::int", []any{7}}).Scan(&got); err != nil || got != 7 {
			t.Errorf("got %d, %v; want 7", got, err)
		}
		// A database without registered tables runs a rewriter unchecked.
		if err := harness.Ways["exec"](t.Context(), s.Fenced(t, s.Source), "SELECT 1", rewriter{query: "SELECT 2"}); err != nil {
			t.Error(err)
		}
	})
}

// A rewriter among its arguments replaces a prepared statement.
func TestPgxQueryRewriterOfPrepared(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		for _, query := range []string{"SELECT $1::int", "UPDATE pens SET price = $1", "UPDATE books SET price = $1 WHERE id = 3"} {
			for name, run := range harness.Ways {
				if strings.HasPrefix(name, "prepared") {
					staleThenFresh(t, s, name+" "+query, func(ctx context.Context) error {
						return run(ctx, s.DB, query, rewriter{harness.SetPrice, []any{30, 1}})
					})
				}
			}
		}
	})
}

// These cases are refused: no access to pgx's connection, names that versions of pgx treat differently, and arguments
// that would be options.
func TestPgxQueryRewriterRefused(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Reset(t, 9)
		defer s.Unchanged(t)()
		for _, args := range [][]any{
			{pgx.NamedArgs{"p": 1}, pgx.NamedArgs{"p": 2}},
			{rewriter{query: "SELECT 1"}, pgx.QueryExecModeExec, rewriter{query: "SELECT 2"}},
			{rewriter{harness.SetPrice, []any{pgx.QueryExecModeExec, 1}}},
			{rewriter{harness.SetPrice, []any{pgx.NamedArgs{}, 1}}},
			{pgx.NamedArgs{"p": rewriter{query: harness.SetPrice}}},
			{pgx.NamedArgs{"p": pgx.QueryExecModeSimpleProtocol}},
		} {
			harness.Directly(func(name string, run harness.RunFunc) {
				err := run(harness.Holding(t, 10), s.DB, "UPDATE books SET price = @p WHERE id = 1", args...)
				if !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s %v: %v", name, args, err)
				}
			})
		}
		// A wrapper that hides pgx's connection leaves no connection for the rewriter.
		db, _ := s.Counted(t, s.Source, harness.Books())
		_, err := db.ExecContext(harness.Holding(t, 10), "SELECT 1", rewriter{query: "SELECT 2"})
		harness.WantOnly(t, err, sqlfence.ErrUnguardable)
	})
}

// pgx replaces the names in a statement without a registered table, and returns its rewriters' errors.
func TestPgxQueryRewriterElsewhere(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		db, count := s.Counted(t, s.Source, harness.Books())
		args := []any{pgx.NamedArgs{"from": 1}}
		if _, err := db.ExecContext(t.Context(), "UPDATE pens SET price = @from", args...); err != nil {
			t.Fatal(err)
		}
		if got := count.Texts(); !slices.Equal(got, []string{"UPDATE pens SET price = @from"}) {
			t.Errorf("sent %q", got)
		}
		boom := errors.New("boom")
		for _, arg := range []any{&failing{boom}, pgx.StrictNamedArgs{}, pgx.StructArgs(nil)} {
			harness.Directly(func(name string, run harness.RunFunc) {
				errRaw := run(t.Context(), s.Plain, "UPDATE books SET price = @p", arg)
				err := run(harness.Holding(t, 9), s.DB, "UPDATE books SET price = @p", arg)
				if errRaw == nil || harness.ErrorText(err) != harness.ErrorText(errRaw) || errors.Is(errRaw, boom) != errors.Is(err, boom) {
					t.Errorf("%s %T: %v, want %v", name, arg, err, errRaw)
				}
			})
		}
		// An empty map of names leaves the text unchanged.
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		harness.WantStale(t, harness.Ways["exec"](harness.Holding(t, 8), s.DB, "UPDATE books SET price = 30", pgx.NamedArgs(nil)), 8, 9)
		unchanged()
	})
}

// Under Bypass and in Observe mode a rewriter has the same effect as with pgx alone.
func TestPgxQueryRewriterBypassAndObserve(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		query, names := "UPDATE books SET price = @case::int WHERE id = @id", pgx.NamedArgs{"case": 30, "id": 1}
		own := rewriter{harness.SetPrice, []any{30, 1}}
		observed := s.Fenced(t, s.Source, harness.Books(), sqlfence.WithMode(sqlfence.Observe))
		for _, args := range [][]any{{names}, {own}} {
			for _, tt := range []struct {
				ctx context.Context
				run func(ctx context.Context) error
			}{
				{sqlfence.Bypass(t.Context(), "repair"), func(ctx context.Context) error { return harness.Ways["exec"](ctx, s.DB, query, args...) }},
				{t.Context(), func(ctx context.Context) error { return harness.Ways["exec"](ctx, observed, query, args...) }},
				{harness.Holding(t, 8), func(ctx context.Context) error { return harness.Ways["exec"](ctx, observed, query, args...) }},
			} {
				s.Reset(t, 9)
				if err := tt.run(tt.ctx); err != nil {
					t.Error(err)
				}
				if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("left %s", got)
				}
			}
		}
	})
}
