package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// These types imitate pgx: query rewriters get the driver's own connection.
type (
	rawConn struct{}
	pgxLike struct {
		checker
		raw *rawConn
	}
	rewriter struct {
		query string
		args  []any
		err   error
	}
)

func (c pgxLike) Conn() *rawConn { return c.raw }

func (r rewriter) RewriteQuery(_ context.Context, c *rawConn, _ string, _ []any) (string, []any, error) {
	if c == nil {
		return "", nil, errors.New("no connection")
	}
	return r.query, r.args, r.err
}

// The result of a query rewriter is planned, guarded and sent.
func TestQueryRewriterIsRunFirst(t *testing.T) {
	errRewrite := errors.New("no such query")
	write := rewriter{query: "UPDATE books SET price = $1", args: []any{int64(30)}}
	ours := func(c *fakedb.RecorderConn) driver.Conn { return pgxLike{checker{c}, new(rawConn)} }
	another := func(c *fakedb.RecorderConn) driver.Conn { return checker{c} }
	for _, tt := range []struct {
		name string
		form func(*fakedb.RecorderConn) driver.Conn
		args []any
		is   error
		sent string // beginning of the sent statement; empty for none
		want []driver.Value
	}{
		{"guarded", ours, []any{write}, nil, "UPDATE books SET price = $1, (\"fence\")", []driver.Value{int64(30), int64(7)}},
		{"another table", ours, []any{rewriter{query: "DELETE FROM pens"}}, nil, "DELETE FROM pens", nil},
		{"unguardable", ours, []any{rewriter{query: "TRUNCATE books"}}, sqlfence.ErrUnguardable, "", nil},
		{"its own error", ours, []any{rewriter{err: errRewrite}}, errRewrite, "", nil},
		{"two of them", ours, []any{write, write}, sqlfence.ErrUnguardable, "", nil},
		{"no connection for it", another, []any{write}, sqlfence.ErrUnguardable, "", nil},
		{"one that gives another", ours, []any{rewriter{query: "UPDATE books SET price = $1", args: []any{write}}}, sqlfence.ErrUnguardable, "", nil},
	} {
		for _, prepared := range []bool{false, true} {
			base := &fakedb.Recorder{Form: tt.form}
			db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
			exec := func(ctx context.Context, args ...any) (sql.Result, error) {
				return db.ExecContext(ctx, "by name", args...)
			}
			if prepared {
				s, err := db.PrepareContext(t.Context(), "by name")
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				exec = s.ExecContext
			}
			_, err := exec(with(t.Context(), 7), tt.args...)
			if !errors.Is(err, tt.is) {
				t.Errorf("%s, prepared %v: %v, want %v", tt.name, prepared, err, tt.is)
			}
			sent := strings.Join(base.Sent, "; ")
			if (sent == "") != (tt.sent == "") || !strings.HasPrefix(sent, tt.sent) || !slices.Equal(base.Values(), tt.want) {
				t.Errorf("%s, prepared %v: sent %q with %v, want %q with %v", tt.name, prepared, sent, base.Values(), tt.sent, tt.want)
			}
			var unguardable *sqlfence.UnguardableError
			if errors.As(err, &unguardable) && unguardable.Offset != -1 && tt.name != "unguardable" {
				t.Errorf("%s: %v is about a place in the statement", tt.name, err)
			}
		}
	}
}
