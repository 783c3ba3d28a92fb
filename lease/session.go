package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"time"
)

// A session stands for the holder of ephemeral leases: a connection of the pool
// that holds an advisory lock. When it ends, for whatever reason, the server
// drops the lock, and everybody can see that those leases are dead. The lock is
// the session's own, so leases are taken and extended on any connection.
type session struct {
	db      *sql.DB
	turn    chan struct{} // holds a value while current is free to be used
	current *heldSession
}

type heldSession struct {
	session *session
	conn    *sql.Conn
	id      int64 // of the advisory lock
	users   int
}

const endSessionLimit = 5 * time.Second

// enter returns the session, after opening it if there is none. Each call needs
// one of leave.
func (s *session) enter(ctx context.Context) (*heldSession, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	if s.current == nil {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		h := &heldSession{session: s, conn: conn, id: rand.Int64()}
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1::bigint)", h.id); err != nil {
			h.discard()
			return nil, err
		}
		s.current = h
	}
	s.current.users++
	return s.current, nil
}

// leave ends the session with its last user. A nil one is that of a lease that
// needs none.
func (h *heldSession) leave() {
	if h == nil {
		return
	}
	<-h.session.turn
	defer func() { h.session.turn <- struct{}{} }()
	h.users--
	if h.users > 0 {
		return
	}
	if h.session.current == h {
		h.session.current = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), endSessionLimit)
	defer cancel()
	var unlocked bool
	err := h.conn.QueryRowContext(ctx, "SELECT pg_advisory_unlock($1::bigint)", h.id).Scan(&unlocked)
	if err != nil || !unlocked {
		h.discard()
		return
	}
	_ = h.conn.Close() // gives it back to the pool
}

// lost has the next call of enter open another session.
func (h *heldSession) lost() {
	<-h.session.turn
	if h.session.current == h {
		h.session.current = nil
	}
	h.session.turn <- struct{}{}
}

// discard keeps a connection that may hold the lock out of the pool.
func (h *heldSession) discard() {
	_ = h.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = h.conn.Close()
}
