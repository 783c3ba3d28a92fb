package tokens

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

// transact runs do in a transaction, again where it met a serialization failure or a
// deadlock. On PostgreSQL each of its statements sees what was committed before it.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	var level *sql.TxOptions
	if s.dialect == sqlfence.Postgres {
		level = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	once := func() error {
		tx, err := s.db.BeginTx(ctx, level)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, text := range s.sql.begin {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	for {
		err := once()
		switch dberr.SQLState(err) {
		case dberr.SerializationFailure, dberr.DeadlockDetected:
		default:
			return err
		}
	}
}
