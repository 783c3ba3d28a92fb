package concurrency_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// G1 and G2 under load: writers with older and newer tokens compete, and the test checks a history that the database
// has recorded.

const (
	stressWriters = 8
	stressWrites  = 60 // of each writer
)

// stress has each writer write with and without a transaction, and returns how many writes were stale.
func stress(t *testing.T, s *harness.Shop, write func(r harness.Runner, random *rand.Rand) error) (stale int64) {
	t.Helper()
	if s.Dialect == sqlfence.SQLite {
		s.DB.SetMaxOpenConns(4)
	}
	var ok, older atomic.Int64
	var wg sync.WaitGroup
	for writer := range stressWriters {
		random := rand.New(rand.NewPCG(1, uint64(writer)))
		wg.Go(func() {
			for i := range stressWrites {
				var err error
				if i%2 == 0 {
					err = write(s.DB, random)
				} else {
					err = s.InTx(t.Context(), func(tx *sql.Tx) error { return write(tx, random) })
				}
				switch {
				case err == nil:
					ok.Add(1)
				case !harness.RefusedUnderLoad(err):
					t.Errorf("unexpected: %v", err)
				case errors.Is(err, sqlfence.ErrStale):
					older.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if ok.Load() == 0 {
		t.Error("no write succeeded")
	}
	return older.Load()
}

// audit makes the database note each change of a book's writer.
func audit(t *testing.T, s *harness.Shop) {
	t.Helper()
	s.Exec(t, "CREATE TABLE audit (id integer, earlier bigint, later bigint)")
	if s.Dialect == sqlfence.SQLite {
		s.Exec(t, "CREATE TRIGGER audit AFTER UPDATE ON books BEGIN INSERT INTO audit VALUES (old.id, old.writer, new.writer); END")
		return
	}
	if s.Dialect == sqlfence.MySQL {
		s.Exec(t, "CREATE TRIGGER audit AFTER UPDATE ON books FOR EACH ROW INSERT INTO audit VALUES (old.id, old.writer, new.writer)")
		return
	}
	s.Exec(t, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO audit VALUES (old.id, old.writer, new.writer); RETURN NULL; END $$`)
	s.Exec(t, "CREATE TRIGGER audit AFTER UPDATE ON books FOR EACH ROW EXECUTE FUNCTION note()")
}

// Each writer stores its token in the column writer, which the fence doesn't know. In each row this value must never
// fall, and a deleted row's token must not be newer than the deleter's.
func TestG1RowFenceUnderLoad(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		sh.Reset(t, 0)
		audit(t, sh)
		var newest atomic.Int64
		stale := stress(t, sh, func(r harness.Runner, random *rand.Rand) error {
			token := newest.Add(1) + random.Int64N(20)
			ctx := harness.Holding(t, token)
			id := 1 + random.IntN(3)
			var err error
			switch random.IntN(5) {
			case 0:
				_, err = r.ExecContext(ctx, "UPDATE books SET price = price + 1, writer = $1", token)
			case 1:
				_, err = r.ExecContext(ctx, "INSERT INTO books (id, writer) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET writer = excluded.writer", id, token)
			case 2:
				if !s.Returns() {
					if _, err = r.ExecContext(ctx, "DELETE FROM books WHERE id = $1 AND writer <= $2", id, token); err == nil {
						_, err = r.ExecContext(ctx, "INSERT INTO books (id, writer) VALUES ($1, $2)", id, token)
					}
					return err
				}
				var writer int64
				err = r.QueryRowContext(ctx, "DELETE FROM books WHERE id = $1 RETURNING writer", id).Scan(&writer)
				if err == nil {
					if writer > token {
						t.Errorf("token %d deleted what %d had written", token, writer)
					}
					_, err = r.ExecContext(ctx, "INSERT INTO books (id, writer) VALUES ($1, $2)", id, token)
				} else if errors.Is(err, sql.ErrNoRows) {
					err = nil
				}
			default:
				_, err = r.ExecContext(ctx, "UPDATE books SET price = price + 1, writer = $1 WHERE id = $2", token, id)
			}
			return err
		})
		if stale == 0 {
			t.Error("nobody was stale: the test tests nothing")
		}
		var changes, fallen, unequal int
		if err := sh.Plain.QueryRow("SELECT count(*), COALESCE(sum(CASE WHEN later < earlier THEN 1 ELSE 0 END), 0) FROM audit").Scan(&changes, &fallen); err != nil {
			t.Fatal(err)
		}
		if changes == 0 || fallen != 0 {
			t.Errorf("of %d changes %d were by an older token than the one before", changes, fallen)
		}
		if err := sh.Plain.QueryRow("SELECT count(*) FROM books WHERE writer <> COALESCE(fence_token, 0)").Scan(&unequal); err != nil || unequal != 0 {
			t.Errorf("%d books have another mark than their writer's token, %v", unequal, err)
		}
	})
}

// The holder of token n only writes to book n. So once token n+1 has been issued, the books up to n must not change.
// The issuer reads them at once, and compares them at the end.
func TestG2LedgerUnderLoad(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		var newest atomic.Int64
		type look struct{ token, books, prices int64 }
		var mu sync.Mutex
		var history []look
		older := func(ctx context.Context, token int64) (l look, err error) {
			l.token = token
			err = sh.Plain.QueryRowContext(ctx, "SELECT count(*), COALESCE(sum(price), 0) FROM books WHERE id < $1", token).Scan(&l.books, &l.prices)
			return l, err
		}
		issue := func() {
			token, err := sh.Issue(t.Context())
			if err != nil {
				t.Errorf("issue: %v", err)
				return
			}
			l, err := older(t.Context(), token)
			if err != nil {
				t.Errorf("look: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			history = append(history, l)
			newest.Store(max(newest.Load(), token))
		}
		issue()
		stale := stress(t, sh, func(r harness.Runner, random *rand.Rand) error {
			token := max(1, newest.Load()-random.Int64N(2))
			ctx := harness.Holding(t, token)
			price := 1 + random.IntN(1000)
			if _, alone := r.(*sql.DB); alone && random.IntN(3) == 0 {
				issue() // so that tokens become stale while their holders write
			}
			var err error
			switch random.IntN(4) {
			case 0:
				_, err = r.ExecContext(ctx, "UPDATE books SET price = price + $1 WHERE id = $2", price, token)
			case 1:
				_, err = r.ExecContext(ctx, "DELETE FROM books WHERE id = $1", token)
				if err == nil {
					_, err = r.ExecContext(ctx, "INSERT INTO books (id, price) VALUES ($1, $2)", token, price)
				}
			default:
				_, err = r.ExecContext(ctx, "INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = books.price + excluded.price", token, price)
			}
			return err
		})
		if stale == 0 {
			t.Error("nobody was stale: the test tests nothing")
		}
		for _, then := range history {
			now, err := older(t.Context(), then.token)
			if err != nil {
				t.Fatal(err)
			}
			if now != then {
				t.Errorf("after token %d was issued, older ones wrote: %+v became %+v", then.token, then, now)
			}
		}
	})
}
