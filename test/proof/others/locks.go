package others

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// refused reports whether the error is the database's own: nothing was written.
func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code[:2] != "57" && e.Code[:2] != "08"
}

// lockByServer takes a lock that ends by the server's clock, with the next token: as it should be.
func lockByServer(ctx context.Context, h *holder) (token int64, ok bool, err error) {
	const query = `UPDATE locks SET holder = $1, token = token + 1, expires = clock_timestamp() + $2 * interval '1 ms'
WHERE name = $3 AND (expires < clock_timestamp()) RETURNING token`
	return one(h.db.QueryRowContext(ctx, query, h.lock, h.ttl.Milliseconds(), h.name))
}

// lockByClient does so by the clock of the process.
func lockByClient(ctx context.Context, h *holder) (token int64, ok bool, err error) {
	const query = `UPDATE locks SET holder = $1, token = token + 1, expires = $2 WHERE name = $3 AND expires < $4 RETURNING token`
	return one(h.db.QueryRowContext(ctx, query, h.lock, h.until, h.name, h.now()))
}

// lockByOwner gives a process that has the lock the lock again.
func lockByOwner(ctx context.Context, h *holder) (token int64, ok bool, err error) {
	const query = `UPDATE locks SET holder = $1, token = token + 1, expires = clock_timestamp() + $2 * interval '1 ms'
WHERE name = $3 AND (expires < clock_timestamp() OR holder = $1) RETURNING token`
	return one(h.db.QueryRowContext(ctx, query, h.owner(), h.ttl.Milliseconds(), h.name))
}

func unlock(ctx context.Context, h *holder) error {
	_, err := h.db.ExecContext(ctx, "UPDATE locks SET expires = '-infinity' WHERE name = $1 AND holder IN ($2, $3)", h.name, h.lock, h.owner())
	return err
}

func one(row *sql.Row) (value int64, ok bool, err error) {
	err = row.Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return value, err == nil, err
}

// A doer is a pool or a transaction.
type doer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(ctx context.Context, db doer, query string, args ...any) (int64, error) {
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// ask returns the one value of a query.
func ask[T any](ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string, args ...any) (value T, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(&value)
	return value, err
}

// inTx commits what do writes.
func inTx(ctx context.Context, h *holder, do func(tx *sql.Tx) (int64, error)) (int64, error) {
	tx, err := h.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, errors.Join(errStale, err) // nothing was sent
	}
	rows, err := do(tx)
	if err != nil || rows == 0 {
		_ = tx.Rollback()
		return 0, errors.Join(errStale, err)
	}
	return rows, tx.Commit()
}
