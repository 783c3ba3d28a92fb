package schema

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A neighbour is a sealer with statements that can't look for existing objects themselves.
type neighbour interface {
	sealer

	// triggers is a query for the triggers of former seals that the table has, and allTriggers one for
	// those of all tables with which it shares their names.
	triggers(sealing) string
	allTriggers(sealing) string

	// ledger is a query for the schema of the ledger, and negatives one for a row with a mark below
	// 0.
	ledger(sealing) string
	negatives(sealing) string
}

// lookAround looks for what the statements can't look for.
func (s *sealing) lookAround(ctx context.Context, db *sql.DB, part sealer, unseals bool) (err error) {
	if asks, ok := part.(neighbour); ok {
		if s.found, err = s.texts(ctx, db, asks.triggers(*s)); err != nil {
			return err
		}
		if s.taken, err = s.texts(ctx, db, asks.allTriggers(*s)); err != nil {
			return err
		}
		s.taken = slices.DeleteFunc(s.taken, func(name string) bool { return slices.Contains(s.found, name) })
		if !unseals {
			some, err := s.texts(ctx, db, asks.negatives(*s))
			if err != nil {
				return err
			}
			s.negative = len(some) > 0
			if err := s.findLedger(ctx, db, asks); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts returns the only column of a query's rows, all of them.
func (s *sealing) texts(ctx context.Context, db *sql.DB, query string) ([]string, error) {
	return dialectopt.Texts(ctx, db, sqltext.Whole(s.text, query))
}

func (s *sealing) findLedger(ctx context.Context, db *sql.DB, asks neighbour) error {
	if !s.Rules.Ledger {
		return nil
	}
	found, err := s.texts(ctx, db, asks.ledger(*s))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("there is no table " + sqltext.LedgerTable + " in the session's database to compare its " +
			"tokens with")
	}
	s.ledgerIn = found[0]
	return nil
}
