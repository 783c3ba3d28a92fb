package drivers

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
)

// What pgx has beyond other drivers: options among the arguments, names for
// arguments, types of PostgreSQL, and a cache of prepared statements.

// onPgx runs test with a shop on pgx, once for each of fences.
func onPgx(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Helper()
	postgresDSN(t)
	b := bases[slices.IndexFunc(bases, func(b base) bool { return b.name == "pgx" })]
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) { test(t, newShop(t, b, fence.rule)) })
	}
}

var pgxModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// staleThenFresh runs a write that sets the price of book 1 to 30, with a stale
// token and with a current one.
func staleThenFresh(t *testing.T, s *shop, name string, run func(ctx context.Context) error) {
	t.Helper()
	s.reset(t, 9)
	unchanged := s.unchanged(t)
	if err := run(holding(t, 8)); err == nil {
		t.Errorf("%s: a stale token was let pass", name)
	} else {
		wantStale(t, err, 8, 9)
	}
	unchanged()
	if err := run(holding(t, 9)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got := s.state(t, true); got != "1:30@9 2:10@9 3:10@9" {
		t.Errorf("%s left %s", name, got)
	}
}

func TestPgxModes(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		for _, mode := range pgxModes {
			for name, run := range ways {
				if strings.HasPrefix(name, "prepared") {
					continue // a prepared statement takes no options
				}
				for _, tt := range []write{
					{"arguments", setPrice, []any{mode, 30, 1}},
					{"no arguments", "UPDATE books SET price = 30 WHERE id = 1", []any{mode}},
					{"result formats", setPrice + " RETURNING id", []any{mode, pgx.QueryResultFormats{1}, 30, 1}},
					{"formats by type", setPrice + " RETURNING id", []any{pgx.QueryResultFormatsByOID{pgtype.Int4OID: 1}, mode, 30, 1}},
					{"names", "UPDATE books SET price = @p WHERE id = @id", []any{mode, pgx.NamedArgs{"p": 30, "id": 1}}},
				} {
					if name == "exec" && strings.Contains(tt.name, "formats") {
						continue // pgx takes them for queries only
					}
					staleThenFresh(t, s, fmt.Sprint(mode, " ", name, " ", tt.name), func(ctx context.Context) error {
						return run(ctx, s.db, tt.query, tt.args...)
					})
				}
			}
		}
	})
}

// pgx ignores the arguments after its names: the token must not be taken for one
// of the application's.
func TestPgxNamedArgs(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		for _, tt := range []write{
			{"in order", "UPDATE books SET price = @p WHERE id = @id", []any{pgx.NamedArgs{"p": 30, "id": 1}}},
			{"strict", "UPDATE books SET price = @p WHERE id = @id", []any{pgx.StrictNamedArgs{"p": 30, "id": 1}}},
			{"twice", "UPDATE books SET price = @p WHERE id = @id AND @id = @id", []any{pgx.NamedArgs{"p": 30, "id": 1}}},
			{"like the guard's", "UPDATE books SET price = @sqlfence WHERE id = @fence_token", []any{pgx.NamedArgs{"sqlfence": 30, "fence_token": 1}}},
			{"more than used", "UPDATE books SET price = @p WHERE id = @id", []any{pgx.NamedArgs{"p": 30, "id": 1, "other": 99}}},
			{"in a string too", "UPDATE books SET price = @p WHERE id = @id AND isbn <> '@p $1'", []any{pgx.NamedArgs{"p": 30, "id": 1}}},
			{"as a high token", "UPDATE books SET price = @p WHERE id = @id AND writer < @high",
				[]any{pgx.NamedArgs{"p": 30, "id": 1, "high": 1 << 40}}},
			{"later arguments", "UPDATE books SET price = @p WHERE id = @id", []any{pgx.NamedArgs{"p": 30, "id": 1}, 1 << 40, 1 << 41}},
		} {
			for name, run := range ways {
				if strings.HasPrefix(name, "prepared") {
					continue
				}
				errRaw := run(t.Context(), s.plain, tt.query, tt.args...)
				if errRaw != nil {
					t.Logf("%s: the base driver alone: %v", tt.name, errRaw)
					s.reset(t, 9)
					if err := run(holding(t, 9), s.db, tt.query, tt.args...); said(err) != said(errRaw) {
						t.Errorf("%s: %v, want %v", tt.name, err, errRaw)
					}
					continue
				}
				staleThenFresh(t, s, tt.name+" "+name, func(ctx context.Context) error { return run(ctx, s.db, tt.query, tt.args...) })
			}
		}
		// What pgx itself refuses it refuses here, and nothing is changed.
		s.reset(t, 9)
		defer s.unchanged(t)()
		missing := []any{pgx.StrictNamedArgs{"p": 30}}
		const query = "UPDATE books SET price = @p WHERE id = @id"
		errRaw, err := ways["exec"](t.Context(), s.plain, query, missing...), ways["exec"](holding(t, 9), s.db, query, missing...)
		if errRaw == nil || said(err) != said(errRaw) {
			t.Errorf("a missing name: %v, want %v", err, errRaw)
		}
	})
}

// Values that only pgx takes keep their place and their type.
func TestPgxTypes(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		s.exec(t, "ALTER TABLE books ADD COLUMN uid uuid, ADD COLUMN tags text[], ADD COLUMN data jsonb")
		uid := [16]byte{0x12, 15: 0xff}
		set := "UPDATE books SET price = 30, uid = $1, tags = $2, data = $3 WHERE id = ANY($4)"
		args := []any{uid, []string{"a", "b,'\"{}"}, map[string]any{"k": 1}, []int32{1}}
		for name, run := range ways {
			staleThenFresh(t, s, name, func(ctx context.Context) error { return run(ctx, s.db, set, args...) })
			var gotUID, gotTags, gotData string
			err := s.plain.QueryRow("SELECT uid::text, tags::text, data::text FROM books WHERE id = 1").Scan(&gotUID, &gotTags, &gotData)
			if err != nil || gotUID != "12000000-0000-0000-0000-0000000000ff" || gotTags != `{a,"b,'\"{}"}` || gotData != `{"k": 1}` {
				t.Errorf("%s stored %s %s %s, %v", name, gotUID, gotTags, gotData, err)
			}
			staleThenFresh(t, s, name, func(ctx context.Context) error {
				return run(ctx, s.db, "UPDATE books SET price = 30 WHERE uid IS NULL AND id = ANY($1::int[]) AND isbn = ANY($2)", []int32{1, 4}, []string{"i1"})
			})
		}
	})
}

// A statement with arguments has one text whatever the token, so that the
// server's prepared statements don't grow with the tokens.
func TestPgxStatementCache(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		c, err := s.db.Conn(t.Context())
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
		s.reset(t, 1)
		_ = count() // is prepared itself
		before := count()
		for value := range int64(50) {
			s.raise(t, "books", value+1)
			ctx := holding(t, value+1)
			for _, tt := range []write{
				{query: setPrice, args: []any{30, 1}},
				{query: setPrice, args: []any{pgx.QueryExecModeCacheStatement, 30, 1}}, // the same one
				{query: "DELETE FROM books WHERE id = $1", args: []any{99}},
			} {
				if _, err := c.ExecContext(ctx, tt.query, tt.args...); err != nil {
					t.Fatal(err)
				}
			}
			// Exec without arguments isn't prepared by pgx; Query is.
			if _, err := c.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			if _, err := returned(c.QueryContext(ctx, "UPDATE books SET price = 30 WHERE id = 1 RETURNING id")); err != nil {
				t.Fatal(err)
			}
		}
		if after := count(); after != before+3 {
			t.Errorf("%d prepared statements more, want 3", after-before)
		}
	})
}

// pgx's own connection is reached through Raw, and its COPY with it; the
// observer is told.
func TestPgxCopyFromThroughRaw(t *testing.T) {
	onPgx(t, func(t *testing.T, s *shop) {
		var kinds []sqlfence.EventKind
		db := s.fenced(t, s.source, books(), sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { kinds = append(kinds, e.Kind) }))
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
