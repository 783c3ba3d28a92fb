package errors_test

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A storm is many writers whose connections break and whose contexts end at any point. The test compares the writers'
// errors with the final rows.
type storm struct {
	mu   sync.Mutex
	told map[string]error // by the inserted word
}

func (s *storm) tell(word string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[word] = err
}

// check compares the errors with the rows. wasSent reports whether a write has reached the network.
func (s *storm) check(t *testing.T, db *sql.DB, wasSent func(word string) bool) {
	t.Helper()
	landed := make(map[string]bool)
	rows, err := db.Query("SELECT isbn FROM books WHERE isbn LIKE 'job%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var word string
		if err := rows.Scan(&word); err != nil {
			t.Fatal(err)
		}
		landed[word] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var applied, unknown, unknownLanded, failed int
	for word, err := range s.told {
		switch {
		case err == nil:
			if applied++; !landed[word] {
				t.Errorf("%s: called applied, but isn't", word)
			}
		case errors.Is(err, sqlfence.ErrUnknownOutcome):
			if unknown++; landed[word] {
				unknownLanded++
			}
			if !wasSent(word) {
				t.Errorf("%s: called unknown, but was never sent: %v", word, err)
			}
		default:
			if failed++; landed[word] {
				t.Errorf("%s: called failed, but has landed: %v", word, err)
			}
		}
	}
	if len(landed) > len(s.told) {
		t.Errorf("%d rows for %d writes", len(landed), len(s.told))
	}
	t.Logf("%d applied, %d unknown (%d of them landed), %d failed", applied, unknown, unknownLanded, failed)
	if applied == 0 || unknown == 0 {
		t.Error("too little has happened to show anything")
	}
}

// insertion returns a write of one row. A write that is sent by Query must not be cancelled, because database/sql
// returns the context's error for its rows, whatever the driver returns.
func insertion(id int, word string) harness.Write {
	return harness.Write{Name: "INSERT", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2)", Args: []any{id, word}}
}

// Writes and commits through PostgreSQL lose their connection or their context at any point. None that landed is
// reported as failed, none that was never sent is reported as ErrUnknownOutcome, and none is applied twice.
func TestStormOfLostConnections(t *testing.T) {
	harness.NeedPostgres(t)
	const writers = 4
	writes := 150
	if testing.Short() {
		writes = 15
	}
	for _, m := range tested() {
		t.Run(m.name, func(t *testing.T) {
			s := harness.NewShop(t, m.driver())
			s.Reset(t, 9)
			if !strings.Contains(s.Source, "sslmode=disable") {
				need.Missing(t, "postgres", "needs sslmode=disable in the DSN to read along")
			}
			name := crand.Text()
			b := newBreaker(t, s.Source)
			db := s.Fenced(t, b.dsn+m.params+"&application_name="+name, harness.Books(sqlfence.RowFence("fence_token")))
			db.SetMaxIdleConns(writers)
			st := &storm{told: make(map[string]error)}
			seed := harness.Seed(t)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(w)))
					for i := range writes {
						id := 1000 + w*writes + i
						word := fmt.Sprintf("job%dx", id)
						ctx, cancel := context.WithCancel(harness.Holding(t, 9))
						j := &job{fault: fault(random.IntN(int(faults))), commit: random.IntN(3) == 0, cancel: cancel}
						form := harness.Forms[random.IntN(len(harness.Forms))]
						if cancels := j.fault == cancelBefore || j.fault == cancelAfter; cancels && !j.commit {
							form = harness.Forms[random.IntN(4)] // of an Exec
						}
						b.expect(word, j)
						st.tell(word, insert(ctx, db, form, insertion(id, word), j.commit))
						cancel()
					}
				})
			}
			wg.Wait()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			harness.Eventually(t, "the end of the sessions", func() bool { return sessions(t, s, name) == 0 })
			st.check(t, s.Plain, b.wasSent)
		})
	}
}

// insert runs a write in autocommit or in a transaction.
func insert(ctx context.Context, db *sql.DB, f harness.Form, w harness.Write, inTx bool) error {
	if !inTx {
		_, err := f.Run(ctx, db, w)
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := f.Run(ctx, tx, w); err != nil {
		return err
	}
	return tx.Commit()
}

// On SQLite no connection breaks, so only contexts end.
func TestStormOfEndedContexts(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("see TestStormOfLostConnections")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		st := &storm{told: make(map[string]error)}
		unknown := 0
		for i := 0; i < 2000 || unknown == 0 && i < 50000; i++ {
			word := fmt.Sprintf("job%dx", 1000+i)
			ctx, cancel := context.WithCancel(harness.Holding(t, 9))
			done := make(chan struct{})
			go func() {
				for range rand.IntN(200) {
					runtime.Gosched()
				}
				cancel()
				close(done)
			}()
			err := insert(ctx, s.DB, harness.Forms[rand.IntN(4)], insertion(1000+i, word).As(b.Dialect), rand.IntN(3) == 0)
			if st.tell(word, err); errors.Is(err, sqlfence.ErrUnknownOutcome) {
				unknown++
			}
			<-done
		}
		st.check(t, s.Plain, func(string) bool { return true })
	})
}
