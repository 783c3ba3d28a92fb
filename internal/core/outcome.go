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

// What must not be sent twice, nor called failed when it may have been applied, is a
// guarded statement outside of a transaction, and the COMMIT of a transaction with
// guarded statements, by Tx.Commit or by a statement. In Observe mode errors stay the base driver's.

// ready looks whether such a thing may be sent. An error means that nothing was sent
// or will be: it is the context's if that has ended, or driver.ErrBadConn if the
// connection is lost, on which database/sql takes another.
func (s *Conn) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.finished || !s.link.Alive(ctx) {
		if err := ctx.Err(); err != nil { // a Ping that was cut short tells nothing
			return err
		}
		s.finished = true
		return driver.ErrBadConn
	}
	return nil
}

// linked looks whether the guarded statement may be sent.
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

// A Tx is a transaction as an adapter has it.
type Tx interface {
	Commit() error
	Rollback() error
}

// BeforeTx asks the server, before a transaction that may have guarded writes is begun, if an error would end it. It
// returns driver.ErrBadConn where the connection is lost, and an error where the last transaction is still open.
func (s *Conn) BeforeTx(ctx context.Context, readOnly bool) error {
	if s.txContext.begun && s.inTx {
		return openTx{}
	}
	s.knowBefore(ctx, readOnly)
	if s.finished { // database/sql takes another
		return driver.ErrBadConn
	}
	return nil
}

// Began notes that a transaction was begun with ctx, unless err says that it wasn't.
func (s *Conn) Began(ctx context.Context, err error) error {
	s.doomed, s.hold = nil, hold{}
	if s.inTx = err == nil; err == nil {
		s.pending = false // what was sent before is settled
		s.begun(ctx)
	}
	err = s.Explain(ctx, err)
	s.reported = nil
	s.ReportFailure(ctx, "BEGIN", err)
	return err
}

// Idle notes that no transaction is open. What was begun by Began is ended.
func (s *Conn) Idle() {
	s.transaction, s.pending = transaction{}, false
}

// Commit commits a transaction that was begun with ctx. It fails if guarded writes of it were rolled back,
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
	guarded := s.guardedTx && !s.link.Closed() // else the base driver has nowhere to send it
	doomed := s.doomed
	s.transaction = transaction{}
	switch {
	case !guarded:
		return s.endTx(tx.Commit)
	case doomed != nil:
		_ = s.endTx(tx.Rollback) // the reason is doomed
		return doomed
	}
	if err := s.ready(ctx); err != nil {
		_ = s.endTx(tx.Rollback) // the reason is err
		return err
	}
	return s.endTx(func() error {
		err := tx.Commit()
		if err != nil {
			err = s.settle(err, false) // before the session is ended, which the driver would report
		}
		return err
	})
}

// commits reports whether a statement may commit guarded statements that were sent before.
func (s *Conn) commits(query string) bool {
	return (s.pending || s.guardedTx) && mayCommit(query) || s.guardedTx && s.commitsSilently(query)
}

// Commits reports whether a statement may commit guarded ones, before it is sent.
func (s *Conn) Commits(query string) bool { return s.commits(query) }

// CommitFailed returns the error that the application gets for such a statement where its answer, err, came behind its
// rows.
func (s *Conn) CommitFailed(ctx context.Context, err error) error {
	s.reported = nil
	err = s.Explain(ctx, s.followCommit(err))
	s.ReportFailure(ctx, "COMMIT", err)
	return err
}

// followCommit returns the error that the application gets for such a statement, which ended with err. It is
// never driver.ErrBadConn, on which database/sql would send it on another connection: there it would
// commit nothing, and succeed.
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

// mayCommit reports whether a text commits a transaction that was begun before it. In doubt it does. A pool
// may have lost the connection on which a script begins one of its own: that script is sent again.
func mayCommit(query string) bool {
	switch word := session.FirstWord(query); {
	case word == "":
		return true
	case strings.EqualFold(word, "COMMIT"), strings.EqualFold(word, "END"):
		return !commitsPrepared.MatchString(query) // which is another transaction
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

// muted returns the context's error after an Exec without an error, if the base driver may
// have stopped there without saying so.
func (s *Conn) muted(ctx context.Context) error {
	if !s.settings.profile.MutesEnd {
		return nil
	}
	return ctx.Err()
}

// endTx commits or rolls back. If that may have left the transaction open, endTx ends the session,
// so that the server rolls it back: else the pool's next user would go on in it, and that user's
// BEGIN would commit writes that were reported as failed.
func (s *Conn) endTx(end func() error) error {
	err := end()
	if err != nil && s.settings.profile.Answers.KeepsTx(err) {
		s.endSession()
	}
	return err
}

// endSession has the server roll back what is open. The session's error is another one.
func (s *Conn) endSession() {
	s.finished, s.closed = true, true
	_ = s.link.Close()
}

// settle returns the error that the application gets for what was sent and failed with
// err. resent: on driver.ErrBadConn database/sql would send it again.
func (s *Conn) settle(err error, resent bool) error {
	if !s.mayHaveLanded(err) {
		return err
	}
	// database/sql may not see that the connection is to be thrown away.
	s.finished = s.finished || errors.Is(err, driver.ErrBadConn)
	return &unknownOutcome{err: err, resent: resent}
}

// Explain returns the error of what was asked of the connection with ctx: ErrStale, if ctx has
// ended because its holder has lost what its token stands for. Then nothing is sent again on
// another connection.
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

// mayHaveLanded reports whether what was given to the base driver, and failed with err,
// may have been applied.
func (s *Conn) mayHaveLanded(err error) bool {
	p := s.settings.profile
	switch {
	case basedriver.IsSkip(err), p.answered(err), basedriver.IsBeforeBatch(err):
		return false
	case errors.Is(err, driver.ErrBadConn):
		// Drivers return it for statements that were sent, too: see docs/adr/0013.
		return p.remote() && !s.link.Open() && !p.BadConnUnsent
	case isInterrupted(err, p.remote()):
		return !isUnsent(err)
	case p.Remote && dberr.IsIO(err):
		return true
	}
	return dberr.IsSessionEnd(err) || s.link.Closed() || s.link.Invalid() // which it wasn't before
}

// CommitUnanswered reports whether err, of a COMMIT by a driver without a fence, isn't the server's answer: the
// transaction may have been committed. It returns false for a driver that isn't known.
func CommitUnanswered(d any, err error) bool {
	if _, fenced := d.(interface{ Settings() *Settings }); fenced || err == nil {
		return false
	}
	p, known := profileOf(d)
	return known && p.remote() && !p.answered(err) && !isUnsent(err) &&
		!dberr.IsCommitRolledBack(err) && !(p.BadConnUnsent && errors.Is(err, driver.ErrBadConn))
}

// isInterrupted reports whether err is the end of a context or the network's. What has
// a timeout is the network's only where there is one: drivers of SQLite say the same of
// a busy file.
func isInterrupted(err error, remote bool) bool {
	var network net.Error
	var socket *net.OpError
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &socket) || remote && errors.As(err, &network)
}

// isUnsent reports whether pgx says of such an error that it came before a byte was
// sent.
func isUnsent(err error) bool {
	var said interface{ SafeToRetry() bool }
	return errors.As(err, &said) && said.SafeToRetry()
}
