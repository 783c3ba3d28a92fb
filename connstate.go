package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
)

// A connState is the state that a connection and its statements share. Like a connection,
// only one goroutine at a time uses it.
type connState struct {
	settings *settings
	base     driver.Conn
	sqlmw    *interceptor
	link     link
	cache    stmtCache
	ledger   *ledgerFunction // of the connection's database
	seals    *seals          // likewise

	executing execution // an Exec, while it is sent

	inTx         bool  // a transaction is open, as far as is known
	guardedTx    bool  // it has guarded statements
	rolledBack   error // why the server has rolled it back, as far as is known
	peers        peers
	plainCharset bool // the server reads each byte of ASCII as a character by itself

	assignsInOrder bool // an upsert's columns are assigned one by one
	lost           bool // no connection any more, which database/sql may not know
	closed         bool // base is, before database/sql has asked for it

	txContext txContext // of the transaction that BeginTx began
}

// A found is what the connections of one database have found in it.
type found struct {
	ledger ledgerFunction
	seals  seals
}

func newConnState(s *settings, base driver.Conn, f *found) (*connState, error) {
	state := &connState{settings: s, base: base, ledger: &f.ledger, seals: &f.seals, link: newLink(s.profile.database, base), cache: newStmtCache(s, base)}
	var err error
	state.sqlmw, err = newInterceptor(state)
	return state, err
}

// follows reports whether each execution of a statement that isn't guarded has to be
// looked at.
func (s *connState) follows(query string) bool {
	return s.inTx && s.settings.profile.goesOnAfterRollback() || s.changesTx(query) || s.changesSettings(query) || s.cache.size > 0 && changesSession(query)
}

// exec executes a statement of this package's own on the base connection.
func (s *connState) exec(ctx context.Context, query string) error {
	if c, ok := s.base.(driver.ExecerContext); ok {
		_, err := c.ExecContext(ctx, query, nil)
		return err
	}
	stmt, err := s.base.Prepare(query)
	if err != nil {
		return err
	}
	_, err = stmt.Exec(nil)
	return closing(stmt.Close, err)
}
