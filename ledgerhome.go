package sqlfence

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A session may be told to find names in another schema, and finds another ledger there. Without [WithSchema] a
// pool has the ledger that its sessions find in the beginning; one that has moved is asked before each statement that
// needs the ledger, since a transaction's end may move it back.

// movedLedger has the schemas of two ledgers within it.
const movedLedger = "the session finds names in another place than the pool's in the beginning (search_path, USE), and so the ledger in %q " +
	"instead of %q, whose tokens say nothing to each other; name the one schema by WithSchema, or give each schema a pool of its own; " +
	"if the schema was renamed, open the pool anew"

// A ledgerHome is the schema in which a pool's sessions find the ledger; nil while that isn't known, and empty for none.
type ledgerHome struct{ schema atomic.Pointer[string] }

// watchNames notes that a statement which is about to be sent may have the session find names elsewhere.
// sqlfence's own statements don't.
func (s *connState) watchNames(ctx context.Context, query string) {
	if s.strayed || trusted.Is(ctx, query) || !s.mayStray(query) {
		return
	}
	if s.found.home.schema.Load() == nil {
		if home, err := s.findLedger(ctx); err == nil {
			s.found.home.schema.CompareAndSwap(nil, &home)
		}
	}
	s.strayed = true
}

// mayStray reports whether a statement may have the session find another ledger.
func (s *connState) mayStray(query string) bool {
	return s.settings.ledgers && s.settings.schema == "" && s.settings.profile.text().MayMove(query, changesSession(query))
}

// findLedger asks in which schema the session finds the ledger.
func (s *connState) findLedger(ctx context.Context) (string, error) {
	rows, err := queryTexts(ctx, s.base, s.settings.profile.text().FindOwnHome())
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// checkHome refuses what needs the ledger where the session finds another one than the pool's.
func (s *connState) checkHome(ctx context.Context, table string) error {
	if !s.strayed {
		return nil
	}
	found, err := s.findLedger(ctx)
	if err != nil {
		return fmt.Errorf("sqlfence: asking for the ledger: %w", err)
	}
	if found == "" { // without a ledger the statement itself fails
		return nil
	}
	home := s.found.home.schema.Load()
	if home != nil && *home == "" { // there was none to write by
		s.found.home.schema.CompareAndSwap(home, &found)
		home = s.found.home.schema.Load()
	}
	if home == nil || found != *home {
		was := "an unknown one"
		if home != nil {
			was = *home
		}
		return unguardable(table, fmt.Sprintf(movedLedger, found, was))
	}
	return nil
}

// checkLedgerHome is checkHome for a guarded write.
func (e *execution) checkLedgerHome(ctx context.Context) error {
	s := e.state
	for i := range e.plan.Tables {
		t := e.table(i)
		if !t.rules.Ledger {
			continue
		}
		if e.plan.Several > 0 && s.mayStray(e.read.query) {
			return unguardable(t.name, "the text may change where the session finds names (search_path) before it writes; send each statement by itself")
		}
		if err := s.checkHome(ctx, t.name); err != nil {
			return err
		}
		break
	}
	s.watchNames(ctx, e.read.query)
	return nil
}

// checkOwn is checkHome for a statement of sqlfence's packages, if it names one of their tables.
func (s *connState) checkOwn(ctx context.Context, query string) error {
	if !s.strayed || sqltext.Place(s.settings.profile.text(), "s", query) == query {
		return nil
	}
	return s.checkHome(ctx, sqltext.LedgerTable)
}
