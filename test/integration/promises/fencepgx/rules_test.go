package fencepgx_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// Without fencepgx these stale writes succeed. This shows that the other tests can fail.
func TestWithoutFence(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	pool, err := pgxpool.New(t.Context(), s.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, w := range ways {
		s.Reset(t, 9)
		if err := w.run(harness.Holding(t, 8), pool, setPrice, 30, 1); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
			t.Errorf("%s left %s", w.name, got)
		}
	}
}

// If a batch fails at its end, this failure is returned, even if an earlier write found no row.
func TestGoneAndFailed(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	s.Exec(t, "ALTER TABLE books ADD COLUMN version bigint NOT NULL DEFAULT 0")
	s.Exec(t, "ALTER TABLE pens DROP CONSTRAINT pens_pkey, ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED")
	db := s.open(t, func(*pgxpool.Config) {}, sqlfence.WithTable("books", sqlfence.Serial("version")))
	b := new(pgx.Batch)
	b.Queue(setPrice, 31, 99)
	b.Queue("INSERT INTO pens (id) VALUES (77), (77)")
	err := db.SendBatch(harness.WithSerial(t, 5), b).Close()
	var failed *pgconn.PgError
	if !errors.Is(err, sqlfence.ErrGone) || !errors.As(err, &failed) || failed.Code != "23505" {
		t.Error(err)
	}
}

// A token of one book doesn't permit writing another book.
func TestKeysOfOtherRowsAreOutOfScope(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	db := s.open(t, func(*pgxpool.Config) {}, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
	unchanged := s.Unchanged(t)
	for _, w := range ways {
		harness.WantError(t, w.run(harness.HoldingKeys(t, 2, 10), db, setPrice, 30, 1), sqlfence.ErrOutOfScope)
		harness.WantError(t, w.run(harness.HoldingKeys(t, 1, 8), db, setPrice, 30, 1), sqlfence.ErrStale)
	}
	unchanged()
	for _, w := range ways {
		if err := w.run(harness.HoldingKeys(t, 2, 8, 1, 10), db, setPrice, 30, 1); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// A write with another serial than the row's is ErrConflict, and a write to a missing row is ErrGone.
func TestSerialsThatDifferConflict(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	s.Exec(t, "ALTER TABLE books ADD COLUMN version bigint NOT NULL DEFAULT 0")
	db := s.open(t, func(*pgxpool.Config) {}, sqlfence.WithTable("books", sqlfence.Serial("version")))
	for _, w := range ways {
		s.Exec(t, "UPDATE books SET version = 5")
		if err := w.run(harness.WithSerial(t, 5), db, setPrice, 30, 1); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		err := w.run(harness.WithSerial(t, 5), db, setPrice, 31, 1)
		var conflict *sqlfence.ConflictError
		if !errors.As(err, &conflict) || conflict.Expected != 5 || conflict.Current != 6 {
			t.Errorf("%s: %v", w.name, err)
		}
		harness.WantOnly(t, w.run(harness.WithSerial(t, 5), db, setPrice, 31, 9), sqlfence.ErrGone)
	}
}

// A row with another user's edit lock can't be written.
func TestEditLock(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	s.Exec(t, "ALTER TABLE books ADD COLUMN locked_by text, ADD COLUMN locked_at timestamptz, ADD COLUMN locked_until timestamptz")
	s.Exec(t, "UPDATE books SET locked_by = 'ann', locked_at = now(), locked_until = now() + interval '1 hour' WHERE id = 1")
	db := s.open(t, func(*pgxpool.Config) {}, sqlfence.WithTable("books", sqlfence.EditLock("locked_by", "locked_at", "locked_until")))
	for _, w := range ways {
		err := w.run(sqlfence.WithEditor(t.Context(), "bob"), db, setPrice, 30, 1)
		var locked *sqlfence.LockedError
		if !errors.As(err, &locked) || locked.By != "ann" {
			t.Errorf("%s: %v", w.name, err)
		}
		if err := w.run(sqlfence.WithEditor(t.Context(), "ann"), db, setPrice, 30, 1); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// seen are the events of a database.
type seen struct {
	mu    sync.Mutex
	kinds []sqlfence.EventKind
}

func (s *seen) observer() sqlfence.Option {
	return sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kinds = append(s.kinds, e.Kind)
	}, sqlfence.Refused, sqlfence.WouldRefuse, sqlfence.Bypassed, sqlfence.RawAccess, sqlfence.Unfenced, sqlfence.Guarded, sqlfence.Passed)
}

// want fails the test unless these are the events since its last call.
func (s *seen) want(t *testing.T, what string, kinds ...sqlfence.EventKind) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.kinds, kinds) {
		t.Errorf("%s: the events are %v, want %v", what, s.kinds, kinds)
	}
	s.kinds = nil
}

// Each statement causes exactly one event.
func TestEventsComeOncePerStatement(t *testing.T) {
	var events seen
	s := newShop(t, sqlfence.RowFence("fence_token"), events.observer())
	for _, w := range ways {
		_ = w.run(harness.Holding(t, 8), s.db, setPrice, 30, 1)
		events.want(t, w.name+", stale", sqlfence.Refused)
		_ = w.run(t.Context(), s.db, setPrice, 30, 1)
		events.want(t, w.name+", no token", sqlfence.Refused)
		_ = w.run(harness.Holding(t, 9), s.db, setPrice, 30, 1)
		events.want(t, w.name+", current", sqlfence.Guarded)
		_ = w.run(sqlfence.Bypass(t.Context(), "a test"), s.db, setPrice, 30, 1)
		events.want(t, w.name+", bypassed", sqlfence.Bypassed)
		_ = w.run(t.Context(), s.db, "SELECT 1 AS id")
		events.want(t, w.name+", passed", sqlfence.Passed)
	}
	err := s.db.AcquireFunc(t.Context(), func(c *fencepgx.Conn) error {
		c.Conn()
		events.want(t, "raw", sqlfence.RawAccess)
		return pgx.BeginFunc(t.Context(), c, func(tx pgx.Tx) error {
			tx.Conn()
			events.want(t, "raw in a transaction", sqlfence.RawAccess)
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// In Observe mode no statement is refused, no transaction is ended, and batches are sent unchanged.
func TestObserveRefusesNothing(t *testing.T) {
	var events seen
	s := newShop(t, sqlfence.RowFence("fence_token"), events.observer(), sqlfence.WithMode(sqlfence.Observe))
	for _, w := range ways {
		want := sqlfence.WouldRefuse
		if w.name == "batch" {
			want = sqlfence.Bypassed
		}
		s.Reset(t, 9)
		if err := w.run(harness.Holding(t, 8), s.db, setPrice, 30, 1); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		if got := s.State(t, false); got != "1:30 2:10 3:10" {
			t.Errorf("%s left %s", w.name, got)
		}
		events.want(t, w.name, want)
		err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return w.run(harness.Holding(t, 8), tx, setPrice, 31, 1) })
		if err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		events.want(t, w.name+" in a transaction", want)
		if err := w.run(t.Context(), s.db, setPrice, 32, 1); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		events.want(t, w.name+" without a token", sqlfence.WouldRefuse)
	}
}

// The packages send their SQL over the same pool, and the pool's guards accept their tokens.
func TestTokensOverThePool(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	store, err := tokens.New(s.db.SQL())
	if err != nil {
		t.Fatal(err)
	}
	old, err := store.Issue(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(sqlfence.WithFence(t.Context(), old), setPrice, 30, 1); err != nil {
		t.Error(err)
	}
	if _, err := store.Issue(t.Context(), "books"); err != nil {
		t.Fatal(err)
	}
	_, err = s.db.Exec(sqlfence.WithFence(t.Context(), old), setPrice, 31, 1)
	harness.WantStale(t, err, old.Value, old.Value+1)
}

// While a write waits for a row, a newer token is issued. When the write gets the row, it is refused.
func TestRaceForARowRefusesTheStaleWrite(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	for _, w := range ways {
		s.Reset(t, 9)
		blocker, err := s.Plain.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := blocker.Exec("UPDATE books SET price = 20 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		if _, err := blocker.Exec("UPDATE fencing_tokens SET token = 10 WHERE name = 'books'"); err != nil {
			t.Fatal(err)
		}
		task := harness.Go(func() error { return w.run(harness.Holding(t, 9), s.db, setPrice, 30, 1) })
		waiting := s.Waiting(t, s.Plain)
		harness.Eventually(t, "the write waits", func() bool { waiting = s.Waiting(t, s.Plain); return waiting > 0 })
		if err := blocker.Commit(); err != nil {
			t.Fatal(err)
		}
		harness.WantStale(t, task.Wait(), 9, 10)
		if got := s.State(t, false); got != "1:20 2:10 3:10" {
			t.Errorf("%s left %s", w.name, got)
		}
	}
}

// Opening fails if an option or a registration is invalid.
func TestOpeningFailsForInvalidOptions(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	pool, err := pgxpool.New(t.Context(), s.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, opts := range [][]sqlfence.Option{
		{nil}, {sqlfence.WithDialect(sqlfence.MySQL)}, {sqlfence.WithTable("books"), sqlfence.WithTable("books")}, {sqlfence.WithTable("")},
	} {
		_, err := fencepgx.New(pool, opts...)
		harness.WantError(t, err, sqlfence.ErrInvalid)
	}
	_, err = fencepgx.New(nil)
	harness.WantError(t, err, sqlfence.ErrInvalid)

	db := s.open(t, func(*pgxpool.Config) {}, verify.OnConnect(), sqlfence.WithTable("boks", sqlfence.RowFence("fence_token")))
	_, err = db.Exec(t.Context(), "SELECT 1")
	var faults *verify.Error
	if !errors.As(err, &faults) {
		t.Errorf("a name that is misspelt: %v", err)
	}
	db = s.open(t, func(*pgxpool.Config) {}, verify.OnConnect(), sqlfence.WithDialect(sqlfence.Postgres), harness.Books(sqlfence.RowFence("fence_token")))
	if _, err := db.Exec(harness.Holding(t, 9), setPrice, 30, 1); err != nil {
		t.Error(err)
	}
}

// A connection is released once. A second release doesn't affect the connection's next user.
func TestReleasedTwice(t *testing.T) {
	s := newShopBy(t, sqlfence.RowFence("fence_token"), func(c *pgxpool.Config) { c.MaxConns = 1 })
	first, err := s.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first.Release()
	second, err := s.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	first.Release()
	if _, err := second.Exec(harness.Holding(t, 9), setPrice, 30, 1); err != nil || s.db.Stat().AcquiredConns() != 1 {
		t.Errorf("%d connections are out, %v", s.db.Stat().AcquiredConns(), err)
	}
	if err := second.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// Two databases on one pool keep their rules apart.
func TestTwoOnOnePool(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	pool, err := pgxpool.New(t.Context(), s.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	books, err := fencepgx.New(pool, harness.Books(sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	pens, err := fencepgx.New(pool, sqlfence.WithTable("pens"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err = books.Exec(t.Context(), "UPDATE books SET price = 1")
		harness.WantOnly(t, err, sqlfence.ErrNoFence)
		_, err = pens.Exec(t.Context(), "UPDATE pens SET price = 1")
		harness.WantOnly(t, err, sqlfence.ErrNoFence)
		if _, err = pens.Exec(t.Context(), "UPDATE books SET writer = 1"); err != nil {
			t.Error(err)
		}
		if _, err = books.Exec(t.Context(), "UPDATE pens SET price = 1"); err != nil {
			t.Error(err)
		}
	}
}
