package drivers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
)

// What a query rewriter among the arguments makes of a statement is what the
// server reads, so it is what has to be guarded.

// rewriter is an application's own QueryRewriter, which may write anything.
type rewriter struct {
	query string
	args  []any
}

func (r rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return r.query, r.args, nil
}

// NamedArgs is a type of the application's that only looks like pgx's.
type NamedArgs map[string]any

func (NamedArgs) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "UPDATE books SET price = 30 WHERE id = 1", nil, nil
}

// A counter of rows asks the server, on the connection that pgx gives it.
type asking struct{ asked *int64 }

func (a asking) RewriteQuery(ctx context.Context, c *pgx.Conn, query string, args []any) (string, []any, error) {
	if err := c.QueryRow(ctx, "SELECT max(id) FROM books").Scan(a.asked); err != nil {
		return "", nil, err
	}
	return strings.ReplaceAll(query, "<price>", "$1"), args, nil
}

// failing fails, as a rewriter may.
type failing struct{ err error }

func (f *failing) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "UPDATE books SET price = 30", nil, f.err
}

// directly runs f for the ways to send a statement that isn't prepared.
func directly(f func(name string, run runFunc)) {
	for name, run := range ways {
		if !strings.HasPrefix(name, "prepared") {
			f(name, run)
		}
	}
}

// A name for an argument may be any word, also a keyword, which the statement has
// in the places of its values.
func TestPgxNamesThatAreKeywords(t *testing.T) {
	words := strings.Fields(`case end as from where limit order set returning when then else and or not is in on do
		select union values using with update delete insert into group having window between fetch offset matched null default`)
	onPgx(t, func(t *testing.T, s *shop) {
		for _, word := range words {
			for i, tt := range []write{
				{"set", "UPDATE books SET price = @%s::int WHERE id = @id RETURNING id", nil},
				{"condition", "UPDATE books SET price = 30 WHERE id = @id AND @%s::int = 30", nil},
				{"upsert", "INSERT INTO books (id, price) VALUES (@id, 10) ON CONFLICT (id) DO UPDATE SET price = @%s::int RETURNING id", nil},
				{"merge", "MERGE INTO books USING (SELECT @id::int AS i) AS s ON id = s.i WHEN MATCHED AND 0 < @%s::int THEN UPDATE SET price = 30", nil},
				{"case", "UPDATE books SET price = CASE WHEN @%s::int = 30 THEN 30 ELSE 1 END WHERE id = @id", nil},
			} {
				args := []any{pgx.NamedArgs{word: 30, "id": 1}}
				if i%2 == 1 {
					args = []any{pgxModes[i%len(pgxModes)], pgx.StrictNamedArgs{word: 30, "id": 1}}
				}
				query := fmt.Sprintf(tt.query, word)
				directly(func(name string, run runFunc) {
					staleThenFresh(t, s, fmt.Sprint(tt.name, " ", word, " ", name), func(ctx context.Context) error { return run(ctx, s.db, query, args...) })
				})
			}
		}
		// A DELETE leaves no mark, and no row.
		s.reset(t, 9)
		unchanged := s.unchanged(t)
		merge := "MERGE INTO books b USING (SELECT 1 AS i) s ON b.id = s.i WHEN MATCHED AND b.price < @as THEN DELETE"
		wantStale(t, ways["exec"](holding(t, 8), s.db, merge, pgx.NamedArgs{"as": 30}), 8, 9)
		unchanged()
	})
}

// Of two who have read version 1, one writes.
func TestPgxNamesUnderSerial(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		s.exec(t, "ALTER TABLE books ADD COLUMN serial integer")
		db := s.fenced(t, s.source, sqlfence.WithTable("books", sqlfence.Serial("serial")))
		s.exec(t, "INSERT INTO books (id, serial) VALUES (1, 1)")
		ctx := sqlfence.WithSerial(t.Context(), 1)
		write := func() error {
			_, err := db.ExecContext(ctx, "UPDATE books SET price = @case::int WHERE id = @id", pgx.NamedArgs{"case": 30, "id": 1})
			return err
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		wantOnly(t, write(), sqlfence.ErrConflict)
	})
}

// With positional arguments the token is one, too: the text is the same each time.
func TestPgxNamesFillNoCache(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		c, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.reset(t, 1)
		for value := int64(1); value <= 20; value++ {
			s.raise(t, "books", value)
			if _, err := c.ExecContext(holding(t, value), "UPDATE books SET price = @p WHERE id = @id", pgx.NamedArgs{"p": 1, "id": 1}); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%books%'").Scan(&n); err != nil || n > 2 {
			t.Errorf("%d prepared statements, %v; want one", n, err)
		}
	})
}

// The text of an application's rewriter is the one that is guarded, and it gets
// pgx's own connection.
func TestPgxQueryRewriter(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		sneak := rewriter{query: "UPDATE books SET price = 30 WHERE id = 1"}
		for _, query := range []string{"SELECT 1", "UPDATE pens SET price = 1", "UPDATE books SET price = 1 WHERE id = 1"} {
			for _, args := range [][]any{
				{sneak}, {&sneak}, {pgx.QueryExecModeExec, sneak}, {sneak, pgx.QueryExecModeExec}, {NamedArgs{}}, {sneak, 1},
				{rewriter{setPrice, []any{30, 1}}}, {pgx.QueryExecModeSimpleProtocol, rewriter{setPrice, []any{30, 1}}},
			} {
				directly(func(name string, run runFunc) {
					staleThenFresh(t, s, fmt.Sprint(name, " ", query, args), func(ctx context.Context) error { return run(ctx, s.db, query, args...) })
				})
			}
		}
		var asked int64
		staleThenFresh(t, s, "asking", func(ctx context.Context) error {
			return ways["exec"](ctx, s.db, "UPDATE books SET price = <price> WHERE id = 1", asking{&asked}, 30)
		})
		if asked != 3 {
			t.Errorf("the rewriter found %d, want 3", asked)
		}
		// A statement that touches no registered table is what the rewriter says, too.
		var got int
		if err := s.db.QueryRowContext(t.Context(), "SELECT 1", rewriter{"SELECT $1::int", []any{7}}).Scan(&got); err != nil || got != 7 {
			t.Errorf("got %d, %v; want 7", got, err)
		}
		// It is nobody's business on a database without registered tables.
		if err := ways["exec"](t.Context(), s.fenced(t, s.source), "SELECT 1", rewriter{query: "SELECT 2"}); err != nil {
			t.Error(err)
		}
	})
}

// A prepared statement becomes another one by a rewriter among its arguments.
func TestPgxQueryRewriterOfPrepared(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		for _, query := range []string{"SELECT $1::int", "UPDATE pens SET price = $1", "UPDATE books SET price = $1 WHERE id = 3"} {
			for name, run := range ways {
				if strings.HasPrefix(name, "prepared") {
					staleThenFresh(t, s, name+" "+query, func(ctx context.Context) error {
						return run(ctx, s.db, query, rewriter{setPrice, []any{30, 1}})
					})
				}
			}
		}
	})
}

// What can't be settled is refused: whose connection can't be had, what pgx's
// versions do in different ways, and arguments that would be options.
func TestPgxQueryRewriterRefused(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		s.reset(t, 9)
		defer s.unchanged(t)()
		for _, args := range [][]any{
			{pgx.NamedArgs{"p": 1}, pgx.NamedArgs{"p": 2}},
			{rewriter{query: "SELECT 1"}, pgx.QueryExecModeExec, rewriter{query: "SELECT 2"}},
			{rewriter{setPrice, []any{pgx.QueryExecModeExec, 1}}},
			{rewriter{setPrice, []any{pgx.NamedArgs{}, 1}}},
			{pgx.NamedArgs{"p": rewriter{query: setPrice}}},
			{pgx.NamedArgs{"p": pgx.QueryExecModeSimpleProtocol}},
		} {
			directly(func(name string, run runFunc) {
				err := run(holding(t, 10), s.db, "UPDATE books SET price = @p WHERE id = 1", args...)
				if !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s %v: %v", name, args, err)
				}
			})
		}
		// Behind a wrapper that hides it no connection can be given.
		db, _ := s.counted(t, s.source, books())
		_, err := db.ExecContext(holding(t, 10), "SELECT 1", rewriter{query: "SELECT 2"})
		wantOnly(t, err, sqlfence.ErrUnguardable)
	})
}

// Names in a statement that touches no registered table are pgx's affair, and so
// are errors of a rewriter.
func TestPgxQueryRewriterElsewhere(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		db, count := s.counted(t, s.source, books())
		args := []any{pgx.NamedArgs{"from": 1}}
		if _, err := db.ExecContext(t.Context(), "UPDATE pens SET price = @from", args...); err != nil {
			t.Fatal(err)
		}
		if got := count.texts(); !slices.Equal(got, []string{"UPDATE pens SET price = @from"}) {
			t.Errorf("sent %q", got)
		}
		boom := errors.New("boom")
		for _, arg := range []any{&failing{boom}, pgx.StrictNamedArgs{}, pgx.StructArgs(nil)} {
			directly(func(name string, run runFunc) {
				errRaw := run(t.Context(), s.plain, "UPDATE books SET price = @p", arg)
				err := run(holding(t, 9), s.db, "UPDATE books SET price = @p", arg)
				if errRaw == nil || said(err) != said(errRaw) || errors.Is(errRaw, boom) != errors.Is(err, boom) {
					t.Errorf("%s %T: %v, want %v", name, arg, err, errRaw)
				}
			})
		}
		// A map of no names leaves the text as it is.
		s.reset(t, 9)
		unchanged := s.unchanged(t)
		wantStale(t, ways["exec"](holding(t, 8), s.db, "UPDATE books SET price = 30", pgx.NamedArgs(nil)), 8, 9)
		unchanged()
	})
}

// Under Bypass and in Observe mode a rewriter does what it does with pgx alone.
func TestPgxQueryRewriterBypassAndObserve(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		query, names := "UPDATE books SET price = @case::int WHERE id = @id", pgx.NamedArgs{"case": 30, "id": 1}
		own := rewriter{setPrice, []any{30, 1}}
		observed := s.fenced(t, s.source, books(), sqlfence.WithMode(sqlfence.Observe))
		for _, args := range [][]any{{names}, {own}} {
			for _, tt := range []struct {
				ctx context.Context
				run func(ctx context.Context) error
			}{
				{sqlfence.Bypass(t.Context(), "repair"), func(ctx context.Context) error { return ways["exec"](ctx, s.db, query, args...) }},
				{t.Context(), func(ctx context.Context) error { return ways["exec"](ctx, observed, query, args...) }},
				{holding(t, 8), func(ctx context.Context) error { return ways["exec"](ctx, observed, query, args...) }},
			} {
				s.reset(t, 9)
				if err := tt.run(tt.ctx); err != nil {
					t.Error(err)
				}
				if got := s.state(t, true); got != "1:30@9 2:10@9 3:10@9" {
					t.Errorf("left %s", got)
				}
			}
		}
	})
}
