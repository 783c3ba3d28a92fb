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

// followTx follows transactions that are begun and ended by statements: by one
// that ended with err. In doubt a transaction is taken for open: the next savepoint
// shows whether it is.
func (s *Conn) followTx(query string, err error) {
	if basedriver.IsSkip(err) { // it comes again, prepared
		return
	}
	s.pending = s.pending || s.commitsSilently(query)
	switch {
	case !s.followsTx() && !((s.txContext.begun || s.hold.on) && mayChangeTx(query)):
		return
	case err == nil:
		s.inTx = lang.InTransaction(s.settings.profile.Dialect, query, s.inTx)
	default: // how far it got isn't known
		s.inTx = s.inTx || s.changesTx(query)
	}
	s.guardedTx = s.guardedTx && s.inTx // the guarded statements of a transaction that a text has ended are settled
	s.hold.on = s.hold.on && s.inTx
}

// mayChangeTx reports whether a text may begin or end a transaction. In doubt it does.
func mayChangeTx(query string) bool {
	word := session.FirstWord(query)
	return word == "" || strings.IndexByte(query, ';') >= 0 ||
		slices.ContainsFunc(txWords, func(w string) bool { return strings.EqualFold(w, word) })
}

// commitsSilently reports whether a text may commit the transaction of BeginTx without ending it for database/sql.
func (s *Conn) commitsSilently(query string) bool {
	return s.inTx && s.txContext.begun && s.settings.profile.Answers.EndsTx(session.FirstWord(query), query)
}

var txWords = []string{"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}

// followsTx reports whether transactions that statements begin and end have to be
// followed: Observe mode sets savepoints in them.
func (s *Conn) followsTx() bool {
	return s.settings.observes() && s.settings.profile.Session.ErrorEndsTx.Is()
}

// changesTx reports whether the statement begins or ends transactions that have to be
// followed.
func (s *Conn) changesTx(query string) bool {
	if !s.followsTx() {
		return false
	}
	d := s.settings.profile.Dialect
	return lang.InTransaction(d, query, false) || !lang.InTransaction(d, query, true)
}

// A transaction is what is known of the one of a connection, whatever has begun it. The zero transaction is none.
type transaction struct {
	inTx      bool  // it is open, as far as is known
	guardedTx bool  // it has guarded statements
	hold      hold  // of tokens
	doomed    error // why it can't be committed, as far as is known
	txContext txContext
}

// txContext is what a transaction of BeginTx keeps of the context that began it, for statements with a context
// that has none of its own. database/sql runs Tx.Exec, Tx.Query and the statements of Tx.Prepare
// and Tx.Stmt with context.Background, and doesn't tell the driver which transaction they are of;
// but a connection has one at a time.
//
// A serial isn't kept: it is of one row, and most transactions write several. Nor is a
// Bypass, which has to be said for each statement.
type txContext struct {
	begun  bool
	tokens []Token
	editor any

	supplied map[string]int64 // the tokens that the source gave in it, by their names
}

// begun notes the context that has begun a transaction of the connection.
func (s *Conn) begun(ctx context.Context) {
	s.txContext = txContext{begun: true, tokens: TokensFrom(ctx), editor: ctx.Value(editorKey{})}
}

// context returns the context that a statement of the connection runs with: its own,
// with the transaction's tokens if it carries none, and with the transaction's editor
// if it has none.
func (s *Conn) context(ctx context.Context) context.Context {
	if len(s.txContext.tokens) > 0 && len(TokensFrom(ctx)) == 0 {
		ctx = WithTokens(ctx, s.txContext.tokens)
	}
	if s.txContext.editor != nil && ctx.Value(editorKey{}) == nil {
		ctx = WithEditor(ctx, s.txContext.editor)
	}
	return ctx
}

// keepTerm keeps a transaction of BeginTx from going on under other tokens than it began with:
// what it has read and decided under a lease that was lost must not be written under the
// next one.
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

// changedTerm refuses a token in a transaction that has used another one of this name.
func (e *Execution) changedTerm(before, now Token) error {
	t := e.table(max(0, e.find(func(t *Table) bool { return t.takes(now.Name) })))
	if before.Value < now.Value {
		return t.factory.Stale(Compared{Table: t.Name, Token: before, Current: now.Value}, nil)
	}
	return t.misled("the token source returned %v after %v in one transaction; roll the transaction back, and never "+
		"return a lower token", now, before)
}

// FollowRollback notes that the server has rolled back the transaction that a statement, which
// failed with err, stood in, and goes on without one.
func (s *Conn) FollowRollback(err error) {
	if err != nil && s.inTx && s.settings.profile.Answers.CommitsAfter.Is() && dberr.IsRolledBack(err) {
		s.doomed = &rolledBackTx{err}
	}
}

// followRefusal notes that a guard has refused a statement with an error: a transaction that goes on behind it must not
// be committed where the server leaks. One that a text has begun ends with its session.
func (s *Conn) followRefusal(ctx context.Context, err error) {
	switch {
	case !s.session.Leaks || s.doomed != nil:
	case s.inTx:
		s.doomed = &leakingTx{err}
	case s.textBegan(ctx):
		s.endSession()
	}
}

// textBegan reports whether a transaction is open that a text has begun, or the lack of autocommit. In doubt it is.
func (s *Conn) textBegan(ctx context.Context) bool {
	rows, err := (*asking)(s).Query(ctx, "SELECT @@in_transaction")
	return err != nil || len(rows) != 1 || rows[0][0] != "0"
}

// openTx is the error of a transaction that would begin in an open one. MySQL would commit the open transaction. Its
// rollback, which database/sql sends some time after the end of its context, would end the second transaction.
type openTx struct{}

func (openTx) Error() string {
	return "sqlfence: the connection's last transaction is still open; commit it or roll it back first (if its " +
		"context has ended, database/sql is about to roll it back: begin again after a pause)"
}

// Temporary returns true: see [Retry].
func (openTx) Temporary() bool { return true }

// leakingTx is the error of what follows in a transaction that would leak.
type leakingTx struct{ err error }

func (e *leakingTx) Error() string {
	return fmt.Sprintf("sqlfence: a statement was refused, and the other nodes would get what its triggers had "+
		"changed (docs/galera.md); roll the transaction back, or set log_bin: %v", e.err)
}
func (e *leakingTx) Unwrap() error { return e.err }

// rolledBackTx is the error of what follows in a transaction that the server has rolled back.
type rolledBackTx struct{ err error }

func (e *rolledBackTx) Error() string {
	return fmt.Sprintf("sqlfence: the server has rolled back the transaction; roll it back and run it again: %v", e.err)
}
func (e *rolledBackTx) Unwrap() error { return e.err }

// Temporary returns true: see [Retry].
func (e *rolledBackTx) Temporary() bool { return true }
