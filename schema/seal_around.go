package schema

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A neighbour is a sealer whose statements can't look for what is there already.
type neighbour interface {
	sealer

	// triggers is a query for the triggers of former seals that the table has, and allTriggers one for
	// those of all tables with which it shares their names.
	triggers(sealing) string
	allTriggers(sealing) string

	// ledger is a query for the schema of the ledger, and negatives one for a row whose mark is below 0.
	ledger(sealing) string
	negatives(sealing) string
}

// lookAround looks for what the statements can't look for.
func (s *sealing) lookAround(ctx context.Context, db *sql.DB, part sealer, unseals bool) (err error) {
	if asks, ok := part.(neighbour); ok {
		if s.found, err = texts(ctx, db, asks.triggers(*s)); err != nil {
			return err
		}
		if s.taken, err = texts(ctx, db, asks.allTriggers(*s)); err != nil {
			return err
		}
		s.taken = slices.DeleteFunc(s.taken, func(name string) bool { return slices.Contains(s.found, name) })
		if !unseals {
			some, err := texts(ctx, db, asks.negatives(*s))
			if err != nil {
				return err
			}
			s.negative = len(some) > 0
			if err := s.findLedger(ctx, db, asks); err != nil {
				return err
			}
		}
	}
	if !unseals {
		s.all, err = allColumns(ctx, db, part, *s)
	}
	return err
}

func (s *sealing) findLedger(ctx context.Context, db *sql.DB, asks neighbour) error {
	if !s.Ledger {
		return nil
	}
	found, err := texts(ctx, db, asks.ledger(*s))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("there is no table " + sqltext.LedgerTable + " in the session's database, by which its tokens are compared")
	}
	s.ledgerIn = found[0]
	return nil
}

// texts returns the only column of a query's rows.
func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(trusted.Context(ctx, query), query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
