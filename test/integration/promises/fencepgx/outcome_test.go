package fencepgx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// endsAtCommit makes the server end the session at a COMMIT that has changed a book, without a response.
func endsAtCommit(t *testing.T, s *shop) {
	t.Helper()
	s.Exec(t, `CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END'`)
	s.Exec(t, `CREATE CONSTRAINT TRIGGER end_session AFTER UPDATE OF price ON books DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION end_session()`)
}

// A COMMIT or an autocommit write without a response returns ErrUnknownOutcome, and isn't sent again.
func TestLostReplies(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		endsAtCommit(t, s)
		for _, w := range ways {
			err := w.run(harness.Holding(t, 9), s.db, setPrice, 30, 1)
			harness.WantError(t, err, sqlfence.ErrUnknownOutcome)

			tx, err := s.db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.run(harness.Holding(t, 9), tx, setPrice, 30, 1); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
			harness.WantError(t, tx.Commit(t.Context()), sqlfence.ErrUnknownOutcome)
			harness.WantError(t, tx.Rollback(t.Context()), pgx.ErrTxClosed)
		}
		for name, commit := range map[string]func(context.Context, querier) error{
			"exec": func(ctx context.Context, q querier) error { _, err := q.Exec(ctx, "COMMIT"); return err },
			"query": func(ctx context.Context, q querier) error {
				rows, _ := q.Query(ctx, "COMMIT")
				rows.Close()
				return rows.Err()
			},
			"batch": func(ctx context.Context, q querier) error {
				b := new(pgx.Batch)
				b.Queue("COMMIT")
				return q.SendBatch(ctx, b).Close()
			},
		} {
			err := s.db.AcquireFunc(t.Context(), func(c *fencepgx.Conn) error {
				if _, err := c.Exec(t.Context(), "BEGIN"); err != nil {
					return err
				}
				if _, err := c.Exec(harness.Holding(t, 9), setPrice, 30, 1); err != nil {
					return err
				}
				return commit(t.Context(), c)
			})
			if !errors.Is(err, sqlfence.ErrUnknownOutcome) {
				t.Errorf("COMMIT by %s: %v", name, err)
			}
		}
		if got := s.State(t, false); got != "1:10 2:10 3:10" {
			t.Errorf("left %s", got)
		}
	})
}

// If the server has ended the connection before, nothing was sent on it, and another connection is used.
func TestLostBefore(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		for _, w := range ways {
			var pid int
			if err := s.db.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			s.Exec(t, fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", pid))
			if err := w.run(harness.Holding(t, 9), s.db, setPrice, 30, 1); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		}
	})
}

// In a transaction a lost connection ends the transaction, and its COMMIT isn't sent.
func TestLostInTransaction(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		tx, err := s.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(harness.Holding(t, 9), setPrice, 30, 1); err != nil {
			t.Fatal(err)
		}
		var pid int
		if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		s.Exec(t, fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", pid))
		if err := tx.Commit(t.Context()); err == nil {
			t.Error("the commit of a transaction that was ended has succeeded")
		}
		if got := s.State(t, false); got != "1:10 2:10 3:10" {
			t.Errorf("left %s", got)
		}
		s.givenBack(t)
	})
}

// A refusal in a nested transaction doesn't affect the outer one.
func TestNestedRefusal(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		err := pgx.BeginFunc(harness.Holding(t, 9), s.db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), setPrice, 20, 2); err != nil {
				return err
			}
			err := pgx.BeginFunc(t.Context(), tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(harness.Holding(t, 8), setPrice, 30, 1)
				return err
			})
			harness.WantStale(t, err, 8, 9)
			_, err = tx.Exec(t.Context(), setPrice, 20, 3)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if got := s.State(t, false); got != "1:10 2:20 3:20" {
			t.Errorf("left %s", got)
		}
	})
}

// Without a savepoint a refusal ends the transaction, as any error does.
func TestRefusalEndsTransaction(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(harness.Holding(t, 9), setPrice, 20, 2); err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(harness.Holding(t, 8), setPrice, 30, 1)
	harness.WantStale(t, err, 8, 9)
	harness.WantError(t, tx.Commit(t.Context()), pgx.ErrTxCommitRollback)
	if got := s.State(t, false); got != "1:10 2:10 3:10" {
		t.Errorf("left %s", got)
	}
}

// A busy connection returns pgx's error and stays usable.
func TestBusyConnectionStaysUsable(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	c, err := s.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(harness.Holding(t, 9), setPrice, pgx.QueryExecModeExec, 20, 1); err != nil { // runs the probe
		t.Fatal(err)
	}
	rows, err := c.Query(t.Context(), "SELECT generate_series(1, 1000000)")
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	_, err = c.Exec(harness.Holding(t, 9), setPrice, 30, 1)
	if err == nil || errors.Is(err, sqlfence.ErrUnknownOutcome) || !strings.Contains(err.Error(), "conn busy") {
		t.Error(err)
	}
	rows.Close()
	if _, err := c.Exec(harness.Holding(t, 9), setPrice, 30, 1); err != nil {
		t.Error(err)
	}
}

// If pgx can't encode a statement of a batch, wherever it stands, the batch isn't sent, and no outcome is unknown.
func TestBatchThatIsNotSentHasNoUnknownOutcome(t *testing.T) {
	const write = "UPDATE books SET price = 30 WHERE id = $1"
	for _, mode := range harness.PgxModes {
		for name, faulty := range map[string]func(b *pgx.Batch){
			"too few":     func(b *pgx.Batch) { b.Queue(write) },
			"too many":    func(b *pgx.Batch) { b.Queue(write, 1, 2) },
			"unencodable": func(b *pgx.Batch) { b.Queue(write, make(chan int)) },
			"a read":      func(b *pgx.Batch) { b.Queue("SELECT $1::int", 1, 2) },
			"no table":    func(b *pgx.Batch) { b.Queue("SELECT * FROM nothing") },
		} {
			t.Run(fmt.Sprint(mode, " ", name), func(t *testing.T) {
				s := newShopBy(t, sqlfence.RowFence("fence_token"), inMode(mode))
				for place := range 3 {
					unchanged := s.Unchanged(t)
					b := new(pgx.Batch)
					for i := range 3 {
						if i == place {
							faulty(b)
						} else {
							b.Queue(write, i+1)
						}
					}
					err := s.db.SendBatch(harness.Holding(t, 9), b).Close()
					if err == nil || errors.Is(err, sqlfence.ErrUnknownOutcome) {
						t.Errorf("%d: %v", place, err)
					}
					unchanged()
				}
				if _, err := s.db.Exec(harness.Holding(t, 9), write, 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
