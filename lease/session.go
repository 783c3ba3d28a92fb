package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"time"
)

// sessions keeps the session that stands for the holder of ephemeral leases: a
// connection of the pool that holds an advisory lock. When it ends, for whatever reason,
// the server drops the lock, and everybody can see that those leases are dead. The lock
// is the session's own, so leases are taken and extended on any connection.
type sessions struct {
	db      *sql.DB
	dialect dialect
	turn    chan struct{} // holds a value while current is free to be used
	current *session
}

type session struct {
	sessions *sessions
	conn     *sql.Conn
	id       int64 // of the advisory lock
	unlock   statement
	users    int
}

const endSessionLimit = 5 * time.Second

func newSessions(db *sql.DB, d dialect) *sessions {
	s := &sessions{db: db, dialect: d, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// enter returns the session, after opening it if there is none; nil if the database
// can't see a session end. Each call needs one of leave.
func (s *sessions) enter(ctx context.Context) (*session, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	if s.current == nil {
		opened, err := s.open(ctx)
		if opened == nil || err != nil {
			return nil, err
		}
		s.current = opened
	}
	s.current.users++
	return s.current, nil
}

func (s *sessions) open(ctx context.Context) (*session, error) {
	id := rand.Int64()
	lock, unlock, ok := s.dialect.session(id)
	if !ok {
		return nil, nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	opened := &session{sessions: s, conn: conn, id: id, unlock: unlock}
	if err := findPeers(ctx, conn, s.dialect.text().FindPeers()); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, lock.text, lock.args...); err != nil {
		opened.discard()
		return nil, err
	}
	return opened, nil
}

// findPeers returns [ErrNoSessions] if other servers write to the same database, which don't see
// this one's sessions.
func findPeers(ctx context.Context, conn *sql.Conn, query string) error {
	if query == "" {
		return nil
	}
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		return ErrNoSessions
	}
	return rows.Err()
}

// number is what a row of the session's leases holds: NULL without a session.
func (s *session) number() sql.NullInt64 {
	if s == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: s.id, Valid: true}
}

// leave ends the session with its last user. A nil one is that of a lease that
// needs none.
func (s *session) leave() {
	if s == nil {
		return
	}
	<-s.sessions.turn
	defer func() { s.sessions.turn <- struct{}{} }()
	s.users--
	if s.users > 0 {
		return
	}
	if s.sessions.current == s {
		s.sessions.current = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), endSessionLimit)
	defer cancel()
	var unlocked bool
	err := s.conn.QueryRowContext(ctx, s.unlock.text, s.unlock.args...).Scan(&unlocked)
	if err != nil || !unlocked {
		s.discard()
		return
	}
	_ = s.conn.Close() // gives it back to the pool
}

// lost has the next call of enter open another session.
func (s *session) lost() {
	<-s.sessions.turn
	if s.sessions.current == s {
		s.sessions.current = nil
	}
	s.sessions.turn <- struct{}{}
}

// discard keeps a connection that may hold the lock out of the pool.
func (s *session) discard() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}
