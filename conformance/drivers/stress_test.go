package drivers

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// G1 and G2 under load: writers with older and newer tokens get in each other's
// way, and a history that the database itself has kept is checked afterwards.

const (
	stressWriters = 8
	stressWrites  = 60 // of each writer
)

// refusedUnderLoad holds for what a write may come to, besides success, when
// others write at the same time. None of these has changed anything.
func refusedUnderLoad(err error) bool {
	switch sqlCode(err) {
	case "40001", "40P01", "23505": // serialization, deadlock, somebody else's INSERT
		return true
	case "":
		return errors.Is(err, sqlfence.ErrStale) || strings.Contains(err.Error(), "database is locked") || // SQLite's snapshot is too old
			strings.Contains(err.Error(), "UNIQUE constraint")
	}
	return errors.Is(err, sqlfence.ErrStale)
}

// stress lets the writers write, each once with and once without a transaction,
// and returns how many writes succeeded and how many were stale.
func (s *shop) stress(t *testing.T, write func(r runner, random *rand.Rand) error) (succeeded, stale int64) {
	t.Helper()
	if s.dialect == sqlfence.SQLite {
		s.db.SetMaxOpenConns(4)
	}
	var ok, older atomic.Int64
	var wg sync.WaitGroup
	for writer := range stressWriters {
		random := rand.New(rand.NewPCG(1, uint64(writer)))
		wg.Go(func() {
			for i := range stressWrites {
				var err error
				if i%2 == 0 {
					err = write(s.db, random)
				} else {
					err = s.inTx(t.Context(), func(tx *sql.Tx) error { return write(tx, random) })
				}
				switch {
				case err == nil:
					ok.Add(1)
				case !refusedUnderLoad(err):
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
	return ok.Load(), older.Load()
}

// audit makes the database note each change of a book's writer.
func (s *shop) audit(t *testing.T) {
	t.Helper()
	s.exec(t, "CREATE TABLE audit (id integer, earlier bigint, later bigint)")
	if s.dialect == sqlfence.SQLite {
		s.exec(t, "CREATE TRIGGER audit AFTER UPDATE ON books BEGIN INSERT INTO audit VALUES (old.id, old.writer, new.writer); END")
		return
	}
	s.exec(t, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO audit VALUES (old.id, old.writer, new.writer); RETURN NULL; END $$`)
	s.exec(t, "CREATE TRIGGER audit AFTER UPDATE ON books FOR EACH ROW EXECUTE FUNCTION note()")
}

// Each writer puts its token into the column writer, which the fence knows
// nothing of: it never falls while the row lives, and who deletes a row has a
// token that is no older.
func TestG1RowFenceUnderLoad(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		sh.reset(t, 0)
		sh.audit(t)
		var newest atomic.Int64
		_, stale := sh.stress(t, func(r runner, random *rand.Rand) error {
			token := newest.Add(1) + random.Int64N(20)
			ctx := holding(t, token)
			id := 1 + random.IntN(3)
			var err error
			switch random.IntN(5) {
			case 0:
				_, err = r.ExecContext(ctx, "UPDATE books SET price = price + 1, writer = $1", token)
			case 1:
				_, err = r.ExecContext(ctx, "INSERT INTO books (id, writer) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET writer = excluded.writer", id, token)
			case 2:
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
		if err := sh.plain.QueryRow("SELECT count(*), COALESCE(sum(CASE WHEN later < earlier THEN 1 ELSE 0 END), 0) FROM audit").Scan(&changes, &fallen); err != nil {
			t.Fatal(err)
		}
		if changes == 0 || fallen != 0 {
			t.Errorf("of %d changes %d were by an older token than the one before", changes, fallen)
		}
		if err := sh.plain.QueryRow("SELECT count(*) FROM books WHERE writer <> COALESCE(fence_token, 0)").Scan(&unequal); err != nil || unequal != 0 {
			t.Errorf("%d books have another mark than their writer's token, %v", unequal, err)
		}
	})
}

// A holder of token n only ever touches book n. So once n+1 has been issued, the
// books up to n stay as they are; whoever issued it looks at once, and compares
// at the end.
func TestG2LedgerUnderLoad(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		var newest atomic.Int64
		type look struct{ token, books, prices int64 }
		var mu sync.Mutex
		var history []look
		older := func(ctx context.Context, token int64) (l look, err error) {
			l.token = token
			err = sh.plain.QueryRowContext(ctx, "SELECT count(*), COALESCE(sum(price), 0) FROM books WHERE id < $1", token).Scan(&l.books, &l.prices)
			return l, err
		}
		issue := func() {
			token, err := sh.issue(t.Context())
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
		_, stale := sh.stress(t, func(r runner, random *rand.Rand) error {
			token := max(1, newest.Load()-random.Int64N(2))
			ctx := holding(t, token)
			price := 1 + random.IntN(1000)
			if _, alone := r.(*sql.DB); alone && random.IntN(3) == 0 {
				issue() // so that tokens become stale under the hands of their holders
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
