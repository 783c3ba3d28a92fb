package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A request is what one call asks for.
type request struct {
	key, lockID string
	*terms
	session sql.NullInt64
}

// An outcome is what one attempt came to: the lease, or what stands in its way.
type outcome struct {
	won  *grant // nil if the lease was not taken
	live bool   // another holds it
	// session is false if the caller's own session has ended.
	session bool
	// committing: from here on an error may hide a commit.
	committing bool
	token      int64 // the ledger's
	holder     string
	until      sql.NullInt64 // µs since 1970
	left       sql.NullInt64 // µs
}

// held returns the outcome as it is for others: nil if the lease is free, for all that
// is known.
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

// A grant is a lease that was taken.
type grant struct {
	Info
	left time.Duration // how long it lived when the database had granted it
	// deadline is when it ends unless it is extended, by the clock of this process:
	// never later than by the server's.
	deadline time.Time
}

// undoLimit is how long the statement of an attempt that its caller has left is
// given to come to an end by itself, and how long one try to undo it may take.
const (
	undoLimit = 2 * time.Second
	undoPause = 50 * time.Millisecond
)

// attempt asks for a lease once. If ctx ends it returns at once; what the
// statement may still take is then given back in the background.
func (l *Leases) attempt(ctx context.Context, r *request) (*outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type answer struct {
		*outcome
		unknown bool // it may have taken the lease in spite of err
		err     error
	}
	// A driver may answer a cancelled context before the database has read the
	// statement. So the statement doesn't see ctx end: it is waited for.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan answer, 1)
	go func() {
		o, unknown, err := l.send(sending, r)
		answered <- answer{o, unknown, err}
	}()
	select {
	case a := <-answered:
		cancel()
		if a.unknown {
			go l.undo(ctx, r)
		}
		return a.outcome, a.err
	case <-ctx.Done():
		go func() {
			defer cancel()
			select {
			case a := <-answered:
				if !a.unknown && a.outcome == nil || a.err == nil && a.won == nil {
					return
				}
			case <-time.After(undoLimit):
				cancel()
				<-answered
			}
			l.undo(ctx, r)
		}()
		return nil, ctx.Err()
	}
}

// undo releases what an attempt may have taken. It goes on trying until the
// lease would have ended by its ttl.
func (l *Leases) undo(ctx context.Context, r *request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.ttl)
	defer cancel()
	for pause := undoPause; ; pause = min(2*pause, undoLimit) {
		try, cancel := context.WithTimeout(ctx, undoLimit)
		_, err := l.exec(try, l.sql.undo, r.key, r.lockID)
		cancel()
		if err == nil {
			l.lines.wake(r.key)
			return
		}
		if isClosed(err) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			l.log().Debug("lease: an attempt with an unknown outcome wasn't undone; what it took has ended with its ttl",
				"key", r.key, "ttl", r.ttl, "err", err)
			return
		}
	}
}

// send asks for a lease by one statement, on SQLite by one transaction. With an
// error it reports whether the lease may have been taken all the same.
func (l *Leases) send(ctx context.Context, r *request) (_ *outcome, unknown bool, _ error) {
	var o outcome
	start := time.Now()
	err := retry(func() error {
		start, o = time.Now(), outcome{}
		if l.dialect == sqlfence.Postgres {
			o.committing = true
			for {
				err := l.sendFloored(ctx, l.sql.acquire, func(text string) error {
					return queryOnce(ctx, l.db, o.scan, text,
						r.key, r.lockID, r.owner, r.ttl.Microseconds(), r.session, r.refresh)
				})
				if !sqltext.IsUnseen(err) {
					return err
				}
				if err := l.ledger.Ensure(ctx, r.key); err != nil {
					return err
				}
				start = time.Now()
			}
		}
		return l.sendSQLite(ctx, r, &o)
	})
	switch {
	case err != nil:
		return nil, o.committing && mayHaveCommitted(err), err
	case o.won != nil:
		// What is left is what was left when the answer was made, at the earliest
		// when the statement was sent.
		o.won.deadline = start.Add(o.won.left)
	case !o.live && o.token >= sqlfence.MaxToken:
		return nil, false, fmt.Errorf("%w: %q stands at %d", sqlfence.ErrTokenLimit, r.key, o.token)
	case !o.live && o.token < 0:
		return nil, false, fmt.Errorf("the table fencing_tokens holds the negative token %d, which no one has issued: correct it by hand", o.token)
	}
	return &o, false, nil
}

func (l *Leases) sendSQLite(ctx context.Context, r *request, o *outcome) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// It begins with a write, and so has the file for itself from there on.
	if err := queryOnce(ctx, tx, o.scanWon, l.sql.take, r.key, r.lockID, r.owner, r.ttl.Microseconds()); err != nil {
		return err
	}
	if o.won != nil {
		if _, err := tx.ExecContext(own.Context(ctx, l.sql.ledger), l.sql.ledger, r.key, o.won.Token.Value); err != nil {
			return err
		}
		o.committing = true
		return tx.Commit()
	}
	if err := queryOnce(ctx, tx, o.scan, l.sql.seen, r.key); err != nil {
		return err
	}
	if !o.live || r.owner == "" || o.holder != r.owner {
		o.won = nil
		return nil
	}
	if r.refresh {
		scan := func(rows *sql.Rows) error {
			until, left, err := scanTimes(rows)
			o.won.ExpiresAt, o.won.left = until, left
			return err
		}
		if err := queryOnce(ctx, tx, scan, l.sql.extend, r.ttl.Microseconds(), o.won.LockID); err != nil {
			return err
		}
	}
	o.committing = true
	return tx.Commit()
}

// scan reads the row that tells what was seen and what was won.
func (o *outcome) scan(rows *sql.Rows) error {
	var w wonRow
	if err := rows.Scan(append([]any{&o.live, &o.session, &o.token, &o.holder, &o.until, &o.left}, w.fields()...)...); err != nil {
		return err
	}
	o.won = w.grant()
	return nil
}

// scanWon reads the row that tells only what was won.
func (o *outcome) scanWon(rows *sql.Rows) error {
	var w wonRow
	if err := rows.Scan(w.fields()...); err != nil {
		return err
	}
	o.won, o.session = w.grant(), true
	return nil
}

// A wonRow is a lease in a row that may be without one.
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
			Holder:     w.holder.String,
			Token:      sqlfence.Token{Name: w.key.String, Value: w.token.Int64},
			AcquiredAt: time.UnixMicro(w.acquired.Int64),
			ExpiresAt:  time.UnixMicro(w.ends.Int64),
			Ephemeral:  w.ephemeral.Bool,
		},
		left: time.Duration(w.left.Int64) * time.Microsecond,
	}
}
