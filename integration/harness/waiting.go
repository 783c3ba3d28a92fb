package harness

import (
	"database/sql"
	"strings"
	"testing"
	"time"
)

// Eventually waits until seen returns true, and fails the test if it takes too long.
func Eventually(t testing.TB, what string, seen func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !seen() {
		select {
		case <-limit:
			t.Fatalf("not seen in 30 s: %s", what)
		case <-tick.C:
		}
	}
}

// Waiting returns how many sessions wait for a lock of a table, or of its rows, whoever has it.
func (b Base) Waiting(t testing.TB, db *sql.DB) int {
	t.Helper()
	return b.dialect(t).waiting(t, db)
}

// A Blocker is a transaction around the fence that holds the row lock, or the
// key, which the write under test needs.
type Blocker struct {
	Tx  *sql.Tx
	PID int // of its session
}

// Block begins a transaction in whose way the write w is.
func (s *Shop) Block(t *testing.T, w Write) *Blocker {
	t.Helper()
	tx, err := s.Plain.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // for a test that fails early
	b := &Blocker{Tx: tx}
	query := "SELECT id FROM books WHERE id = 1 FOR UPDATE"
	if strings.HasPrefix(w.Name, "insert") {
		query = "INSERT INTO books (id, isbn) VALUES (7, 'i7')"
	}
	if _, err := tx.Exec(query); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(s.dialect(t).session).Scan(&b.PID); err != nil {
		t.Fatal(err)
	}
	return b
}

// WantBlocked waits until somebody waits for a lock that the session pid holds.
// It fails the test if done is closed before, which means that nobody will.
func (s *Shop) WantBlocked(t *testing.T, pid int, done <-chan struct{}) {
	t.Helper()
	Eventually(t, "somebody waits for the lock", func() bool {
		select {
		case <-done:
			t.Error("went on without waiting for the lock")
			return true
		default:
		}
		return s.dialect(t).waiters(t, s.Plain, pid) > 0
	})
}
