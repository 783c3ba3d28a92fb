package tokens

import (
	"context"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A keeping is how the database itself refuses to lower a token or to lose a name, whatever client writes.
type keeping struct {
	// whole is a statement that installs or updates everything, and installed is a query with a row if that is there.
	// Both are empty if triggers are installed one by one.
	whole, installed string

	// hidden is a query with a row if a policy may hide rows, and with them the lower bound, from a role.
	hidden string

	// find is a query for the names and texts of the triggers. before and behind are sent before and after creating
	// some, on the same connection.
	find           string
	before, behind []string

	// findRowID is a query for row ids, and noRowID is in its error for a table without them.
	findRowID, noRowID string
}

// keepLedger installs what keeps the ledger. It fails only if the context has ended, because a role that can't install
// it may find it installed.
func (s *Store) keepLedger(ctx context.Context) error {
	k := s.dialect.keeping
	var err error
	if k.whole != "" {
		err = s.exec(ctx, k.whole)
	} else {
		err = s.createTriggers(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if found, _ := s.has(ctx, k.installed); k.installed == "" || !found {
		// On MySQL a role that may not create them doesn't see them, either.
		s.options.Log().Warn("tokens: this role can't install the triggers that keep tokens from falling; unless "+
			"another one has, every client that may write to "+sqltext.LedgerTable+" can lower one; see docs/tokens.md",
			"error", err)
	}
	return ctx.Err()
}

func (s *Store) createTriggers(ctx context.Context) error {
	triggers := s.ledgerTriggers(ctx)
	found, err := s.triggers(ctx)
	switch {
	case err != nil && strings.Contains(err.Error(), "no such table"):
		return nil // a substitute for SQLite, which has no catalogue and no triggers
	case err != nil:
		return err
	}
	texts := lacking(triggers, found)
	if len(texts) == 0 {
		return nil
	}
	if state := s.dialect.Facts().LedgerState; state != "" {
		texts = append([]string{state}, texts...)
	}
	return s.resend(ctx, func() error { return s.onOne(ctx, texts) })
}

// lacking returns the statements that create the triggers that are missing or differ.
func lacking(triggers []sqltext.Trigger, found map[string]string) (texts []string) {
	for _, t := range triggers {
		_, there := found[t.Name]
		differs := t.Differs(found)
		if differs {
			texts = append(texts, "DROP TRIGGER IF EXISTS "+t.Name)
		}
		if !there || differs {
			texts = append(texts, t.Create)
		}
	}
	return texts
}

func (s *Store) ledgerTriggers(ctx context.Context) []sqltext.Trigger {
	triggers, k := s.dialect.Facts().LedgerTriggers, s.dialect.keeping
	if k.findRowID != "" {
		if _, err := s.has(ctx, k.findRowID); err != nil && strings.Contains(err.Error(), k.noRowID) {
			return sqltext.WithoutRowID(triggers)
		}
	}
	return triggers
}

func (s *Store) onOne(ctx context.Context, texts []string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return dialectopt.Exec(ctx, conn, s.dialect.keeping.before, texts, s.dialect.keeping.behind)
}

// triggers returns the texts of the ledger's triggers by name.
func (s *Store) triggers(ctx context.Context) (map[string]string, error) {
	return queryEach[string](ctx, s.db, s.dialect.keeping.find)
}
