package fencepgx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A batch of 100 guarded writes takes one round trip, as without guards, once the server has prepared its statement.
func TestBatchOfHundred(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		c, err := s.db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		send := func(ctx context.Context, q querier) (turns int64, err error) {
			b := new(pgx.Batch)
			for i := range 100 {
				b.Queue("UPDATE books SET price = $1 WHERE id = $2", i, i%3+1)
			}
			before := s.turns.Load()
			err = q.SendBatch(ctx, b).Close()
			return s.turns.Load() - before, err
		}
		if _, err := send(harness.Holding(t, 9), c); err != nil { // runs the probe
			t.Fatal(err)
		}
		for _, q := range []querier{c, c.Conn()} {
			if _, err := send(t.Context(), c.Conn()); err != nil { // pgx's own statements get prepared
				t.Fatal(err)
			}
			if turns, err := send(harness.Holding(t, 9), q); turns != 1 || err != nil {
				t.Errorf("%T: %d round trips, %v", q, turns, err)
			}
		}
		unchanged := s.Unchanged(t)
		if turns, err := send(harness.Holding(t, 8), c); turns != 1 || !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("stale: %d round trips, %v", turns, err)
		}
		if turns, err := send(t.Context(), c); turns != 0 || !errors.Is(err, sqlfence.ErrNoFence) {
			t.Errorf("without a token: %d round trips, %v", turns, err)
		}
		unchanged()
	})
}

// Batches are guarded in each of pgx's modes, with arguments, with names and without arguments.
func TestBatchModes(t *testing.T) {
	for _, mode := range harness.PgxModes {
		for _, fence := range harness.Fences {
			t.Run(fmt.Sprint(mode, " ", fence.Name), func(t *testing.T) {
				s := newShopBy(t, fence.Rule, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
				for _, tt := range []harness.Write{
					{Name: "arguments", Query: setPrice, Args: []any{30, 1}},
					{Name: "none", Query: "UPDATE books SET price = 30 WHERE id = 1 -- alone"},
					{Name: "names", Query: "UPDATE books SET price = @p WHERE id = @id", Args: []any{pgx.NamedArgs{"p": 30, "id": 1}}},
				} {
					s.staleThenFresh(t, tt.Name, func(ctx context.Context) error {
						b := new(pgx.Batch)
						b.Queue("SELECT 1")
						b.Queue(tt.Query, tt.Args...)
						b.Queue("UPDATE pens SET price = $1", 3)
						return s.db.SendBatch(ctx, b).Close()
					})
				}
			})
		}
	}
}

// A batch's results and callbacks receive sqlfence's errors. Statements after a refused one aren't executed.
func TestBatchResults(t *testing.T) {
	var events seen
	onFences(t, func(t *testing.T, s *shop) {
		unchanged := s.Unchanged(t)
		b := new(pgx.Batch)
		b.Queue("SELECT 7")
		b.Queue("UPDATE books SET price = 30 WHERE id = 2")
		b.Queue(setPrice, 30, 1)
		r := s.db.SendBatch(harness.Holding(t, 8), b)
		var n int
		if err := r.QueryRow().Scan(&n); err != nil || n != 7 {
			t.Errorf("%d, %v", n, err)
		}
		_, err := r.Exec()
		harness.WantStale(t, err, 8, 9)
		harness.WantError(t, r.QueryRow().Scan(&n), sqlfence.ErrStale)
		harness.WantStale(t, r.Close(), 8, 9)
		harness.WantStale(t, r.Close(), 8, 9)
		events.want(t, "a stale batch", sqlfence.Passed, sqlfence.Refused)
		unchanged()

		b = new(pgx.Batch)
		var got error
		called := 0
		b.Queue("SELECT 7").QueryRow(func(row pgx.Row) error { called++; return row.Scan(&n) })
		b.Queue(setPrice, 30, 1).Query(func(rows pgx.Rows) error { _, got = pgx.CollectRows(rows, pgx.RowTo[int]); return got })
		b.Queue(setPrice, 30, 2).Exec(func(pgconn.CommandTag) error { called++; return nil })
		harness.WantStale(t, s.db.SendBatch(harness.Holding(t, 8), b).Close(), 8, 9)
		harness.WantStale(t, got, 8, 9)
		if called != 1 {
			t.Errorf("%d callbacks were called", called)
		}
		unchanged()

		b = new(pgx.Batch)
		var ids []int
		b.Queue(setPrice, 30, 1).Query(func(rows pgx.Rows) error { ids, err = pgx.CollectRows(rows, pgx.RowTo[int]); return err })
		b.Queue(setPrice, 30, 2).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		b.Queue(setPrice, 30, 3).Exec(func(tag pgconn.CommandTag) error { called = int(tag.RowsAffected()); return nil })
		if err := s.db.SendBatch(harness.Holding(t, 9), b).Close(); err != nil || len(ids) != 1 || ids[0] != 1 || n != 2 || called != 1 {
			t.Errorf("%v, %d, %d, %v", ids, n, called, err)
		}

		// If one statement of a batch can't be sent, none is.
		unchanged = s.Unchanged(t)
		b = new(pgx.Batch)
		b.Queue("UPDATE pens SET price = 1")
		b.Queue(setPrice, 31, 1)
		b.Queue("TRUNCATE books")
		r = s.db.SendBatch(harness.Holding(t, 9), b)
		_, err = r.Exec()
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		harness.WantError(t, r.QueryRow().Scan(&n), sqlfence.ErrUnguardable)
		harness.WantError(t, r.Close(), sqlfence.ErrUnguardable)
		unchanged()
		s.givenBack(t)
		events.kinds = nil
	}, events.observer())
}

// A guard isn't sent after a statement of the same message that may move the session to another schema.
func TestBatchMoves(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	unchanged := s.Unchanged(t)
	b := new(pgx.Batch)
	b.Queue("SET search_path TO pg_temp")
	b.Queue(setPrice, 30, 1)
	harness.WantError(t, s.db.SendBatch(harness.Holding(t, 9), b).Close(), sqlfence.ErrUnguardable)
	unchanged()
}

// A batch can begin a transaction, and the transaction is guarded.
func TestBatchBegins(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		for _, q := range []querier{s.db} {
			s.staleThenFresh(t, "begun by a batch", func(ctx context.Context) error {
				b := new(pgx.Batch)
				b.BeginTx(pgx.TxOptions{})
				b.Queue("UPDATE pens SET price = 1")
				r := q.SendBatch(t.Context(), b)
				tx := r.Tx()
				if err := r.Close(); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, setPrice, 30, 1)
				if err != nil {
					return errors.Join(err, tx.Rollback(t.Context()))
				}
				return tx.Commit(t.Context())
			})
		}
		s.givenBack(t)
	})
}

// pgx sends a transaction's commit text without a guard. If a batch begins the transaction, this text must not write.
func TestBatchBeginsWithCommit(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		unchanged := s.Unchanged(t)
		b := new(pgx.Batch)
		b.BeginTx(pgx.TxOptions{CommitQuery: "UPDATE books SET price = 1; COMMIT"})
		b.Queue("SELECT 1")
		r := s.db.SendBatch(harness.Holding(t, 9), b)
		harness.WantError(t, r.Close(), sqlfence.ErrUnguardable)
		harness.WantError(t, r.Tx().Rollback(t.Context()), pgx.ErrTxClosed)
		unchanged()

		b = new(pgx.Batch)
		b.BeginTx(pgx.TxOptions{CommitQuery: "COMMIT AND NO CHAIN"})
		r = s.db.SendBatch(t.Context(), b)
		if err := errors.Join(r.Close(), r.Tx().Commit(t.Context())); err != nil {
			t.Error(err)
		}
		s.givenBack(t)
	})
}

// A statement whose meaning depends on standard_conforming_strings isn't sent after other statements, because they may
// change the setting after it was queried.
func TestBatchIsRefusedWhereAStatementMayBeReadOtherwise(t *testing.T) {
	const behind = `) , y AS (UPDATE books SET price = 30 WHERE id = 1 RETURNING 1) SELECT 1 --') SELECT 1`
	for _, mode := range harness.PgxModes {
		for _, now := range []struct{ begin, end, reads string }{
			{"on", "off", `WITH x AS (SELECT 'a\', '` + behind},
			{"off", "on", `WITH x AS (SELECT 'a\'` + behind},
		} {
			t.Run(mode.String()+" "+now.begin, func(t *testing.T) {
				s := newShopBy(t, sqlfence.RowFence("fence_token"), func(c *pgxpool.Config) {
					inMode(mode)(c)
					c.ConnConfig.RuntimeParams["standard_conforming_strings"] = now.begin
				})
				unchanged := s.Unchanged(t)
				simple := mode == pgx.QueryExecModeSimpleProtocol // the server reads all of the batch at once
				for _, first := range []string{
					"SET standard_conforming_strings = " + now.end,
					"SELECT set_config('standard_conforming_strings', '" + now.end + "', false)",
					"UPDATE pens SET price = length(set_config('standard_conforming_strings', '" + now.end + "', false))",
				} {
					b := new(pgx.Batch)
					b.Queue(first)
					b.Queue(now.reads)
					if err := s.db.SendBatch(harness.Holding(t, 8), b).Close(); !simple {
						harness.WantError(t, err, sqlfence.ErrUnguardable)
					}
					unchanged()
				}
				b := new(pgx.Batch)
				b.Queue(now.reads)
				b.Queue("SELECT 1")
				if err := s.db.SendBatch(harness.Holding(t, 8), b).Close(); err != nil && !simple {
					t.Errorf("in front of others: %v", err)
				}
				unchanged()
			})
		}
	}
}

// A guard isn't sent after a guarded statement that may move the session to another schema.
func TestBatchMovesByAGuardedStatement(t *testing.T) {
	s := newShop(t, sqlfence.Ledger(), sqlfence.WithTable("shelves", sqlfence.Serial("serial")))
	var home string
	if err := s.db.QueryRow(t.Context(), "SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	elsewhere := home + "_elsewhere"
	for _, query := range []string{
		"CREATE TABLE shelves (path text, serial bigint)",
		"INSERT INTO shelves VALUES ('', 1)",
		"CREATE SCHEMA " + elsewhere,
		"CREATE TABLE " + elsewhere + ".fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)",
		"INSERT INTO " + elsewhere + ".fencing_tokens VALUES ('books', 8)",
	} {
		s.Exec(t, query)
	}
	defer s.Exec(t, "DROP SCHEMA "+elsewhere+" CASCADE")
	unchanged := s.Unchanged(t)
	b := new(pgx.Batch)
	b.Queue("UPDATE shelves SET path = set_config('search_path', '" + elsewhere + ", " + home + "', false)")
	b.Queue(setPrice, 30, 1)
	harness.WantError(t, s.db.SendBatch(harness.Holding(t, 8), b).Close(), sqlfence.ErrUnguardable)
	unchanged()
}
