package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A hold is the state of a transaction in which tokens.Store.Hold has locked the names of its tokens.
type hold struct {
	last  *trusted.Hold // the transaction's last Hold, until noteHold finds that it has succeeded; may be nil
	on    bool
	saved []string // names of the open savepoints, the oldest first
	under int      // number of the open savepoints that were set before the last Hold

	failed error // the last error that may have rolled the transaction back; nil if none is known
}

// noteHold records that the transaction's last Hold has succeeded.
func (s *Conn) noteHold() {
	if h := s.hold.last; h != nil && h.Succeeded.Load() {
		s.hold.last, s.hold.on, s.hold.under = nil, true, len(s.hold.saved)
		s.inTx, s.guardedTx = true, true // so that the COMMIT is checked
	}
}

// followHold records a statement of Hold, and the setting, release and rollback of savepoints, to notice a rollback
// that gives up Hold's lock. err is the statement's error.
func (s *Conn) followHold(ctx context.Context, query string, err error) {
	if h := trusted.HoldOf(ctx, query); h != nil {
		s.hold.last = h
	}
	// If a multi-statement string fails before Hold, saved may have other names than the server. After Hold, a ROLLBACK
	// TO such a name counts as a loss of the lock, because all these names are older than Hold.
	if err == nil {
		controls, _ := s.txControls(query)
		for _, c := range controls {
			s.FollowSavepoint(c)
		}
	}
}

// txControls is [lang.TxControls], without results for a query that can't give up a Hold's lock.
func (s *Conn) txControls(query string) (all []lang.TxControl, alone bool) {
	if !s.mayUnlock(query) {
		return nil, true
	}
	return lang.TxControls(s.settings.profile.Dialect, query)
}

// mayUnlock reports whether query may set a savepoint or roll back to a savepoint, and so give up a Hold's lock.
func (s *Conn) mayUnlock(query string) bool {
	if !s.settings.profile.Errors.Unlocks.Is() {
		return false
	}
	word := strings.ToLower(session.FirstKeyword(query))
	return word == "savepoint" || word == "release" || mayChangeTx(query)
}

// FollowSavepoint records the change of a savepoint or of the transaction by an adapter or a statement.
func (s *Conn) FollowSavepoint(c lang.TxControl) {
	s.noteHold()
	h := &s.hold
	at := len(h.saved) - 1
	for at >= 0 && h.saved[at] != c.Name {
		at--
	}
	switch c.Verb {
	case lang.SetSavepoint:
		h.saved = append(h.saved, c.Name)
	case lang.ReleaseSavepoint:
		h.saved = h.saved[:max(at, 0)]
		h.under = min(h.under, len(h.saved)) // a rollback to the outer savepoint would now give up the lock
	case lang.RollbackToSavepoint:
		if h.on && at < h.under {
			s.mustRollBack = &unlockedTx{c.Name}
		}
		h.saved = h.saved[:max(at+1, 0)]
	case lang.EndTx:
		s.endHold()
	}
}

// endHold records that a statement or an adapter has ended the transaction.
func (s *Conn) endHold() {
	if _, unlocked := s.mustRollBack.(*unlockedTx); unlocked || !s.txContext.begun {
		s.mustRollBack = nil
	}
	s.hold = hold{saved: s.hold.saved[:0]}
}

// FollowsRows reports whether an error among a query's rows may have ended a transaction with guarded statements, or
// with a Hold, so that later statements commit automatically.
func (s *Conn) FollowsRows() bool {
	errs := s.settings.profile.Errors
	return s.guardedTx && errs.CommitsAfter.Is() && !errs.HidesRollback.Is()
}

// endsHold refuses a statement that may silently end a transaction with a Hold. If the transaction must be rolled back,
// endsHold refuses each statement but ROLLBACK, because another statement may commit.
func (e *Execution) endsHold(ctx context.Context) error {
	s := e.conn
	if !s.hold.on || trusted.Is(ctx, e.read.Query) {
		return nil
	}
	word := session.FirstKeyword(e.read.Query)
	err := s.stillOpen(ctx)
	switch controls, alone := s.txControls(e.read.Query); {
	case s.mustRollBack != nil && !strings.EqualFold(word, "rollback"):
		err = s.mustRollBack
	case err != nil:
		return err
	case len(controls) > 0 && !alone:
		err = e.registry.unguardable(nil, "", endsAlone)
	case s.settings.profile.Errors.EndsTx(word, e.read.Query):
		err = e.registry.unguardable(nil, "", "the transaction holds tokens (tokens.Store.Hold), and this statement "+
			"may end it silently, which gives up the lock; send the statement outside of the transaction")
	default:
		return nil
	}
	e.report(ctx, e.refusal(Refused, err))
	return err
}

// stillOpen checks by BEGIN, which fails in an open transaction, whether the held one is still open, on a database where
// an error may have rolled it back unseen: even an error of rows that no client has read. In doubt the transaction must
// roll back: a driver may return the context's error for an executed BEGIN.
func (s *Conn) stillOpen(ctx context.Context) error {
	errs := s.settings.profile.Errors
	switch {
	case !errs.HidesRollback.Is() || s.mustRollBack != nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errs.IsOpen(s.exec(ctx, "BEGIN")):
		s.mustRollBack = &rolledBackTx{cmp.Or(s.hold.failed, errUnseen)} // the application's ROLLBACK ends the new one
	}
	return nil
}

var errUnseen = errors.New("an error that the driver hasn't returned yet")

// endsAlone is why a string with several statements is refused if one of them sets or ends a savepoint, or ends the
// transaction. If a statement of the string fails, the statements after it weren't executed.
const endsAlone = "the transaction holds tokens (tokens.Store.Hold); send SAVEPOINT, RELEASE, ROLLBACK and COMMIT " +
	"separately from other statements"

// unlockedTx is the error of the COMMIT of a transaction that has given up the lock of a Hold.
type unlockedTx struct{ savepoint string }

func (e *unlockedTx) Error() string {
	return fmt.Sprintf("sqlfence: the transaction can't be committed: ROLLBACK TO SAVEPOINT %s has given up the lock "+
		"of tokens.Store.Hold, which was called after the savepoint was set; roll the transaction back, and call Hold "+
		"before the first savepoint", e.savepoint)
}
