package pgx_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The tests of this file are about features that only pgx has: options among the arguments, named arguments,
// PostgreSQL's types, and a cache of prepared statements.

// onPgx runs test with a shop on pgx, once for each of fences.
func onPgx(t *testing.T, test func(t *testing.T, s *harness.Shop)) {
	t.Helper()
	harness.NeedPostgres(t)
	b := harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == "pgx" })]
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) { test(t, harness.NewShop(t, b, fence.Rule)) })
	}
}

// staleThenFresh runs a write that sets the price of book 1 to 30, with a stale
// token and with a current one.
func staleThenFresh(t *testing.T, s *harness.Shop, name string, run func(ctx context.Context) error) {
	t.Helper()
	s.Reset(t, 9)
	unchanged := s.Unchanged(t)
	if err := run(harness.Holding(t, 8)); err == nil {
		t.Errorf("%s: a stale token was let pass", name)
	} else {
		harness.WantStale(t, err, 8, 9)
	}
	unchanged()
	if err := run(harness.Holding(t, 9)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
		t.Errorf("%s left %s", name, got)
	}
}

func TestPgxModes(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		for _, mode := range harness.PgxModes {
			for name, run := range harness.Ways {
				if strings.HasPrefix(name, "prepared") {
					continue // a prepared statement takes no options
				}
				for _, tt := range []harness.Write{
					{Name: "arguments", Query: harness.SetPrice, Args: []any{mode, 30, 1}},
					{Name: "no arguments", Query: "UPDATE books SET price = 30 WHERE id = 1", Args: []any{mode}},
					{Name: "result formats", Query: harness.SetPrice + " RETURNING id", Args: []any{mode, pgx.QueryResultFormats{1}, 30, 1}},
					{Name: "formats by type", Query: harness.SetPrice + " RETURNING id", Args: []any{pgx.QueryResultFormatsByOID{pgtype.Int4OID: 1}, mode, 30, 1}},
					{Name: "names", Query: "UPDATE books SET price = @p WHERE id = @id", Args: []any{mode, pgx.NamedArgs{"p": 30, "id": 1}}},
				} {
					if name == "exec" && strings.Contains(tt.Name, "formats") {
						continue // pgx takes them for queries only
					}
					staleThenFresh(t, s, fmt.Sprint(mode, " ", name, " ", tt.Name), func(ctx context.Context) error {
						return run(ctx, s.DB, tt.Query, tt.Args...)
					})
				}
			}
		}
	})
}

// pgx ignores the arguments after its names: the token must not be taken for one
// of the application's.
func TestPgxNamedArgs(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		for _, tt := range []harness.Write{
			{Name: "in order", Query: "UPDATE books SET price = @p WHERE id = @id", Args: []any{pgx.NamedArgs{"p": 30, "id": 1}}},
			{Name: "strict", Query: "UPDATE books SET price = @p WHERE id = @id", Args: []any{pgx.StrictNamedArgs{"p": 30, "id": 1}}},
			{Name: "twice", Query: "UPDATE books SET price = @p WHERE id = @id AND @id = @id", Args: []any{pgx.NamedArgs{"p": 30, "id": 1}}},
			{Name: "like the guard's", Query: "UPDATE books SET price = @sqlfence WHERE id = @fence_token", Args: []any{pgx.NamedArgs{"sqlfence": 30, "fence_token": 1}}},
			{Name: "more than used", Query: "UPDATE books SET price = @p WHERE id = @id", Args: []any{pgx.NamedArgs{"p": 30, "id": 1, "other": 99}}},
			{Name: "in a string too", Query: "UPDATE books SET price = @p WHERE id = @id AND isbn <> '@p $1'", Args: []any{pgx.NamedArgs{"p": 30, "id": 1}}},
			{Name: "as a high token", Query: "UPDATE books SET price = @p WHERE id = @id AND writer < @high",
				Args: []any{pgx.NamedArgs{"p": 30, "id": 1, "high": 1 << 40}}},
			{Name: "later arguments", Query: "UPDATE books SET price = @p WHERE id = @id", Args: []any{pgx.NamedArgs{"p": 30, "id": 1}, 1 << 40, 1 << 41}},
		} {
			for name, run := range harness.Ways {
				if strings.HasPrefix(name, "prepared") {
					continue
				}
				errRaw := run(t.Context(), s.Plain, tt.Query, tt.Args...)
				if errRaw != nil {
					t.Logf("%s: the base driver alone: %v", tt.Name, errRaw)
					s.Reset(t, 9)
					if err := run(harness.Holding(t, 9), s.DB, tt.Query, tt.Args...); harness.ErrorText(err) != harness.ErrorText(errRaw) {
						t.Errorf("%s: %v, want %v", tt.Name, err, errRaw)
					}
					continue
				}
				staleThenFresh(t, s, tt.Name+" "+name, func(ctx context.Context) error { return run(ctx, s.DB, tt.Query, tt.Args...) })
			}
		}
		// Arguments that pgx refuses are refused with pgx's error, and change nothing.
		s.Reset(t, 9)
		defer s.Unchanged(t)()
		missing := []any{pgx.StrictNamedArgs{"p": 30}}
		const query = "UPDATE books SET price = @p WHERE id = @id"
		errRaw, err := harness.Ways["exec"](t.Context(), s.Plain, query, missing...), harness.Ways["exec"](harness.Holding(t, 9), s.DB, query, missing...)
		if errRaw == nil || harness.ErrorText(err) != harness.ErrorText(errRaw) {
			t.Errorf("a missing name: %v, want %v", err, errRaw)
		}
	})
}

// Values of types that only pgx accepts keep their place and their type.
func TestPgxTypes(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Exec(t, "ALTER TABLE books ADD COLUMN uid uuid, ADD COLUMN tags text[], ADD COLUMN data jsonb")
		uid := [16]byte{0x12, 15: 0xff}
		set := "UPDATE books SET price = 30, uid = $1, tags = $2, data = $3 WHERE id = ANY($4)"
		args := []any{uid, []string{"a", "b,'\"{}"}, map[string]any{"k": 1}, []int32{1}}
		for name, run := range harness.Ways {
			staleThenFresh(t, s, name, func(ctx context.Context) error { return run(ctx, s.DB, set, args...) })
			var gotUID, gotTags, gotData string
			err := s.Plain.QueryRow("SELECT uid::text, tags::text, data::text FROM books WHERE id = 1").Scan(&gotUID, &gotTags, &gotData)
			if err != nil || gotUID != "12000000-0000-0000-0000-0000000000ff" || gotTags != `{a,"b,'\"{}"}` || gotData != `{"k": 1}` {
				t.Errorf("%s stored %s %s %s, %v", name, gotUID, gotTags, gotData, err)
			}
			staleThenFresh(t, s, name, func(ctx context.Context) error {
				return run(ctx, s.DB, "UPDATE books SET price = 30 WHERE uid IS NULL AND id = ANY($1::int[]) AND isbn = ANY($2)", []int32{1, 4}, []string{"i1"})
			})
		}
	})
}

// A statement with arguments has one text whatever the token, so that the
// server's prepared statements don't grow with the tokens.
func TestPgxStatementCache(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		c, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		count := func() (n int) {
			t.Helper()
			if err := c.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_prepared_statements").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		s.Reset(t, 1)
		_ = count() // the query itself is prepared
		before := count()
		for value := range int64(50) {
			s.Raise(t, "books", value+1)
			ctx := harness.Holding(t, value+1)
			for _, tt := range []harness.Write{
				{Query: harness.SetPrice, Args: []any{30, 1}},
				{Query: harness.SetPrice, Args: []any{pgx.QueryExecModeCacheStatement, 30, 1}}, // the same one
				{Query: "DELETE FROM books WHERE id = $1", Args: []any{99}},
			} {
				if _, err := c.ExecContext(ctx, tt.Query, tt.Args...); err != nil {
					t.Fatal(err)
				}
			}
			// Exec without arguments isn't prepared by pgx; Query is.
			if _, err := c.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			if _, err := harness.Returned(c.QueryContext(ctx, "UPDATE books SET price = 30 WHERE id = 1 RETURNING id")); err != nil {
				t.Fatal(err)
			}
		}
		if after := count(); after != before+3 {
			t.Errorf("%d prepared statements more, want 3", after-before)
		}
	})
}

// Raw gives access to pgx's connection and its COPY, and the observer gets an event.
func TestPgxCopyFromThroughRaw(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		var kinds []sqlfence.EventKind
		db := s.Fenced(t, s.Source, harness.Books(), sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { kinds = append(kinds, e.Kind) }))
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		err = c.Raw(func(dc any) error {
			fenced, ok := dc.(interface{ Raw() driver.Conn })
			if !ok {
				return errors.New("the fenced connection has no Raw")
			}
			conn := fenced.Raw().(*stdlib.Conn).Conn()
			_, err := conn.CopyFrom(t.Context(), pgx.Identifier{"pens"}, []string{"id", "price"},
				pgx.CopyFromRows([][]any{{1, 10}, {2, 20}}))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT count(*) FROM pens").Scan(&n); err != nil || n != 2 {
			t.Errorf("%d pens, %v; want 2", n, err)
		}
		if !slices.Equal(kinds, []sqlfence.EventKind{sqlfence.RawAccess}) {
			t.Errorf("the observer was told %v", kinds)
		}
	})
}
