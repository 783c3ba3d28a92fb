package lease

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fenced"
	facts "github.com/sqlfence/sqlfence/internal/session"
)

// sessions manages the session of a process's ephemeral leases: a connection with an advisory lock. When the session
// ends, the server drops the lock, and every other session sees that these leases are over. Leases are taken and
// extended on any connection.
type sessions struct {
	db        *sql.DB
	dialect   *dialect
	slot      chan struct{} // holds a value while no goroutine uses the fields below
	current   *session
	dedicated bool // no pooler hands a session to another client
}

type session struct {
	sessions *sessions
	conn     *sql.Conn
	id       int64 // number of the advisory lock
	unlock   statement
	users    int           // number of leases and attempts that use the session
	ended    chan struct{} // closed when users becomes 0

	mu     sync.Mutex
	leases map[*Lease]bool // leases that end with the session; nil after the session has ended
}

const (
	endSessionLimit = 5 * time.Second
	// closedInterval is how often a session checks whether its database was closed.
	closedInterval = time.Second
)

func newSessions(db *sql.DB, d *dialect) *sessions {
	s := &sessions{db: db, dialect: d, slot: make(chan struct{}, 1)}
	s.slot <- struct{}{}
	return s
}

// enter returns the session, and opens it if it isn't open. It returns nil if the database can't see a session end. The
// caller must call leave once for each call of enter that returned a session.
func (s *sessions) enter(ctx context.Context) (*session, error) {
	select {
	case <-s.slot:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.slot <- struct{}{} }()
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
	if s.dialect.session == nil {
		return nil, nil
	}
	id := rand.Int64()
	lock, unlock := s.dialect.session(id)
	if s.db.Stats().MaxOpenConnections == 1 {
		return nil, errSingle
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("a connection for the session of ephemeral leases: %w", err)
	}
	opened := &session{sessions: s, conn: conn, id: id, unlock: unlock, ended: make(chan struct{}),
		leases: make(map[*Lease]bool)}
	err = findPeers(ctx, conn, s.dialect.server)
	if err == nil {
		err = s.probe(ctx, conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if err := queryOnce(ctx, conn, ignore, lock); err != nil {
		opened.discard()
		return nil, err
	}
	go opened.endWithDatabase()
	return opened, nil
}

// endWithDatabase ends the session when its database is closed, because package sql closes only idle connections.
func (s *session) endWithDatabase() {
	tick := time.NewTicker(closedInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-tick.C:
			if isShut(s.sessions.db) {
				s.endLeases()
				s.discard()
				return
			}
		}
	}
}

// isShut reports whether db was closed, without taking a connection.
func isShut(db *sql.DB) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	conn, err := db.Conn(ctx)
	if err == nil {
		_ = conn.Close()
		return false
	}
	return dberr.IsClosed(err)
}

// endLeases ends the session's leases before other sessions can see the end of the session.
func (s *session) endLeases() {
	s.mu.Lock()
	ending := s.leases
	s.leases = nil
	s.mu.Unlock()
	for l := range ending {
		l.lose("the database was closed", nil)
	}
}

// stands makes the lease l end when the session ends. It does nothing if the session is nil.
func (s *session) stands(l *Lease) {
	if s == nil {
		return
	}
	s.mu.Lock()
	over := s.leases == nil
	if !over {
		s.leases[l] = true
	}
	s.mu.Unlock()
	if over {
		l.lose("the database was closed", nil)
	}
}

func (s *session) forget(l *Lease) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, l)
}

// findPeers returns [ErrNoSessions] if other servers, which don't see this server's sessions, write to the database.
func findPeers(ctx context.Context, conn *sql.Conn, d *facts.Dialect) error {
	ask := func(ctx context.Context, query string) ([][]string, error) { return fenced.Texts(ctx, conn, query) }
	server, err := facts.QueryServer(ctx, d, ask)
	if server.Apart != "" || server.LocksAlone {
		return errPeers
	}
	return err
}

const probeRounds = 6

// probe returns [ErrNoSessions] if a pooler hands the session of conn to other clients, by giving each statement
// outside of a transaction any free session. probe marks the session, and looks for the mark several times. If there
// are many clients, conn soon gets another session, without the mark; if there are few, a second connection gets the
// session with the mark. If probe finds no pooler although there is one, taking a lease finds it.
func (s *sessions) probe(ctx context.Context, conn *sql.Conn) error {
	if s.dedicated || s.dialect.identity == nil {
		return nil
	}
	set, get := s.dialect.identity(newLockID())
	if err := queryOnce(ctx, conn, ignore, set); err != nil {
		return err
	}
	for range probeRounds {
		if err := s.probeOnce(ctx, conn, get); err != nil {
			return err
		}
	}
	s.dedicated = true
	return nil
}

func (s *sessions) probeOnce(ctx context.Context, conn *sql.Conn, get statement) error {
	marked := func(db querier) (found bool, err error) {
		err = queryOnce(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&found) }, get)
		return found, err
	}
	other, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("a connection besides the session of ephemeral leases: %w", err)
	}
	defer other.Close()
	if found, err := marked(other); err != nil || found {
		return cmp.Or(err, errPooled)
	}
	tx, err := other.BeginTx(ctx, nil) // not in the mode statement, where the first look has sufficed
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if found, err := marked(tx); err != nil || found {
		return cmp.Or(err, errPooled)
	}
	if found, err := marked(conn); err != nil || !found {
		return cmp.Or(err, errPooled)
	}
	return nil
}

// number returns the session's number for the row of a lease, or NULL if the session is nil.
func (s *session) number() sql.NullInt64 {
	if s == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: s.id, Valid: true}
}

// leave gives up one use of the session, and ends the session after its last use. It does nothing if the session is
// nil.
func (s *session) leave() {
	if s == nil {
		return
	}
	<-s.sessions.slot
	defer func() { s.sessions.slot <- struct{}{} }()
	s.users--
	if s.users > 0 {
		return
	}
	if s.sessions.current == s {
		s.sessions.current = nil
	}
	close(s.ended)
	ctx, cancel := context.WithTimeout(context.Background(), endSessionLimit)
	defer cancel()
	var unlocked bool
	err := queryOnce(ctx, s.conn, func(rows *sql.Rows) error { return rows.Scan(&unlocked) }, s.unlock)
	if err != nil || !unlocked {
		s.discard()
		return
	}
	_ = s.conn.Close() // gives it back to the pool
}

// lost makes the next call of enter open another session.
func (s *session) lost() {
	<-s.sessions.slot
	if s.sessions.current == s {
		s.sessions.current = nil
	}
	s.sessions.slot <- struct{}{}
}

// discard closes the session's connection instead of returning it to the pool, because the connection may still have
// the advisory lock.
func (s *session) discard() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}
