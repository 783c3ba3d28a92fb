package harness

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"
)

// Patience is how long a test waits for what has to happen: far longer than it takes. A
// machine that is busy, and a server on it, may stand still for 20 s, more than once.
const Patience = 2 * time.Minute

// Eventually waits until seen returns true, and fails the test if it takes longer than Patience.
func Eventually(t testing.TB, what string, seen func() bool) {
	t.Helper()
	limit := time.After(Patience)
	// Most waits are short. The pauses grow, because a query in seen takes the time of a server that is busy.
	for pause := time.Millisecond; !seen(); pause = min(2*pause, 16*time.Millisecond) {
		select {
		case <-limit:
			t.Fatalf("not seen in %v: %s", Patience, what)
		case <-time.After(pause):
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

// WantBlocked waits until another session waits for a lock of the session pid. The test fails if done is closed first,
// because the statement then went on without waiting.
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

// Behind calls f, which has to wait for a lock of tx, then commits tx, and returns f's error.
func (s *Shop) Behind(t *testing.T, tx *sql.Tx, f func() error) error {
	t.Helper()
	session := s.Session(t, tx)
	waiting := Go(f)
	s.WantBlocked(t, session, waiting.Ended())
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return waiting.Wait()
}

// Begin begins a transaction, which is rolled back when the test ends, unless it has ended itself.
func Begin(ctx context.Context, t testing.TB, db interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// A Task is a function that runs in the background.
type Task struct {
	ended chan struct{}
	err   error
}

// Go calls f in the background.
func Go(f func() error) *Task {
	task := &Task{ended: make(chan struct{})}
	go func() {
		defer close(task.ended)
		task.err = f()
	}()
	return task
}

// Ended is closed when the function has returned.
func (task *Task) Ended() <-chan struct{} { return task.ended }

// Wait waits until the function has returned, and returns its error.
func (task *Task) Wait() error {
	<-task.ended
	return task.err
}
