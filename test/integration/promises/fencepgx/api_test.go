package fencepgx_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A DB and its connections have the methods of pgx's pool and its connections, except methods that would give out
// connections without the fence. A new version of pgx may have further methods.
func TestMethods(t *testing.T) {
	for _, tt := range []struct {
		pgx, ours reflect.Type
		missing   []string // as docs/pgx.md lists
		other     []string // methods with fencepgx's connections as parameters or results
	}{
		{reflect.TypeFor[*pgxpool.Pool](), reflect.TypeFor[*fencepgx.DB](), []string{"AcquireAllIdle"}, []string{"Acquire", "AcquireFunc"}},
		{reflect.TypeFor[*pgxpool.Conn](), reflect.TypeFor[*fencepgx.Conn](), []string{"Hijack"}, nil},
	} {
		for i := range tt.pgx.NumMethod() {
			m := tt.pgx.Method(i)
			ours, ok := tt.ours.MethodByName(m.Name)
			if ok == slices.Contains(tt.missing, m.Name) {
				t.Errorf("%v.%s: fencepgx has it: %v", tt.pgx, m.Name, ok)
			}
			if ok && !slices.Contains(tt.other, m.Name) && signature(m.Type) != signature(ours.Type) {
				t.Errorf("%s is %v, and of pgx's %v", m.Name, ours.Type, m.Type)
			}
		}
	}
}

// signature returns the types of a method's parameters and results, without the receiver.
func signature(m reflect.Type) string {
	s := ""
	for i := 1; i < m.NumIn(); i++ {
		s += fmt.Sprint(m.In(i), " ")
	}
	for i := range m.NumOut() {
		s += fmt.Sprint("→", m.Out(i))
	}
	return s
}

// Statements that need no guard have the same results as without the fence, in each of pgx's modes.
func TestTransparentWithoutGuards(t *testing.T) {
	for _, mode := range harness.PgxModes {
		s := newShopBy(t, sqlfence.Ledger(), inMode(mode))
		pool, err := pgxpool.New(t.Context(), s.Source+"&default_query_exec_mode="+map[pgx.QueryExecMode]string{
			pgx.QueryExecModeCacheStatement: "cache_statement", pgx.QueryExecModeCacheDescribe: "cache_describe",
			pgx.QueryExecModeDescribeExec: "describe_exec", pgx.QueryExecModeExec: "exec", pgx.QueryExecModeSimpleProtocol: "simple_protocol",
		}[mode])
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		for _, tt := range []harness.Write{
			{Query: ""}, {Query: "-- nothing"}, {Query: ";"}, {Query: "SELECT 1, NULL, 'a'::text, 1.5::numeric, '{1,2}'::int[], now() < now(), '\\x00ff'::bytea"},
			{Query: "SELECT * FROM books ORDER BY id"}, {Query: "SELECT id FROM books WHERE id > $1", Args: []any{1}},
			{Query: "SELECT id FROM books WHERE id > $1", Args: []any{pgx.QueryResultFormats{pgx.TextFormatCode}, 1}},
			{Query: "SELECT id FROM books WHERE id > $1", Args: []any{pgx.QueryResultFormatsByOID{23: 0}, 1}},
			{Query: "SELECT id FROM books WHERE id > @id", Args: []any{pgx.NamedArgs{"id": 1}}}, {Query: "SELECT @id::int", Args: []any{pgx.StrictNamedArgs{}}},
			{Query: "INSERT INTO pens (id, price) VALUES ($1, $2) RETURNING price", Args: []any{nil, 2}}, {Query: "UPDATE pens SET price = 3"}, {Query: "DELETE FROM pens"},
			{Query: "SELECT 1/0"}, {Query: "SELECT nothing"}, {Query: "SELECT $1::int", Args: []any{"no number"}}, {Query: "SELECT $1::int"}, {Query: "SELECT 1; SELECT 2"},
			{Query: "SELECT 1", Args: []any{1}}, {Query: "SELECT 1", Args: []any{pgx.QueryExecMode(99)}}, {Query: "CREATE TEMP TABLE t (n int)"}, {Query: "DROP TABLE t"},
		} {
			for name, describe := range map[string]func(querier) string{
				"exec": func(q querier) string { return fmt.Sprint(q.Exec(t.Context(), tt.Query, tt.Args...)) },
				"query": func(q querier) string {
					rows, err := q.Query(t.Context(), tt.Query, tt.Args...)
					answer := fmt.Sprintln(rows.FieldDescriptions(), err)
					for rows.Next() {
						values, err := rows.Values()
						answer += fmt.Sprintln(values, rows.RawValues(), err)
					}
					rows.Close()
					return answer + fmt.Sprintln(rows.FieldDescriptions(), rows.CommandTag(), rows.Err())
				},
				"row": func(q querier) string {
					var n any
					return fmt.Sprint(q.QueryRow(t.Context(), tt.Query, tt.Args...).Scan(&n), n)
				},
				"batch": func(q querier) string {
					if !strings.ContainsAny(strings.TrimPrefix(tt.Query, "-- nothing"), " ") || len(tt.Args) > 0 && reflect.TypeOf(tt.Args[0]) != nil && reflect.TypeOf(tt.Args[0]).PkgPath() == "github.com/jackc/pgx/v5" {
						return "" // pgx panics, or counts no result; and options are refused
					}
					b := new(pgx.Batch)
					b.Queue("SELECT 7")
					b.Queue(tt.Query, tt.Args...)
					r := q.SendBatch(t.Context(), b)
					tag, err := r.Exec()
					rows, errQuery := r.Query()
					values, errRows := pgx.CollectRows(rows, pgx.RowToMap)
					return fmt.Sprintln(tag, err, errQuery, values, errRows, r.Close())
				},
			} {
				if fenced, raw := describe(s.db), describe(pool); fenced != raw {
					t.Errorf("%v, %s by %s\nfenced: %s\n   raw: %s", mode, tt.Query, name, fenced, raw)
				}
			}
		}
		s.givenBack(t)
	}
}

// A guarded query accepts pgx's options before its arguments.
func TestResultFormats(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		for _, option := range []any{pgx.QueryResultFormats{pgx.TextFormatCode}, pgx.QueryResultFormatsByOID{23: pgx.TextFormatCode}} {
			s.staleThenFresh(t, fmt.Sprintf("%T", option), func(ctx context.Context) error {
				rows, _ := s.db.Query(ctx, setPrice, option, pgx.QueryExecModeCacheDescribe, 30, 1)
				raw, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) { return string(row.RawValues()[0]), nil })
				if err == nil && !slices.Equal(raw, []string{"1"}) {
					return fmt.Errorf("not as text: %q", raw)
				}
				return err
			})
		}
	})
}

// The pool's hooks are called as before, and get pgx's connections.
func TestHooksGetPgxConnections(t *testing.T) {
	var connected, prepared, released, closed atomic.Int64
	s := newShopBy(t, sqlfence.RowFence("fence_token"), func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { connected.Add(1); return nil }
		c.AfterConnect = func(context.Context, *pgx.Conn) error { connected.Add(1); return nil }
		c.PrepareConn = func(ctx context.Context, _ *pgx.Conn) (bool, error) {
			prepared.Add(1)
			if ctx.Value(refusing{}) != nil {
				return true, errRefusing
			}
			return true, nil
		}
		c.AfterRelease = func(c *pgx.Conn) bool {
			released.Add(1)
			_, err := c.Exec(context.Background(), "DISCARD ALL")
			return err == nil
		}
		c.BeforeClose = func(*pgx.Conn) { closed.Add(1) }
	})
	for range 2 {
		s.staleThenFresh(t, "behind DISCARD ALL", func(ctx context.Context) error {
			_, err := s.db.Exec(ctx, setPrice, pgx.QueryExecModeDescribeExec, 30, 1)
			return err
		})
	}
	_, err := s.db.Exec(context.WithValue(harness.Holding(t, 9), refusing{}, true), setPrice, 30, 1)
	harness.WantError(t, err, errRefusing)
	s.givenBack(t)
	s.db.Close()
	if connected.Load() < 2 || prepared.Load() < 6 || released.Load() < 4 || closed.Load() == 0 {
		t.Errorf("called %d, %d, %d, %d times", connected.Load(), prepared.Load(), released.Load(), closed.Load())
	}
}

type refusing struct{}

var errRefusing = errors.New("refusing")

// The methods of a transaction are guarded until the transaction ends.
func TestTxMethods(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		tx, err := s.db.Begin(harness.Holding(t, 9))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Prepare(t.Context(), "set price", setPrice); err != nil {
			t.Error(err)
		}
		b := new(pgx.Batch)
		b.Queue("set price", 30, 1).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() != 1 {
				return fmt.Errorf("%v", tag)
			}
			return nil
		})
		if err := tx.SendBatch(t.Context(), b).Close(); err != nil {
			t.Error(err)
		}
		if n, err := tx.CopyFrom(t.Context(), pgx.Identifier{"pens"}, []string{"id"}, pgx.CopyFromRows([][]any{{1}})); n != 1 || err != nil {
			t.Error(n, err)
		}
		if tx.Conn() == nil {
			t.Error("no connection")
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"commit": tx.Commit(t.Context()), "rollback": tx.Rollback(t.Context()), "batch": tx.SendBatch(t.Context(), b).Close(),
			"row": tx.QueryRow(t.Context(), "SELECT 1").Scan(new(int)),
		} {
			if !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, err := range []error{
			second(tx.Begin(t.Context())), second(tx.Exec(t.Context(), "SELECT 1")), second(tx.Query(t.Context(), "SELECT 1")),
			second(tx.Prepare(t.Context(), "a", "SELECT 1")), second(tx.CopyFrom(t.Context(), pgx.Identifier{"pens"}, nil, nil)),
		} {
			if !errors.Is(err, pgx.ErrTxClosed) {
				t.Error(err)
			}
		}
		if got := s.State(t, false); got != "1:30 2:10 3:10" {
			t.Errorf("left %s", got)
		}
	})
}

// After the release of the connection, an open transaction and the results of a batch don't panic: a deferred Rollback
// may run after Release.
func TestTransactionAndBatchAfterRelease(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		c, err := s.db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tx, err := c.Begin(harness.Holding(t, 9))
		if err != nil {
			t.Fatal(err)
		}
		b := new(pgx.Batch)
		b.Queue(setPrice, 30, 1)
		b.Queue(setPrice, 31, 1)
		got := tx.SendBatch(t.Context(), b)
		if _, err := got.Exec(); err != nil {
			t.Fatal(err)
		}
		c.Release()
		_ = got.Close() // the rest of its results may have been read already
		for _, err := range []error{second(tx.Exec(t.Context(), "SELECT 1")), tx.Commit(t.Context()), tx.Rollback(t.Context())} {
			if !errors.Is(err, pgx.ErrTxClosed) {
				t.Error(err)
			}
		}
		if got := s.State(t, false); got != "1:10 2:10 3:10" {
			t.Errorf("left %s", got)
		}
	})
}

// A savepoint ends with its transaction, even if the connection continues: no statement runs in the savepoint
// afterwards.
func TestSavepointEndsWithTx(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		c, err := s.db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []interface {
			Begin(ctx context.Context) (pgx.Tx, error)
		}{c, s.db} {
			tx, err := of.Begin(harness.Holding(t, 9))
			if err != nil {
				t.Fatal(err)
			}
			outer, err := tx.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			inner, err := outer.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b := new(pgx.Batch)
			b.BeginTx(pgx.TxOptions{})
			b.Queue(setPrice, 30, 1)
			for _, tx := range []pgx.Tx{tx, inner} {
				if err := tx.SendBatch(harness.Holding(t, 9), b).Close(); err == nil {
					t.Error("a batch has begun a transaction in another one")
				}
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
			for _, tx := range []pgx.Tx{outer, inner} {
				for _, err := range []error{
					second(tx.Exec(harness.Holding(t, 9), setPrice, 30, 1)), tx.SendBatch(t.Context(), new(pgx.Batch)).Close(),
					second(tx.Begin(t.Context())), tx.Commit(t.Context()), tx.Rollback(t.Context()),
				} {
					if !errors.Is(err, pgx.ErrTxClosed) {
						t.Error(err)
					}
				}
			}
		}
		c.Release()
		if got := s.State(t, false); got != "1:10 2:10 3:10" {
			t.Errorf("left %s", got)
		}
		s.givenBack(t)
	})
}

func second[T any](_ T, err error) error { return err }
