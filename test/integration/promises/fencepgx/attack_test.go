package fencepgx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// These tests try pgx's own options, methods and caches as ways past a guard.

func inMode(mode pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }
}

// both opens a pool of one connection, and a database on it.
func (s *shop) both(t *testing.T, configure func(*pgxpool.Config), opts ...sqlfence.Option) (*pgxpool.Pool, *fencepgx.DB) {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.Source)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	configure(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	db, err := fencepgx.New(pool, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return pool, db
}

// A batch that was sent without the fence still has pgx's prepared statements. Sent again with the fence, it is
// guarded.
func TestBatchSentBefore(t *testing.T) {
	for _, mode := range harness.PgxModes {
		t.Run(mode.String(), func(t *testing.T) {
			s := newShop(t, sqlfence.RowFence("fence_token"))
			pool, db := s.both(t, inMode(mode), harness.Books(sqlfence.RowFence("fence_token")))
			b := new(pgx.Batch)
			b.Queue("UPDATE books SET price = 30 WHERE id = 1")
			s.staleThenFresh(t, "sent before", func(ctx context.Context) error {
				if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
					return err
				}
				s.Reset(t, 9)
				return db.SendBatch(ctx, b).Close()
			})
			// SendBatch hasn't changed the application's batch, so the batch can be sent again.
			s.staleThenFresh(t, "sent again", func(ctx context.Context) error { return db.SendBatch(ctx, b).Close() })
		})
	}
}

// In the simple protocol pgx joins the texts of a batch. A text that leaves a string or comment open would swallow the
// next text.
func TestBatchJoined(t *testing.T) {
	const write = "UPDATE books SET price = 30 WHERE id = 1"
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		s := newShopBy(t, sqlfence.RowFence("fence_token"), inMode(mode))
		unchanged := s.Unchanged(t)
		for _, first := range []string{"SELECT '", `SELECT 1 AS "`, "SELECT /*", "SELECT $$", "SELECT e'", "SELECT U&'", "SELECT ("} {
			for _, ends := range []string{"'; %s; --", `"; %s; --`, "*/ 1; %s; --", "$$; %s; --"} {
				for _, second := range []string{`SELECT 1 AS "%s"`, "SELECT '%s'", "SELECT 1 /*%s*/", "SELECT $a$%s$a$"} {
					b := new(pgx.Batch)
					b.Queue(first)
					b.Queue(fmt.Sprintf(second, fmt.Sprintf(ends, write)))
					if err := s.db.SendBatch(harness.Holding(t, 8), b).Close(); err == nil {
						t.Errorf("%v: %s behind %s has succeeded", mode, b.QueuedQueries[1].SQL, first)
					}
				}
			}
		}
		unchanged()
		b := new(pgx.Batch)
		b.Queue("SELECT 1 -- one")
		b.Queue("SELECT '\\' /* a ' */ WHERE $1 = 'it''s'", "$$")
		if err := s.db.SendBatch(t.Context(), b).Close(); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

// The texts that begin and end a transaction may be the application's, and may move the session to another ledger.
func TestTxOptionsMove(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	var home string
	if err := s.db.QueryRow(t.Context(), "SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	elsewhere := home + "_elsewhere"
	s.Exec(t, "CREATE SCHEMA "+elsewhere)
	defer s.Exec(t, "DROP SCHEMA "+elsewhere+" CASCADE")
	s.Exec(t, "CREATE TABLE "+elsewhere+".fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)")
	s.Exec(t, "INSERT INTO "+elsewhere+".fencing_tokens VALUES ('books', 8)")
	move := "SET search_path TO " + elsewhere + ", " + home
	for _, opts := range []pgx.TxOptions{
		{BeginQuery: "BEGIN; " + move},
		{BeginQuery: "BEGIN; SET SESSION search_path TO " + elsewhere + ", " + home},
		{IsoLevel: "serializable; " + pgx.TxIsoLevel(move)},
		{CommitQuery: "COMMIT; " + move},
	} {
		_, db := s.both(t, func(*pgxpool.Config) {}, harness.Books(sqlfence.Ledger()))
		unchanged := s.Unchanged(t)
		write := func(tx pgx.Tx) error {
			_, err := tx.Exec(harness.Holding(t, 8), setPrice, 30, 1)
			return err
		}
		if opts.CommitQuery != "" {
			if err := pgx.BeginTxFunc(t.Context(), db, opts, func(pgx.Tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
			opts = pgx.TxOptions{}
		}
		harness.WantError(t, pgx.BeginTxFunc(t.Context(), db, opts, write), sqlfence.ErrUnguardable)
		unchanged()
		db.Close()
	}
	// A BeginQuery that doesn't change search_path is permitted.
	err := pgx.BeginTxFunc(harness.Holding(t, 9), s.db, pgx.TxOptions{BeginQuery: "BEGIN; SET LOCAL app.tenant TO 'a'"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), setPrice, 30, 1)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// EXECUTE runs statements that pgx doesn't know as prepared: by a PREPARE of a hook, or by a batch of another user.
func TestExecuteUnseen(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	pool, db := s.both(t, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "PREPARE set_price AS UPDATE books SET price = 30 WHERE id = 1")
			if err == nil {
				_, err = c.Exec(ctx, "PREPARE two AS SELECT 2")
			}
			return err
		}
	}, harness.Books(sqlfence.RowFence("fence_token")))
	b := new(pgx.Batch)
	b.Queue("UPDATE books SET price = $1 WHERE id = $2", 10, 1)
	if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	names := []string{"set_price"}
	rows, _ := pool.Query(t.Context(), "SELECT name FROM pg_prepared_statements WHERE statement LIKE 'UPDATE%'")
	more, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(more) != 1 {
		t.Fatal(more, err)
	}
	unchanged := s.Unchanged(t)
	for _, name := range append(names, more...) {
		text := "EXECUTE " + name
		if name != "set_price" {
			text += "(30, 1)"
		}
		for _, w := range ways {
			harness.WantOnly(t, w.run(harness.Holding(t, 8), db, text), sqlfence.ErrUnguardable)
		}
		harness.WantOnly(t, pgx.BeginTxFunc(t.Context(), db, pgx.TxOptions{BeginQuery: "BEGIN; " + text}, func(pgx.Tx) error { return nil }),
			sqlfence.ErrUnguardable)
	}
	unchanged()
	if _, err := db.Exec(t.Context(), "EXECUTE two"); err != nil {
		t.Error(err)
	}
	if _, err := db.Exec(sqlfence.Bypass(t.Context(), "a test"), "EXECUTE set_price"); err != nil {
		t.Error(err)
	}
}

// An oddNumber has the Go value 1, but its pgx methods return 2.
type oddNumber int64

func (oddNumber) Int64Value() (pgtype.Int8, error) { return pgtype.Int8{Int64: 2, Valid: true}, nil }

type oddText string

func (oddText) TextValue() (pgtype.Text, error) { return pgtype.Text{String: "2", Valid: true}, nil }

// valued and printed have one value each, by different methods.
type valued int64

func (v valued) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(v), Valid: true}, nil
}

// With one row's token no other row can be inserted, in whichever form pgx gets the key.
func TestOddKeys(t *testing.T) {
	for _, mode := range harness.PgxModes {
		for _, column := range []string{"integer", "text"} {
			s := newShopBy(t, sqlfence.RowFence("fence_token"), inMode(mode))
			s.Exec(t, "ALTER TABLE books ALTER COLUMN id TYPE "+column)
			db := s.open(t, inMode(mode), sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
			for _, key := range []any{oddNumber(1), oddText("1"), new(oddNumber(1)), pgtype.Int8{Int64: 1, Valid: true}, pgtype.Text{String: "1", Valid: true}, valued(1)} {
				s.Exec(t, "DELETE FROM books")
				_, err := db.Exec(harness.HoldingKeys(t, 1, 20), "INSERT INTO books (id, price) VALUES ($1, 7)", key)
				if got := s.State(t, true); got != "" && got != "1:7@20" {
					t.Errorf("%v, %s, %T: %v, left %s", mode, column, key, err, got)
				}
				if v, ok := key.(valued); ok && column == "integer" && err != nil {
					t.Errorf("%v: %T: %v", mode, v, err)
				}
			}
		}
	}
}

// A guarded statement that pgx has cached is refused or guarded, also when the table has changed.
func TestChangedTable(t *testing.T) {
	for _, mode := range harness.PgxModes {
		s := newShopBy(t, sqlfence.RowFence("fence_token"), inMode(mode))
		const write = "UPDATE books SET price = $1 WHERE id = $2 RETURNING *"
		run := func(value int64) error {
			rows, _ := s.db.Query(harness.Holding(t, value), write, 30, 1)
			_, err := pgx.CollectRows(rows, pgx.RowToMap)
			return err
		}
		for i, change := range []string{
			"ALTER TABLE books ADD COLUMN pages integer", "ALTER TABLE books ALTER COLUMN writer TYPE text",
			"ALTER TABLE books DROP COLUMN pages", "ALTER TABLE books ALTER COLUMN writer SET DATA TYPE numeric USING 1",
		} {
			if err := run(9); err != nil {
				t.Fatal(mode, i, err)
			}
			s.Exec(t, change)
			unchanged := s.Unchanged(t)
			for range 3 {
				if err := run(8); err == nil {
					t.Errorf("%v: a stale token was let pass behind %s", mode, change)
				}
				unchanged()
			}
			var err error
			for range 2 { // after an error pgx discards its prepared statements
				if err = run(9); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("%v: %s: %v", mode, change, err)
			}
		}
	}
}

// A cancelled write may have been applied, and returns ErrUnknownOutcome. A stale write never lands.
func TestGivenUp(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		for _, w := range ways {
			for value, want := range map[int64]string{9: "", 8: "1:10 2:10 3:10"} {
				s.Reset(t, 9)
				blocker, err := s.Plain.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := blocker.Exec("LOCK books, fencing_tokens IN ACCESS EXCLUSIVE MODE"); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(harness.Holding(t, value))
				task := harness.Go(func() error { return w.run(ctx, s.db, setPrice, 30, 1) })
				harness.Eventually(t, "the write waits", func() bool { return s.Waiting(t, s.Plain) > 0 })
				cancel()
				err = task.Wait()
				// A cancelled batch was waiting while pgx prepared its statements. Then no statement of the batch is
				// executed, and the outcome is known.
				unknown := w.name != "batch"
				if errors.Is(err, sqlfence.ErrUnknownOutcome) != unknown || pgconn.SafeToRetry(err) || !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", w.name, err)
				}
				if err := blocker.Commit(); err != nil {
					t.Fatal(err)
				}
				s.givenBack(t)
				harness.Eventually(t, "the write has ended", func() bool { return s.Waiting(t, s.Plain) == 0 })
				if got := s.State(t, false); want != "" && got != want {
					t.Errorf("%s with %d left %s", w.name, value, got)
				}
			}
		}
	})
}

// Session state that another user of the pool has set lets no stale write land. docs/pgx.md lists the statements that
// remain possible.
func TestSessionOfOthers(t *testing.T) {
	for _, fence := range harness.Fences {
		s := newShop(t, fence.Rule)
		pool, db := s.both(t, func(*pgxpool.Config) {}, harness.Books(fence.Rule))
		for _, change := range []string{
			"SET standard_conforming_strings = off", "SET client_encoding = 'SJIS'", "SET client_encoding = 'LATIN1'",
			"SET session_replication_role = replica", "SET row_security = off", "SET default_transaction_isolation = 'serializable'",
			"SET default_transaction_read_only = on", "SET plan_cache_mode = force_generic_plan", "SET transform_null_equals = on",
			"SET backslash_quote = on", "SET quote_all_identifiers = on", "SET jit_above_cost = 0", "SET constraint_exclusion = on",
			"SET enable_seqscan = off; SET enable_indexscan = off", "SET synchronous_commit = off", "DISCARD ALL", "DEALLOCATE ALL", "RESET ALL",
		} {
			if _, err := pool.Exec(t.Context(), change); err != nil {
				t.Fatal(change, err)
			}
			s.Reset(t, 9)
			unchanged := s.Unchanged(t)
			for _, text := range []string{
				"UPDATE books SET price = 30 WHERE id = 1", `UPDATE books SET isbn = 'a\', price = 30 WHERE id = 1 --'`,
				`UPDATE books SET isbn = 'a\', price = 30 -- ' WHERE id = 1`, "UPDATE books SET isbn = '\u30bd', price = 30 WHERE id = 1",
				`DELETE FROM books WHERE isbn = '\' OR id = 1 --'`, `DELETE FROM books WHERE id = 1 OR isbn = '\' -- '`,
			} {
				for _, w := range ways {
					_ = w.run(harness.Holding(t, 8), db, text)
					_ = w.run(harness.Holding(t, 8), db, text, pgx.QueryExecModeSimpleProtocol)
				}
				if strings.Contains(text, "WHERE id = 1 --") || text == "UPDATE books SET price = 30 WHERE id = 1" {
					_ = db.AcquireFunc(t.Context(), func(c *fencepgx.Conn) error { _, err := c.Exec(harness.Holding(t, 8), text); return err })
				}
			}
			unchanged()
			if _, err := pool.Exec(t.Context(), "RESET ALL"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A transaction's tokens end with the transaction, even if a statement ends the transaction, or if the transaction is
// given up.
func TestTokensEndWithTransaction(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		_, db := s.both(t, func(*pgxpool.Config) {}, harness.Books(s.rule))
		for _, end := range []string{"COMMIT", "ROLLBACK", "END"} {
			for _, in := range []string{"the same hands", "other hands"} {
				unchanged := s.Unchanged(t)
				c, err := db.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Begin(harness.Holding(t, 9)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Exec(t.Context(), end); err != nil {
					t.Fatal(err)
				}
				if in == "other hands" {
					c.Release()
					if c, err = db.Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, w := range ways {
					harness.WantOnly(t, w.run(t.Context(), c, setPrice, 30, 1), sqlfence.ErrNoFence)
				}
				if _, err := c.Begin(harness.Holding(t, 9)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Exec(t.Context(), end); err != nil {
					t.Fatal(err)
				}
				if err := copyBooks(t.Context(), c); !errors.Is(err, sqlfence.ErrNoFence) && !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Error(err)
				}
				c.Release()
				unchanged()
			}
		}
	})
}

// Another user's search_path doesn't matter if WithSchema names the ledger's schema.
func TestPathOfOthers(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	var home string
	if err := s.db.QueryRow(t.Context(), "SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	elsewhere := home + "_elsewhere"
	s.Exec(t, "CREATE SCHEMA "+elsewhere)
	defer s.Exec(t, "DROP SCHEMA "+elsewhere+" CASCADE")
	s.Exec(t, "CREATE TABLE "+elsewhere+".fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)")
	s.Exec(t, "INSERT INTO "+elsewhere+".fencing_tokens VALUES ('books', 8)")
	pool, db := s.both(t, func(*pgxpool.Config) {}, harness.Books(sqlfence.Ledger()), sqlfence.WithSchema(home))
	unchanged := s.Unchanged(t)
	for _, other := range []func(context.Context, string) error{
		func(ctx context.Context, text string) error { _, err := pool.Exec(ctx, text); return err },
		func(ctx context.Context, text string) error { _, err := db.SQL().ExecContext(ctx, text); return err },
	} {
		if err := other(t.Context(), "SET search_path TO "+elsewhere+", "+home); err != nil {
			t.Fatal(err)
		}
		for _, w := range ways {
			harness.WantStale(t, w.run(harness.Holding(t, 8), db, setPrice, 30, 1), 8, 9)
		}
	}
	unchanged()
}

// In the simple protocol pgx writes values into the SQL. If pgx's scanner and the server read a string differently, a
// value could end the string, and the rest of the value would be executed.
func TestMisplacedArguments(t *testing.T) {
	s := newShopBy(t, sqlfence.RowFence("fence_token"), inMode(pgx.QueryExecModeSimpleProtocol))
	other := newShop(t, sqlfence.RowFence("fence_token"))
	unchanged, otherUnchanged := s.Unchanged(t), other.Unchanged(t)
	const write = "UPDATE books SET price = 30 WHERE id = 1; --"
	ends := []string{"$$", "$a$", "$é$", "'", "\\'", "\"", "*/", "\n", "''"}
	for _, open := range []string{
		"$$", "$a$", "$é$", "$A_é$", "'", "E'\\'", "U&'", "\"", "U&\"", "/*", "/* /* */", "--", "b'", "/*/", "a$a$", "$ø1$",
		"e'a'\n'\\'", "'a' -- x\n'", "name'\\' || '", "date'\\'",
	} {
		for _, end := range ends {
			for _, text := range []string{"SELECT " + open + " $1", "SELECT " + open + "$1", "SELECT 1 AS a, " + open + " $1 " + end} {
				for _, value := range []string{end + "; " + write, " " + end + ", 1; " + write} {
					_, _ = s.db.Exec(harness.Holding(t, 8), text, value)
					_, _ = s.db.Exec(harness.Holding(t, 8), strings.ReplaceAll(text, "$1", "@v"), pgx.NamedArgs{"v": value})
					_, _ = other.db.Exec(harness.Holding(t, 8), text, pgx.QueryExecModeSimpleProtocol, value)
					b := new(pgx.Batch)
					b.Queue(text, value)
					_ = s.db.SendBatch(harness.Holding(t, 8), b).Close()
				}
			}
		}
	}
	unchanged()
	otherUnchanged()
	for _, text := range []string{"SELECT $$it's $1$$, $1", "SELECT 'a\\' || $1 -- $2", "SELECT e'\\'$2' || $1", `SELECT $1 AS "$2"`} {
		if _, err := s.db.Exec(t.Context(), text, "'"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
