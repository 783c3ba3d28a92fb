package lease

import (
	"database/sql"
	"time"

	"github.com/sqlfence/sqlfence"
)

// An outcome is the result of one attempt.
type outcome struct {
	sent time.Time // when the statement was sent, by the clock of this process
	won  *grant    // nil if the lease was not taken
	live bool      // another holder has the lease
	// session is false if the caller's session has ended, and NULL if the lease belongs to no session of the caller.
	session    sql.NullBool
	notifies   bool          // the statement that releases the lease will send a notification
	committing bool          // a statement that commits was sent, so an error may hide a successful commit
	token      int64         // the newest token of the key in the ledger
	holder     string        // the other holder
	until      sql.NullInt64 // end of the other holder's lease, in µs since 1970
	left       sql.NullInt64 // time until that end, in µs
}

// held returns the outcome for other waiters: nil unless the lease is held.
func (o *outcome) held() *outcome {
	switch {
	case o == nil:
		return nil
	case o.won != nil:
		held := &outcome{live: true, holder: o.won.Holder}
		held.until.Int64, held.until.Valid = o.won.ExpiresAt.UnixMicro(), true
		held.left.Int64, held.left.Valid = o.won.left.Microseconds(), true
		return held
	case !o.live:
		return nil
	}
	return o
}

func (o *outcome) scan(rows *sql.Rows) error {
	var w wonRow
	if err := rows.Scan(o.fields(&w)...); err != nil {
		return err
	}
	o.won = w.grant()
	return nil
}

func (o *outcome) fields(w *wonRow) []any {
	return append([]any{&o.live, &o.session, &o.notifies, &o.token, &o.holder, &o.until, &o.left}, w.fields()...)
}

// scanWon reads a row that has only the columns of a wonRow.
func (o *outcome) scanWon(rows *sql.Rows) error {
	var w wonRow
	if err := rows.Scan(w.fields()...); err != nil {
		return err
	}
	o.won, o.session = w.grant(), sql.NullBool{Bool: true, Valid: true}
	return nil
}

// A grant is a lease that was taken.
type grant struct {
	Info
	left     time.Duration // time from the grant to the lease's end, by the database's clock
	deadline time.Time     // the lease's end by this process's clock, never later than by the server's clock
}

// A wonRow has the columns of a taken lease. They are NULL if the attempt took no lease.
type wonRow struct {
	key, lockID, holder   sql.NullString
	token, acquired, ends sql.NullInt64
	ephemeral             sql.NullBool
	left                  sql.NullInt64
}

func (w *wonRow) fields() []any {
	return []any{&w.key, &w.lockID, &w.holder, &w.token, &w.acquired, &w.ends, &w.ephemeral, &w.left}
}

func (w *wonRow) grant() *grant {
	if !w.lockID.Valid {
		return nil
	}
	return &grant{
		Info: Info{
			Key:        w.key.String,
			LockID:     w.lockID.String,
			Holder:     shown(w.holder.String),
			Token:      sqlfence.Token{Name: w.key.String, Value: w.token.Int64},
			AcquiredAt: time.UnixMicro(w.acquired.Int64),
			ExpiresAt:  time.UnixMicro(w.ends.Int64),
			Ephemeral:  w.ephemeral.Bool,
		},
		left: time.Duration(w.left.Int64) * time.Microsecond,
	}
}

// scanTimes reads a row with the end of a lease and the time from now to the end.
func scanTimes(rows *sql.Rows) (until time.Time, left time.Duration, err error) {
	var at, in int64
	err = rows.Scan(&at, &in)
	return time.UnixMicro(at), time.Duration(in) * time.Microsecond, err
}
