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

// A ConnAdapter is an adapter's connection: the base driver's connection below database/sql, or pgx's own. Only one
// goroutine may use a ConnAdapter at a time.
type ConnAdapter interface {
	// Query and Exec send this package's own statements, without arguments.
	session.Conn

	// Rewrite runs the query rewriter among a statement's arguments: see [basedriver.Options.Rewrite].
	Rewrite(
		ctx context.Context, o basedriver.Options, query string, args []driver.NamedValue,
	) (to basedriver.Rewritten, refused string, err error)

	// Misplaces returns a reason if the driver may write an argument into the SQL string where the argument could end a
	// string literal and begin an unplanned statement; else the empty string. rows: the statement is a Query.
	Misplaces(r Request, rows bool) string

	// Keeps reports whether the adapter may cache query's prepared statement. rows: the statement is a Query.
	Keeps(query string, p *rewrite.Plan, rows bool) bool

	// Follow drops the adapter's cached prepared statements if query, which is about to be sent, may change their
	// meaning.
	Follow(query string)

	// Follows reports whether Follow may drop statements for query.
	Follows(query string) bool

	// Close ends the session.
	Close() error

	// Alive reports whether the connection is usable, as far as a cheap check shows. ctx cancels the check.
	Alive(ctx context.Context) bool
	// Touch records that the server has just responded.
	Touch()
	// Open and Closed report the connection's state. Both are false if the driver doesn't know it.
	Open() bool
	Closed() bool
	// Invalid reports whether the driver's Validator rejects the connection.
	Invalid() bool
}

// A Conn is the state that a connection and its statements share. Only one goroutine may use a Conn at a time.
type Conn struct {
	settings *Settings
	adapter  ConnAdapter
	session  session.Session
	found    *Found // cached facts about the connection's database

	executing Execution           // preallocated; its conn is nil while it is unused
	spare     []driver.NamedValue // reusable list for the arguments of the next execution
	supplied  [1]Token            // reusable list for the token that a source gives an Exec

	transaction
	// pending is set if guarded statements were sent outside of a known transaction. A COMMIT may still decide about
	// them, because a statement may have begun a transaction, or autocommit may be off.
	pending  bool
	finished bool  // the connection must not be used again; the pool may not know that
	closed   bool  // sqlfence has closed the connection; the pool hasn't asked for this
	reported error // the last error that was reported in an event
}

// A Found caches facts about one database for all of its connections. The zero value is empty. A Found is safe for
// concurrent use.
type Found struct {
	session.Database
	calling atomic.Pointer[calling]

	begin sync.Once
	check Check
}

// Check runs the check of a new connection that the options may have, such as verify.OnConnect. After an error the
// caller must close the connection.
func (f *Found) Check(ctx context.Context, s *Settings, l ConnAdapter) error {
	if s.onConnect == nil {
		return nil
	}
	f.begin.Do(func() { f.check = s.onConnect() })
	return f.check(ctx, s, l)
}

// NewConn returns the state of a connection. found belongs to the connection's database.
func NewConn(s *Settings, l ConnAdapter, found *Found) *Conn {
	return &Conn{settings: s, adapter: l, found: found,
		session: session.New(s.profile.Session, &found.Database, &s.wanted)}
}

// Settings returns the settings of the connection's database.
func (s *Conn) Settings() *Settings { return s.settings }

// Capabilities returns the known capabilities of the server and settings of the session.
func (s *Conn) Capabilities() session.Capabilities { return s.session.Capabilities }

// IsClosed reports whether sqlfence has closed the connection because its session couldn't continue.
func (s *Conn) IsClosed() bool { return s.closed }

// Finished reports whether the connection must not be used again, because it is lost or its session was ended. The pool
// doesn't know that if an error hides driver.ErrBadConn. An adapter must send nothing on a finished connection, and
// return driver.ErrBadConn.
func (s *Conn) Finished() bool { return s.finished }

// RawAccess records that the application got the base driver's connection, with which it may change the session.
func (s *Conn) RawAccess() {
	s.settings.report(context.Background(), Event{Kind: RawAccess})
	s.session.Changed()
}

// takeBack keeps a sent argument list for the next execution.
func (s *Conn) takeBack(args []driver.NamedValue) {
	clear(args)
	s.spare = args[:0]
}

// argBuffer returns an empty list with room for n arguments.
func (s *Conn) argBuffer(n int) []driver.NamedValue {
	if room := s.spare; cap(room) >= n {
		s.spare = nil
		return room
	}
	return make([]driver.NamedValue, 0, n)
}

// follows reports whether each execution of an unguarded statement must be inspected, because the statement, or its
// error, may change the session or a transaction. database/sql may execute a statement in transactions that begin after
// its preparation.
func (s *Conn) follows(query string) bool {
	return s.session.Follows(query) || len(s.settings.tables) > 0 && mayChangeTx(query) || s.changesTx(query) ||
		s.settings.profile.Errors.CommitsAfter.Is() || s.adapter.Follows(query) || s.mayUnlock(query) ||
		s.settings.profile.Errors.EndsTx(session.FirstKeyword(query), query)
}

// ReturnsCounts reports whether the session makes each write return a row (PRAGMA count_changes). The driver would stop
// a cached write at this row, uncommitted, and the database would stay locked. In doubt the result is true.
func (s *Conn) ReturnsCounts(ctx context.Context) bool {
	err := s.know(ctx, session.Moment{InTx: s.inTx, Settings: true, Counts: true})
	return err != nil || s.session.ReturnsCounts
}

// Follow forgets the facts that query, which is about to be sent, may change: the session's search path and settings,
// and the meaning of cached prepared statements. sqlfence's own statements don't change the search path.
func (s *Conn) Follow(ctx context.Context, query string) {
	s.adapter.Follow(query)
	switch {
	case !trusted.Is(ctx, query):
		s.session.Follow(ctx, (*queryable)(s), query)
	case session.Changes(query):
		s.session.Changed()
	}
}

// exec executes one of this package's own statements.
func (s *Conn) exec(ctx context.Context, query string) error {
	return (*queryable)(s).Exec(ctx, query)
}
