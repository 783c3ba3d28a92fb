package sqlfence

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/session"
)

// A connState is the state that a connection and its statements share. Like a connection,
// only one goroutine at a time uses it.
type connState struct {
	settings *settings
	base     driver.Conn
	sqlmw    *interceptor
	link     link
	cache    stmtCache
	session  session.Session
	found    *found // in the connection's database

	executing execution // an Exec, while it is sent

	inTx       bool  // a transaction is open, as far as is known
	guardedTx  bool  // it has guarded statements
	pending    bool  // guarded statements were sent outside of one, and a COMMIT may be sent
	strayed    bool  // the session may find names elsewhere than in the beginning
	rolledBack error // why the server has rolled it back, as far as is known
	lost       bool  // no connection any more, which database/sql may not know
	closed     bool  // base is, before database/sql has asked for it

	txContext txContext // of the transaction that BeginTx began
}

// A found is what the connections of one database have found in it. It is safe for concurrent use.
type found struct {
	session.Database
	calling atomic.Pointer[callingRewriter]
	home    ledgerHome
}

func newConnState(s *settings, base driver.Conn, f *found) (*connState, error) {
	state := &connState{settings: s, base: base, found: f, link: newLink(s.profile.database, base), cache: newStmtCache(s, base)}
	state.session = session.New(s.profile.session(), &f.Database, &s.wanted)
	var err error
	state.sqlmw, err = newInterceptor(state)
	return state, err
}

// follows reports whether each execution of a statement that isn't guarded has to be
// looked at.
func (s *connState) follows(query string) bool {
	return s.mayStray(query) || len(s.settings.tables) > 0 && mayCommit(query) || s.inTx && s.settings.profile.goesOnAfterRollback() || s.changesTx(query) || s.session.HasSettings() && changesSession(query) || s.cache.size > 0 && changesSession(query)
}

// exec executes a statement of this package's own on the base connection.
func (s *connState) exec(ctx context.Context, query string) error {
	return (*asking)(s).Exec(ctx, query)
}
