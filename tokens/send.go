package tokens

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A session is a pool, a connection or a transaction that statements are sent on.
type session interface {
	dialectopt.Queries
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// sendBounded sends a statement that contains {floor}, the lower bound of all later tokens.
func (s *Store) sendBounded(ctx context.Context, f sqltext.Bounded, send func(text string) error) error {
	found, err := s.timelines.Send(f, send, func(text string) error { return s.exec(ctx, text) })
	if found {
		s.options.Log().Warn("tokens: " + sqltext.Unreadable)
	}
	return err
}

func (s *Store) queryBounded(ctx context.Context, f sqltext.Bounded, args ...any) (value int64, err error) {
	err = s.sendBounded(ctx, f, func(text string) (err error) {
		value, err = s.query(ctx, text, args...)
		return err
	})
	return value, err
}

// lowerBound returns the lower bound of all later tokens.
func (s *Store) lowerBound(ctx context.Context) (int64, error) {
	return s.queryBounded(ctx, bounded(s.dialect, "SELECT {floor}", nil))
}

// query returns the first value of a query's first row, 0 for NULL, or sql.ErrNoRows.
func (s *Store) query(ctx context.Context, query string, args ...any) (int64, error) {
	return s.queryIn(ctx, s.dialect.reads, query, args...)
}

func (s *Store) queryIn(
	ctx context.Context, options *sql.TxOptions, query string, args ...any,
) (value int64, err error) {
	err = s.resend(ctx, func() error {
		return s.in(ctx, options, func(db session) (err error) {
			value, err = queryOnce(ctx, db, query, args...)
			return err
		})
	})
	return value, err
}

// reading calls do with a session that reads the ledger, and calls it again after a serialization failure.
func (s *Store) reading(ctx context.Context, do func(db session) error) error {
	return s.resend(ctx, func() error { return s.in(ctx, s.dialect.reads, do) })
}

func (s *Store) resend(ctx context.Context, send func() error) error {
	return dberr.Resend(ctx, dberr.IsSerialization, send)
}

// in calls do in a transaction with these options, or without one if options is nil.
func (s *Store) in(ctx context.Context, options *sql.TxOptions, do func(db session) error) error {
	if options == nil {
		return do(s.db)
	}
	tx, end, err := s.begin(ctx, options)
	if err != nil {
		return err
	}
	defer end()
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// queryOnce reads all rows. QueryRow would leave the rest to the driver's Close.
func queryOnce(ctx context.Context, db dialectopt.Queries, query string, args ...any) (int64, error) {
	found, value := false, sql.NullInt64{}
	err := dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(&value)
	}, query, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	if err != nil {
		return 0, err
	}
	return value.Int64, nil
}

func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return s.reading(ctx, func(db session) error {
		_, err := db.ExecContext(trusted.Context(ctx, query), query, args...)
		return err
	})
}

// transact calls do in a transaction, and in another transaction after a serialization failure or a deadlock.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	return dberr.Resend(ctx, dberr.IsRolledBack, func() error {
		tx, end, err := s.begin(ctx, s.dialect.level)
		if err != nil {
			return err
		}
		defer end()
		defer tx.Rollback()
		if err := execAll(ctx, tx, s.dialect.begin); err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func (s *Store) begin(ctx context.Context, level *sql.TxOptions) (tx *sql.Tx, end func() error, err error) {
	none := func() error { return nil }
	if s.dialect.before == nil {
		tx, err = s.db.BeginTx(ctx, level)
		return tx, none, err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, none, err
	}
	err = s.dialect.before(func(text string) error {
		_, err := conn.ExecContext(trusted.Context(ctx, text), text)
		return err
	})
	if err == nil {
		tx, err = conn.BeginTx(ctx, level)
	}
	if err != nil {
		_ = conn.Close()
	}
	return tx, conn.Close, err
}

func execAll(ctx context.Context, tx *sql.Tx, texts []string, args ...any) error {
	for _, text := range texts {
		if _, err := tx.ExecContext(trusted.Context(ctx, text), text, args...); err != nil {
			return err
		}
	}
	return nil
}
