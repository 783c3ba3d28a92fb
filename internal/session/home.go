package session

import (
	"context"
	"fmt"
	"sync/atomic"
)

// A session may be told to find names in another schema, and finds another ledger there. Without a schema by the
// options, a pool has the ledger that its sessions find in the beginning. A session that may have moved is asked before
// each statement that needs the ledger, since a transaction's end may move it back.

// A home is the schema in which a pool's sessions find the ledger; nil while that isn't known, and empty for none.
type home struct{ schema atomic.Pointer[string] }

// A Moved is the error of a session that finds another ledger than the sessions of its pool did in the
// beginning.
type Moved struct {
	Found string // where it finds one
	Was   string // where the pool's is
}

func (m *Moved) Error() string {
	return fmt.Sprintf("the session finds names in another place than the pool's in the beginning (search_path, "+
		"USE), and so the ledger in %q "+
		"instead of %q, and tokens of the two can't be compared; name the one schema by WithSchema, or give each "+
		"schema a pool of its own; if the schema was renamed, open the pool anew", m.Found, m.Was)
}

// findsLedger reports whether the session finds the ledger by itself.
func (s *Session) findsLedger() bool { return s.wants.Ledger && s.wants.Schema == "" }

// MayMove reports whether a statement may have the session find another ledger.
func (s *Session) MayMove(query string) bool { return s.findsLedger() && s.mayStray(query) }

// mayStray reports whether a statement may have the session find names in another schema, where that matters.
func (s *Session) mayStray(query string) bool {
	return (s.findsLedger() || s.wants.Read.Any()) && s.dialect.Text.MayMove(query, Changes(query))
}

// MayHaveMoved reports whether the session may find another ledger than in the beginning.
func (s *Session) MayHaveMoved() bool { return s.strayed && s.findsLedger() }

// leave notes that a statement which is about to be sent may move the session, and asks where its ledger is now, if
// no session of the pool has. Without an answer the pool's ledger isn't known.
func (s *Session) leave(ctx context.Context, c Conn) {
	if s.strayed {
		return
	}
	if s.findsLedger() && s.database.home.schema.Load() == nil {
		if found, err := s.findLedger(ctx, c); err == nil {
			s.database.home.schema.CompareAndSwap(nil, &found)
		}
	}
	s.strayed = true
}

// findLedger asks in which schema the session finds the ledger.
func (s *Session) findLedger(ctx context.Context, c Conn) (string, error) {
	rows, err := c.Query(ctx, s.dialect.Text.Facts().FindOwnHome)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// CheckHome returns a [*Moved] if the session finds another ledger than the pool's; another error is that of the
// question. Without a ledger it is nil: the statement itself fails.
func (s *Session) CheckHome(ctx context.Context, c Conn) error {
	if !s.MayHaveMoved() {
		return nil
	}
	found, err := s.findLedger(ctx, c)
	if err != nil {
		return unanswered(ctx, err)
	}
	if found == "" {
		return nil
	}
	home := &s.database.home.schema
	if was := home.Load(); was != nil && *was == "" { // there was none to write by
		home.CompareAndSwap(was, &found)
	}
	switch was := home.Load(); {
	case was == nil:
		return &Moved{Found: found, Was: "an unknown one"}
	case *was != found:
		return &Moved{Found: found, Was: *was}
	}
	return nil
}
