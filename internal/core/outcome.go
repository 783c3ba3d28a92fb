package core

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/lost"
	"github.com/sqlfence/sqlfence/internal/session"
)

// A guarded statement outside of a transaction, and the COMMIT of guarded statements by Tx.Commit or by a statement,
// must not be sent twice. Nor may sqlfence report it as failed if the database may have applied it: the error is
// ErrUnknownOutcome. In Observe mode the errors of the base driver are returned unchanged.

// ready returns nil if a guarded statement or its COMMIT may be sent. An error means that nothing was sent: the
// context's error, or driver.ErrBadConn on a lost connection, so that database/sql retries on another connection.
func (s *Conn) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.finished || !s.adapter.Alive(ctx) {
		if err := ctx.Err(); err != nil { // a canceled Ping doesn't mean that the connection is lost
			return err
		}
		s.finished = true
		return driver.ErrBadConn
	}
	return nil
}

// linked returns nil if the guarded statement may be sent.
func (e *Execution) linked(ctx context.Context) error {
	s := e.conn
	if s.inTx {
		s.guardedTx = true
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.pending = true
	return nil
}

// A Tx is an adapter's transaction.
type Tx interface {
	Commit() error
	Rollback() error
}

// BeforeTx is called before a transaction begins, and queries facts about the server in advance ([Conn.knowBefore]). It
// returns driver.ErrBadConn on a lost connection, and another error if the last transaction is still open.
func (s *Conn) BeforeTx(ctx context.Context, readOnly bool) error {
	if s.txContext.begun && s.inTx {
		return openTx{}
	}
	s.knowBefore(ctx, readOnly)
	if s.finished { // database/sql retries on another connection
		return driver.ErrBadConn
	}
	return nil
}

// Began records that a transaction was begun with ctx, or couldn't be begun because of err.
func (s *Conn) Began(ctx context.Context, err error) error {
	s.mustRollBack, s.hold = nil, hold{}
	if s.inTx = err == nil; err == nil {
		s.pending = false // the outcome of earlier statements is known
		s.begun(ctx)
	}
	err = s.Explain(ctx, err)
	s.reported = nil
	s.ReportFailure(ctx, "BEGIN", err)
	return err
}

// Idle records that no transaction is open.
func (s *Conn) Idle() {
	s.transaction, s.pending = transaction{}, false
}

// Commit commits a transaction that was begun with ctx. It fails if the transaction's guarded writes were rolled back,
// or must not be committed.
func (s *Conn) Commit(ctx context.Context, tx Tx) error {
	s.reported = nil
	err := s.Explain(ctx, s.commit(ctx, tx))
	s.ReportFailure(ctx, "COMMIT", err)
	return err
}

// Rollback rolls a transaction back.
func (s *Conn) Rollback(tx Tx) error {
	s.transaction = transaction{}
	return s.endTx(tx.Rollback)
}

func (s *Conn) commit(ctx context.Context, tx Tx) error {
	s.noteHold()
	guarded := s.guardedTx && !s.adapter.Closed() // a closed connection sends no COMMIT
	doomed := s.mustRollBack
	s.transaction = transaction{}
	switch {
	case !guarded:
		return s.endTx(tx.Commit)
	case doomed != nil:
		_ = s.endTx(tx.Rollback) // the application's error is doomed
		return doomed
	}
	if err := s.ready(ctx); err != nil {
		_ = s.endTx(tx.Rollback) // the application's error is err
		return err
	}
	return s.endTx(func() error {
		err := tx.Commit()
		if err != nil {
			err = s.settle(err, false) // before endTx closes the connection, which settle checks
		}
		return err
	})
}

// Commits reports whether a statement, before it is sent, may commit guarded statements.
func (s *Conn) Commits(query string) bool {
	s.noteHold()
	return (s.pending || s.guardedTx) && mayCommit(query) || s.guardedTx && s.commitsSilently(query)
}

// CommitFailed returns the application's error for a committing statement that failed with err after its rows.
func (s *Conn) CommitFailed(ctx context.Context, err error) error {
	s.reported = nil
	err = s.Explain(ctx, s.followCommit(err))
	s.ReportFailure(ctx, "COMMIT", err)
	return err
}

// followCommit returns the application's error for a committing statement that ended with err. The error is never
// driver.ErrBadConn: database/sql would send the statement on another connection, where it commits nothing and
// succeeds.
func (s *Conn) followCommit(err error) error {
	switch {
	case err == nil:
		s.pending = s.pending && s.inTx
	case errors.Is(err, driver.ErrBadConn):
		s.finished = true
		return &unknownOutcome{err: err, resent: true}
	default:
		return s.settle(err, true)
	}
	return nil
}

// mayCommit reports whether query commits a transaction that was begun before query. In doubt it returns true. A script
// that begins its own transaction doesn't count, because database/sql may retry the script after losing the connection.
func mayCommit(query string) bool {
	switch word := session.FirstKeyword(query); {
	case word == "":
		return true
	case strings.EqualFold(word, "COMMIT"), strings.EqualFold(word, "END"):
		return !commitsPrepared.MatchString(query) // COMMIT PREPARED commits another transaction
	case strings.EqualFold(word, "BEGIN"), strings.EqualFold(word, "START"), strings.IndexByte(query, ';') < 0:
		return false
	}
	found := beginsOrCommits.FindStringSubmatch(query)
	return found != nil && found[1] != ""
}

var (
	commitsPrepared = regexp.MustCompile(`(?i)commit\s+prepared\b`)
	beginsOrCommits = regexp.MustCompile(`(?i);\s*(?:begin|start|(commit|end))\b`)
)

// muted returns the context's error after a successful Exec, if the base driver may have stopped at the context's end
// without an error.
func (s *Conn) muted(ctx context.Context) error {
	if !s.settings.profile.MutesEnd {
		return nil
	}
	return ctx.Err()
}

// endTx commits or rolls back. If the transaction may still be open after an error, endTx ends the session, so that the
// server rolls back. Otherwise the pool's next user would continue in the open transaction, and that user's BEGIN would
// commit writes that were reported as failed.
func (s *Conn) endTx(end func() error) error {
	err := end()
	if err != nil && s.settings.profile.Errors.KeepsTx(err) {
		s.endSession()
	}
	return err
}

// endSession closes the connection, so that the server rolls back an open transaction. The error of Close is ignored.
func (s *Conn) endSession() {
	s.finished, s.closed = true, true
	_ = s.adapter.Close()
}

// settle returns the application's error for a statement or COMMIT that failed with err. resent reports whether
// database/sql would send the statement again after driver.ErrBadConn.
func (s *Conn) settle(err error, resent bool) error {
	if !s.mayHaveLanded(err) {
		return err
	}
	// database/sql may not see in unknownOutcome that it must discard the connection.
	s.finished = s.finished || errors.Is(err, driver.ErrBadConn)
	return &unknownOutcome{err: err, resent: resent}
}

// Explain returns the error of an operation on the connection with ctx. If ctx has ended because the token's holder
// lost its lease or lock, the error is ErrStale. The result is never driver.ErrBadConn then, because database/sql would
// retry.
func (s *Conn) Explain(ctx context.Context, err error) error {
	if err == nil || basedriver.IsSkip(err) {
		return err
	}
	cause := lost.Cause(ctx)
	switch {
	case cause == nil:
		return err
	case errors.Is(err, driver.ErrBadConn) && !errors.Is(err, ErrUnknownOutcome):
		s.finished = true
		return cause
	}
	return lost.Because(cause, err)
}

// mayHaveLanded reports whether a statement that failed with err in the base driver may have been applied.
func (s *Conn) mayHaveLanded(err error) bool {
	p := s.settings.profile
	switch {
	case basedriver.IsSkip(err), p.isResponse(err), basedriver.IsBeforeBatch(err), errors.As(err, new(unsent)):
		return false
	case errors.Is(err, driver.ErrBadConn):
		// Drivers also return driver.ErrBadConn for statements that were sent: see docs/adr/0013.
		return p.remote() && !s.adapter.Open() && !p.BadConnUnsent
	case isInterrupted(err, p.remote()):
		return !isUnsent(err)
	case p.Remote && dberr.IsIO(err):
		return true
	}
	// before the statement was sent, the connection was neither closed nor invalid
	return dberr.IsSessionEnd(err) || s.adapter.Closed() || s.adapter.Invalid()
}

// CommitUnanswered reports whether err, of a COMMIT on an unfenced driver, isn't the server's response, so that the
// transaction may have been committed. It returns false for an unknown driver.
func CommitUnanswered(d any, err error) bool {
	if _, fenced := d.(interface{ Settings() *Settings }); fenced || err == nil {
		return false
	}
	p, known := profileOf(d)
	return known && p.remote() && !p.isResponse(err) && !isUnsent(err) &&
		!dberr.IsCommitRolledBack(err) && !(p.BadConnUnsent && errors.Is(err, driver.ErrBadConn))
}

// isInterrupted reports whether err is a context's end or a network error. A timeout counts only for a remote database,
// because SQLite's drivers return one for a busy file.
func isInterrupted(err error, remote bool) bool {
	var network net.Error
	var socket *net.OpError
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &socket) || remote && errors.As(err, &network)
}

// isUnsent reports whether err is an error of pgx from before the first byte was sent: a context's end or a network
// error. SafeToRetry is also true for "conn closed", which pgx 5.12 returns for a sent COMMIT without a response.
func isUnsent(err error) bool {
	var said interface{ SafeToRetry() bool }
	return isInterrupted(err, true) && errors.As(err, &said) && said.SafeToRetry()
}
