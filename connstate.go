package sqlfence

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A connState is the state that a connection and its statements share. Like a connection,
// only one goroutine at a time uses it.
type connState struct {
	settings *settings
	base     driver.Conn
	sqlmw    *interceptor
	liveness basedriver.Liveness
	cache    stmtCache
	session  session.Session
	found    *found // in the connection's database

	executing execution // an Exec, while it is sent

	inTx       bool  // a transaction is open, as far as is known
	guardedTx  bool  // it has guarded statements
	pending    bool  // guarded statements were sent outside of one, and a COMMIT may be sent
	rolledBack error // why the server has rolled it back, as far as is known
	lost       bool  // no connection any more, which database/sql may not know
	closed     bool  // base is, before database/sql has asked for it

	txContext txContext // of the transaction that BeginTx began
}

// A found is what the connections of one database have found in it. It is safe for concurrent use.
type found struct {
	session.Database
	calling atomic.Pointer[callingRewriter]
}

func newConnState(s *settings, base driver.Conn, f *found) (*connState, error) {
	state := &connState{settings: s, base: base, found: f, cache: newStmtCache(s, base)}
	if s.profile.remote() {
		state.liveness = basedriver.NewLiveness(base)
	}
	state.session = session.New(s.profile.session(), &f.Database, &s.wanted)
	if !state.cache.rows {
		state.cache.none = state.returnsCounts
	}
	var err error
	state.sqlmw, err = newInterceptor(state)
	return state, err
}

// follows reports whether each execution of a statement that isn't guarded has to be
// looked at.
func (s *connState) follows(query string) bool {
	return s.session.Follows(query) || len(s.settings.tables) > 0 && mayCommit(query) || s.changesTx(query) ||
		s.inTx && s.settings.profile.goesOnAfterRollback() || s.cache.size > 0 && session.Changes(query)
}

// returnsCounts reports whether the session has each write return a row: the driver would leave a prepared one at
// the first of them, with its transaction open. In doubt it does.
func (s *connState) returnsCounts(ctx context.Context) bool {
	err := s.know(ctx, session.Moment{InTx: s.inTx, Settings: true, Counts: true})
	return err != nil || s.session.ReturnsCounts
}

// follow forgets what a statement that is about to be sent may change: where the session finds names, what it has
// set, and what its kept statements mean. sqlfence's own statements leave names where they are.
func (s *connState) follow(ctx context.Context, query string) {
	s.cache.follow(query)
	switch {
	case !trusted.Is(ctx, query):
		s.session.Follow(ctx, (*asking)(s), query)
	case session.Changes(query):
		s.session.Changed()
	}
}

// exec executes a statement of this package's own on the base connection.
func (s *connState) exec(ctx context.Context, query string) error {
	return (*asking)(s).Exec(ctx, query)
}
