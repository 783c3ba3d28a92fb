package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// followTx records that query, which ended with err, may have begun or ended a transaction. In doubt a transaction
// counts as open. If none is, the next SAVEPOINT of Observe mode fails, and corrects this.
func (s *Conn) followTx(query string, err error) {
	if basedriver.IsSkip(err) { // database/sql sends the statement again, prepared
		return
	}
	s.pending = s.pending || s.commitsSilently(query)
	switch {
	case !s.followsTx() && !((s.txContext.begun || s.hold.on) && mayChangeTx(query)):
		return
	case err == nil:
		s.inTx = lang.InTransaction(s.settings.profile.Dialect, query, s.inTx)
	default: // some of the statements may not have been executed
		s.inTx = s.inTx || s.changesTx(query)
	}
	s.guardedTx = s.guardedTx && s.inTx // an ended transaction has no guarded statements
	if s.hold.on && !s.inTx {
		s.endHold()
	}
}

// mayChangeTx reports whether query may begin or end a transaction. In doubt it returns true.
func mayChangeTx(query string) bool {
	word := session.FirstKeyword(query)
	return word == "" || strings.IndexByte(query, ';') >= 0 ||
		slices.ContainsFunc(txKeywords, func(w string) bool { return strings.EqualFold(w, word) })
}

// commitsSilently reports whether query may commit the transaction of BeginTx while database/sql takes it for open.
func (s *Conn) commitsSilently(query string) bool {
	return s.inTx && s.txContext.begun && s.settings.profile.Errors.EndsTx(session.FirstKeyword(query), query)
}

var txKeywords = []string{"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}

// followsTx reports whether transactions that statements begin and end must be tracked, because Observe mode sets
// savepoints in them.
func (s *Conn) followsTx() bool {
	return s.settings.observes() && s.settings.profile.Session.ErrorEndsTx.Is()
}

// changesTx reports whether the statement begins or ends a tracked transaction.
func (s *Conn) changesTx(query string) bool {
	if !s.followsTx() {
		return false
	}
	d := s.settings.profile.Dialect
	return lang.InTransaction(d, query, false) || !lang.InTransaction(d, query, true)
}

// A transaction is what is known about the connection's transaction, whether BeginTx or a statement began it. The zero
// value means that no transaction is open.
type transaction struct {
	inTx         bool  // a transaction is open, as far as is known
	guardedTx    bool  // the transaction has guarded statements
	hold         hold  // locked token names
	mustRollBack error // why the transaction must roll back; nil if no reason is known
	txContext    txContext
}

// txContext keeps values of the context of BeginTx for statements with a context that lacks them. database/sql runs
// Tx.Exec, Tx.Query and the statements of Tx.Prepare and Tx.Stmt with context.Background, and doesn't tell the driver
// the transaction of a statement. But a connection has only one transaction at a time.
//
// A serial isn't kept, because a serial is for one row and most transactions write several rows. A Bypass isn't kept,
// because each statement must have its own.
type txContext struct {
	begun  bool
	tokens []Token
	editor any

	supplied map[string]int64 // the source's tokens in the transaction, by name
}

// begun keeps the values of the context that began a transaction.
func (s *Conn) begun(ctx context.Context) {
	s.txContext = txContext{begun: true, tokens: TokensFrom(ctx), editor: ctx.Value(editorKey{})}
}

// context returns the context that a statement runs with: ctx, with the transaction's tokens if ctx carries no tokens,
// and with the transaction's editor if ctx has no editor.
func (s *Conn) context(ctx context.Context) context.Context {
	if len(s.txContext.tokens) > 0 && len(TokensFrom(ctx)) == 0 {
		ctx = WithTokens(ctx, s.txContext.tokens)
	}
	if s.txContext.editor != nil && ctx.Value(editorKey{}) == nil {
		ctx = WithEditor(ctx, s.txContext.editor)
	}
	return ctx
}

// keepTerm refuses to continue a transaction of BeginTx if the token source returns other tokens than before. A
// decision that was made under a lost lease must not be written under the next lease.
func (e *Execution) keepTerm(got []Token) error {
	tx := &e.conn.txContext
	if !tx.begun {
		return nil
	}
	for _, token := range got {
		before, ok := tx.supplied[token.Name]
		if i := slices.IndexFunc(tx.tokens, func(t Token) bool { return t.Name == token.Name }); i >= 0 {
			before, ok = tx.tokens[i].Value, true
		}
		switch {
		case !ok && tx.supplied == nil:
			tx.supplied = map[string]int64{token.Name: token.Value}
		case !ok:
			tx.supplied[token.Name] = token.Value
		case before != token.Value:
			return e.changedTerm(Token{token.Name, before}, token)
		}
	}
	return nil
}

// changedTerm returns the error of a token in a transaction that has used another value of this name.
func (e *Execution) changedTerm(before, now Token) error {
	t := e.table(max(0, e.find(func(t *Table) bool { return t.takes(now.Name) })))
	if before.Value < now.Value {
		return t.factory.Stale(Compared{Table: t.Name, Token: before, Current: now.Value}, nil)
	}
	return t.misled("the token source returned %v after %v in one transaction; roll the transaction back, and never "+
		"return a lower token", now, before)
}

// FollowRollback checks whether err means that the server has rolled back the transaction, and would commit each later
// statement separately. If so, later guarded statements, and the COMMIT of earlier ones, are refused. If err doesn't
// show it, stillOpen asks before each statement of a held transaction.
func (s *Conn) FollowRollback(err error) {
	switch errs := s.settings.profile.Errors; {
	case err == nil || !s.inTx || !errs.CommitsAfter.Is():
	case errs.HidesRollback.Is():
		s.hold.failed = err
	case dberr.IsRolledBack(err):
		s.mustRollBack = &rolledBackTx{err}
	}
}

// followRefusal records that a guard refused a statement with err. If the server would still replicate the refused
// statement's changes ([session.Capabilities].Leaks), the open transaction must not be committed; if a statement began
// that transaction, followRefusal ends the session.
func (s *Conn) followRefusal(ctx context.Context, err error) {
	switch {
	case !s.session.Leaks || s.mustRollBack != nil:
	case s.inTx:
		s.mustRollBack = &leakingTx{err}
	case s.textBegan(ctx):
		s.endSession()
	}
}

// textBegan reports whether a statement, or disabled autocommit, began an open transaction. In doubt it returns true.
func (s *Conn) textBegan(ctx context.Context) bool {
	rows, err := (*queryable)(s).Query(ctx, "SELECT @@in_transaction")
	return err != nil || len(rows) != 1 || rows[0][0] != "0"
}

// openTx is the error of a transaction that would begin in an open one. MySQL would commit the open transaction.
// database/sql sends the open transaction's rollback some time after its context has ended, and would roll back the
// second transaction.
type openTx struct{}

func (openTx) Error() string {
	return "sqlfence: the connection's last transaction is still open; commit it or roll it back first (if its " +
		"context has ended, database/sql is about to roll it back: begin again after a pause)"
}

// Temporary returns true: sqlfence.Retry runs the transaction again.
func (openTx) Temporary() bool { return true }

// leakingTx is the error of each later statement of a transaction in which a guard refused a statement, on a server
// that sends the changes of the refused statement to the other servers if the transaction commits.
type leakingTx struct{ err error }

func (e *leakingTx) Error() string {
	return fmt.Sprintf("sqlfence: a statement was refused, and the other nodes would get what its triggers had "+
		"changed (docs/galera.md); roll the transaction back, or set log_bin: %v", e.err)
}
func (e *leakingTx) Unwrap() error { return e.err }

// rolledBackTx is the error of each later statement of a transaction that the server has rolled back.
type rolledBackTx struct{ err error }

func (e *rolledBackTx) Error() string {
	return fmt.Sprintf("sqlfence: the server has rolled back the transaction; roll it back and run it again: %v", e.err)
}
func (e *rolledBackTx) Unwrap() error { return e.err }

// Temporary reports whether sqlfence.Retry runs the transaction again.
func (e *rolledBackTx) Temporary() bool { return dberr.IsRolledBack(e.err) }
