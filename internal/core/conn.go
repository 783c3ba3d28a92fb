package core

import (
	"context"
	"database/sql/driver"
	"sync"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Link is a connection as an adapter has it: the base driver's beneath database/sql, or pgx's own. Like the
// connection, only one goroutine at a time uses it.
type Link interface {
	// Query and Exec send statements without arguments for this package.
	session.Conn

	// Rewrite runs the query rewriter among a statement's arguments: see [basedriver.Options.Rewrite].
	Rewrite(
		ctx context.Context, o basedriver.Options, query string, args []driver.NamedValue,
	) (to basedriver.Rewritten, refused string, err error)

	// Misplaces returns why the driver may write an argument into the text where it ends a string, so that a statement
	// stands behind it that no plan has seen; empty if it doesn't.
	Misplaces(r Request, rows bool) string

	// Keeps reports whether the adapter may keep a statement prepared, for rows or without.
	Keeps(query string, p *rewrite.Plan, rows bool) bool

	// Follow drops what the adapter keeps prepared, if the statement, which is about to be sent, may change its
	// meaning.
	Follow(query string)

	// Follows reports whether Follow may do so.
	Follows(query string) bool

	// Close ends the session.
	Close() error

	// Alive reports whether the connection can be used, as far as can be known at little cost; ctx ends the look.
	Alive(ctx context.Context) bool
	// Touch notes that the server has just answered.
	Touch()
	// Open and Closed report what the driver knows of the connection; both are false where it knows nothing.
	Open() bool
	Closed() bool
	// Invalid reports whether the driver's Validator rejects the connection.
	Invalid() bool
}

// A Conn is the state that a connection and its statements share. Like a connection,
// only one goroutine at a time uses it.
type Conn struct {
	settings *Settings
	link     Link
	session  session.Session
	found    *Found // in the connection's database

	executing Execution           // while it is sent
	spare     []driver.NamedValue // room for the arguments of the next execution
	supplied  [1]Token            // room for what a source gives an Exec

	transaction
	pending  bool  // guarded statements may have been sent outside of one, and a COMMIT may be sent
	finished bool  // the connection must not be used again, which the pool may not know
	closed   bool  // the link is closed, although the pool has not asked for that
	reported error // the last error that an event was reported of
}

// A Found is what the connections of one database have found in it. The zero value has found nothing. It is safe for
// concurrent use.
type Found struct {
	session.Database
	calling atomic.Pointer[calling]

	begin sync.Once
	check Check
}

// Check runs the options' check of a new connection, if they have one. A connection that it refuses has to be closed.
func (f *Found) Check(ctx context.Context, s *Settings, l Link) error {
	if s.onConnect == nil {
		return nil
	}
	f.begin.Do(func() { f.check = s.onConnect() })
	return f.check(ctx, s, l)
}

// NewConn returns the state of a connection. found is of its database.
func NewConn(s *Settings, l Link, found *Found) *Conn {
	return &Conn{settings: s, link: l, found: found,
		session: session.New(s.profile.Session, &found.Database, &s.wanted)}
}

// Settings returns those of its database.
func (s *Conn) Settings() *Settings { return s.settings }

// Facts returns what the connection knows of its server and session.
func (s *Conn) Facts() session.Facts { return s.session.Facts }

// IsClosed reports whether the link was closed because the session could not go on.
func (s *Conn) IsClosed() bool { return s.closed }

// Finished reports whether the connection must not be used again: it is lost, or its session was ended. An error that
// hides driver.ErrBadConn from the pool does not say so. An adapter sends nothing on a finished connection, and
// returns driver.ErrBadConn.
func (s *Conn) Finished() bool { return s.finished }

// RawAccess notes that the link was handed out, to do with it what isn't guarded.
func (s *Conn) RawAccess() {
	s.settings.report(context.Background(), Event{Kind: RawAccess})
	s.session.Changed()
}

// takeBack takes a list of arguments that was sent, for the next execution.
func (s *Conn) takeBack(args []driver.NamedValue) {
	clear(args)
	s.spare = args[:0]
}

// room returns an empty list with room for n arguments.
func (s *Conn) room(n int) []driver.NamedValue {
	if room := s.spare; cap(room) >= n {
		s.spare = nil
		return room
	}
	return make([]driver.NamedValue, 0, n)
}

// follows reports whether each execution of a statement that isn't guarded has to be
// looked at.
func (s *Conn) follows(query string) bool {
	return s.session.Follows(query) || len(s.settings.tables) > 0 && mayChangeTx(query) || s.changesTx(query) ||
		s.inTx && s.settings.profile.Answers.CommitsAfter.Is() || s.link.Follows(query) || s.mayUnlock(query) ||
		s.settings.profile.Answers.EndsTx(session.FirstWord(query), query)
}

// ReturnsCounts reports whether the session has each write return a row: the driver would leave a prepared one at
// the first of them, with its transaction open. In doubt it does.
func (s *Conn) ReturnsCounts(ctx context.Context) bool {
	err := s.know(ctx, session.Moment{InTx: s.inTx, Settings: true, Counts: true})
	return err != nil || s.session.ReturnsCounts
}

// follow forgets what a statement that is about to be sent may change: where the session finds names, what it has
// set, and what its kept statements mean. sqlfence's own statements leave names where they are.
func (s *Conn) follow(ctx context.Context, query string) {
	s.link.Follow(query)
	switch {
	case !trusted.Is(ctx, query):
		s.session.Follow(ctx, (*asking)(s), query)
	case session.Changes(query):
		s.session.Changed()
	}
}

// Follow is follow for a text that an adapter sends beside the application's statements.
func (s *Conn) Follow(ctx context.Context, query string) { s.follow(ctx, query) }

// exec executes a statement of this package's own.
func (s *Conn) exec(ctx context.Context, query string) error {
	return (*asking)(s).Exec(ctx, query)
}
