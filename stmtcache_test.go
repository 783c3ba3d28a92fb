package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A preparing driver is a fake whose statements are counted from when they are prepared
// until they are closed.
type preparing struct {
	fakedb.Recorder
	calls []string // prepare, close and exec, with what the statement does
	open  map[*countedStmt]bool
	most  int
	fail  func(query string) error // of Prepare
}

func (p *preparing) Connect(context.Context) (driver.Conn, error) {
	return &preparingConn{fakedb.RecorderConn{BareConn: fakedb.BareConn{Recorder: &p.Recorder}}, p}, nil
}

type preparingConn struct {
	fakedb.RecorderConn
	p *preparing
}

func (c *preparingConn) Close() error {
	c.p.calls = append(c.p.calls, fmt.Sprintf("end, %d open", len(c.p.open)))
	return nil
}

func (c *preparingConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	c.p.calls = append(c.p.calls, "prepare")
	if c.p.fail != nil {
		if err := c.p.fail(query); err != nil {
			return nil, err
		}
	}
	s := &countedStmt{fakedb.RecorderStmt{BareStmt: fakedb.BareStmt{Recorder: c.Recorder, Text: query}}, c.p}
	c.p.open[s] = true
	c.p.most = max(c.p.most, len(c.p.open))
	return s, nil
}

// QueryContext knows no setting by which writes return rows, and no version of a proxy.
func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if query == "PRAGMA count_changes" || strings.HasPrefix(query, "SELECT @@version") {
		return &fakedb.OneRow{Done: true}, nil
	}
	return c.RecorderConn.QueryContext(ctx, query, args)
}

func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := fakedb.ProbeError(query, nil); err != nil {
		return nil, err
	}
	c.p.calls = append(c.p.calls, "exec")
	return c.RecorderConn.ExecContext(ctx, query, args)
}

type countedStmt struct {
	fakedb.RecorderStmt
	p *preparing
}

func (s *countedStmt) Close() error {
	if !s.p.open[s] {
		return errors.New("closed again")
	}
	delete(s.p.open, s)
	s.p.calls = append(s.p.calls, "close")
	return nil
}

func (s *countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if !s.p.open[s] {
		return nil, errors.New("closed already")
	}
	s.p.calls = append(s.p.calls, "stmt exec")
	return s.RecorderStmt.ExecContext(ctx, args)
}

// wantCalls compares the calls since the last time.
func (p *preparing) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(p.calls, want) {
		t.Errorf("calls %q, want %q", p.calls, want)
	}
	p.calls = nil
}

// prepared opens a database with one connection that caches prepared statements.
func prepared(t *testing.T, d sqlfence.Dialect, size int, opts ...sqlfence.Option) (*preparing, *sql.DB, context.Context) {
	t.Helper()
	p := &preparing{open: map[*countedStmt]bool{}}
	opts = append(opts, sqlfence.WithDialect(d), sqlfence.WithTable("books", fenced), sqlfence.WithStatementCache(size))
	db, err := sqlfence.OpenDB(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		_ = db.Close()
		if len(p.open) > 0 && d == sqlfence.SQLite {
			t.Errorf("%d statements left open", len(p.open))
		}
	})
	return p, db, sqlfence.WithFence(t.Context(), token("books", 7))
}

func exec(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, ctx context.Context, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(ctx, query, args...); err != nil {
		t.Errorf("%s: %v", query, err)
	}
}

func TestStatementsAreKept(t *testing.T) {
	var uses []string
	p, db, ctx := prepared(t, sqlfence.SQLite, 2, sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
		uses = append(uses, e.Cache.String())
	}, sqlfence.Guarded))
	for i := range 3 {
		exec(t, db, ctx, "UPDATE books SET price = ? WHERE id = ?", i, 1)
	}
	p.wantCalls(t, "prepare", "stmt exec", "stmt exec", "stmt exec")
	if want := int64(7); p.Args[1].Value != want {
		t.Errorf("arguments %v, want the token %d where it is placed", p.Args, want)
	}
	// The least recently used of two statements is evicted.
	exec(t, db, ctx, "UPDATE books SET price = 1")
	exec(t, db, sqlfence.WithFence(ctx, token("books", 8)), "UPDATE books SET price = ? WHERE id = ?", 1, 1)
	exec(t, db, ctx, "DELETE FROM books")
	p.wantCalls(t, "prepare", "stmt exec", "stmt exec", "close", "prepare", "stmt exec")
	exec(t, db, ctx, "UPDATE books SET price = ? WHERE id = ?", 1, 1)
	p.wantCalls(t, "stmt exec")
	if want := []string{"miss", "hit", "hit", "miss", "hit", "eviction", "hit"}; !slices.Equal(uses, want) {
		t.Errorf("the cache was used by %q, want %q", uses, want)
	}
	_ = db.Close()
	p.wantCalls(t, "close", "close", "end, 0 open")
	if p.most > 2 {
		t.Errorf("%d statements were open", p.most)
	}
}

// What can't be kept, or must not be, is sent as without a cache.
func TestStatementsThatAreNotKept(t *testing.T) {
	long := make([]byte, 70<<10)
	for name, tt := range map[string]struct {
		dialect sqlfence.Dialect
		size    int
		mode    sqlfence.Mode
		query   string
		args    []any
	}{
		"none kept":          {sqlfence.SQLite, 0, sqlfence.Enforce, "UPDATE books SET price = ?", []any{1}},
		"observed":           {sqlfence.SQLite, 8, sqlfence.Observe, "UPDATE books SET price = ?", []any{1}},
		"not guarded":        {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE pens SET price = ?", []any{1}},
		"returns rows":       {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = ? RETURNING id", []any{1}},
		"text behind it":     {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = ?; -- this", []any{1}},
		"a name":             {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = :p", []any{sql.Named("p", 1)}},
		"too few arguments":  {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = ? WHERE id = ?", []any{1}},
		"too many arguments": {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = ?", []any{1, 2}},
		"long arguments":     {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = ?", []any{long}},
		"long text":          {sqlfence.SQLite, 8, sqlfence.Enforce, "UPDATE books SET price = ? WHERE id = 1 /*" + strings.Repeat(" ", 17<<10) + "*/", []any{1}},
		"PostgreSQL":         {sqlfence.Postgres, 8, sqlfence.Enforce, "UPDATE books SET price = $1", []any{1}},
		"MySQL":              {sqlfence.MySQL, 8, sqlfence.Enforce, "UPDATE books SET price = ?", []any{1}},
	} {
		t.Run(name, func(t *testing.T) {
			p, db, ctx := prepared(t, tt.dialect, tt.size, sqlfence.WithMode(tt.mode))
			for range 2 {
				_, _ = db.ExecContext(ctx, tt.query, tt.args...)
			}
			if slices.Contains(p.calls, "prepare") || !slices.Contains(p.calls, "exec") {
				t.Errorf("calls %q", p.calls)
			}
		})
	}
}

// coding is an error with a result code of SQLite's.
type coding int

func (e coding) Error() string { return fmt.Sprintf("SQLite's error %d", int(e)) }
func (e coding) Code() int     { return int(e) }

// The error of a failed statement decides whether the statement stays cached. The statement isn't repeated.
func TestKeptStatementsThatFail(t *testing.T) {
	stays := []string{"prepare", "stmt exec", "stmt exec"}
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"a refusal":        {fakedb.ErrStaleAt9, stays},
		"a constraint":     {coding(2067), stays},
		"the driver's own": {errors.New("can't encode"), stays},
		"no such column":   {coding(1), []string{"prepare", "stmt exec", "close", "prepare", "stmt exec"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, db, ctx := prepared(t, sqlfence.SQLite, 4)
			p.Fails = func(string) error { return tt.err }
			for range 2 {
				if _, err := db.ExecContext(ctx, "UPDATE books SET price = ?", 1); !errors.Is(err, tt.err) {
					t.Errorf("err = %v, want %v", err, tt.err)
				}
			}
			p.wantCalls(t, tt.want...)
		})
	}
}

// A failed Prepare has executed nothing: database/sql may repeat the statement on another connection.
func TestKeptStatementThatCannotBePrepared(t *testing.T) {
	p, db, ctx := prepared(t, sqlfence.SQLite, 4)
	broken := coding(1)
	p.fail = func(string) error { return broken }
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = ?", 1); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
	p.wantCalls(t, "prepare")
	p.fail = func(string) error {
		p.fail = nil
		return driver.ErrBadConn
	}
	exec(t, db, ctx, "UPDATE books SET price = ?", 1)
	p.wantCalls(t, "prepare", "end, 0 open", "prepare", "stmt exec")
}

// Statements that may change the meaning of cached statements expire the cache, sent directly or prepared, as does
// access to the base connection.
func TestKeptStatementsExpire(t *testing.T) {
	p, db, ctx := prepared(t, sqlfence.SQLite, 4)
	bypass := sqlfence.Bypass(ctx, "migration")
	keep := func() {
		t.Helper()
		exec(t, db, ctx, "UPDATE books SET price = ?", 1)
		p.calls = nil
	}
	for query, expires := range map[string]bool{
		"SELECT 1":                              false,
		" /* a */ -- b\n select 1;":             false,
		"(SELECT 1)":                            false,
		"INSERT INTO pens VALUES (1)":           false,
		"WITH x AS (SELECT 1) DELETE FROM pens": false,
		"SAVEPOINT a":                           false,
		"RELEASE a":                             false,
		"ROLLBACK TO a":                         false,
		"BEGIN":                                 false,
		"COMMIT":                                false,
		"CREATE TABLE pens (id)":                true,
		"/* SELECT */ALTER TABLE pens ADD COLUMN id": true,
		"drop table pens":           true,
		"ATTACH 'x' AS y":           true,
		"PRAGMA foreign_keys = ON":  true,
		"EXPLAIN PRAGMA a = 1":      true, // SQLite may apply it all the same
		"DISCARD ALL":               true,
		"SET search_path = other":   true,
		"SELECT 1; DROP TABLE pens": true,
		"SELECTED":                  true,
		"":                          true,
		"/* open":                   true,
		// PostgreSQL reads the comments in another way than SQLite.
		"/* /* */ SELECT */ CREATE TEMP TABLE books ()": true,
		"-- a\rCREATE TEMP TABLE books AS\nSELECT 1":    true,
		"-- a\r\nSELECT 1": false,
	} {
		want := []string{"exec"}
		if expires {
			want = []string{"close", "exec"}
		}
		keep()
		exec(t, db, bypass, query)
		p.wantCalls(t, want...)

		keep()
		s, err := db.PrepareContext(bypass, query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ExecContext(bypass); err != nil {
			t.Error(err)
		}
		if slices.Contains(p.calls[:2], "close") != expires {
			t.Errorf("%q, prepared: %q", query, p.calls)
		}
		_ = s.Close()
	}
	keep()
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Raw(func(dc any) error { _ = sqlfence.BaseConn(dc); return nil }); err != nil {
		t.Error(err)
	}
	p.wantCalls(t, "close")
}

func TestWithStatementCacheOfLessThanNone(t *testing.T) {
	_, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithStatementCache(-1))
	if !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("err = %v, want ErrInvalid", err)
	}
}

// An Exec through a kept statement allocates no more than the statement's own arguments.
func TestAllocationsOfAKeptStatement(t *testing.T) {
	if fakedb.Race {
		t.Skip("the race detector has pools lose what they hold")
	}
	p, db, ctx := prepared(t, sqlfence.SQLite, 4)
	bare := &fakedb.Recorder{}
	raw := sql.OpenDB(bare)
	defer raw.Close()
	count := func(db *sql.DB) float64 {
		return testing.AllocsPerRun(100, func() {
			p.Sent, p.calls, bare.Sent = p.Sent[:0], p.calls[:0], bare.Sent[:0]
			exec(t, db, ctx, "UPDATE books SET price = ?", 1)
		})
	}
	// The fake copies the arguments, so one more allocation is allowed: for the list of arguments.
	if got, want := count(db), count(raw); got > want+1 {
		t.Errorf("%v allocations, %v without sqlfence", got, want)
	}
}
