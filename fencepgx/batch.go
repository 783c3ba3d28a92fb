package fencepgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
)

// SendBatch sends statements together, each with its guard. If one is refused before sending, nothing is sent, and all
// results have that error. If the database refuses one, later statements aren't executed, and earlier ones are undone
// unless they were committed. A write that found no row at its version ([sqlfence.ErrGone]) fails alone.
//
// In Observe mode a batch's statements are sent as they were written, with a [sqlfence.Bypassed] event.
func (c *Conn) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	got, err := c.sendBatch(ctx, b, nil)
	if err != nil {
		c.session.state.ReportFailure(ctx, "BATCH", err)
		return pgx.FailedBatchResults(b, err)
	}
	return got
}

func (c *Conn) sendBatch(ctx context.Context, b *pgx.Batch, release func()) (pgx.BatchResults, error) {
	s := c.session
	if err := s.checkBegins(ctx, b); err != nil {
		return nil, err
	}
	decided := s.state.NewBatch(s.simple)
	got := &results{ctx: ctx, session: s, decided: decided, release: release}
	sent := *b // with the options of b's transaction, and without the state that pgx keeps in a query
	sent.QueuedQueries = make([]*pgx.QueuedQuery, len(b.QueuedQueries))
	for i, q := range b.QueuedQueries {
		r, plan := s.request(q.SQL, q.Arguments, nil)
		r, err := decided.Add(ctx, r, plan)
		if err != nil {
			return nil, s.noted(err)
		}
		text, err := s.adapter.text(r)
		if err != nil {
			return nil, err
		}
		sent.QueuedQueries[i] = &pgx.QueuedQuery{SQL: text, Arguments: plain(r.Args)}
		got.calls = append(got.calls, q.Fn)
	}
	if err := decided.Ready(ctx); err != nil {
		return nil, s.noted(err)
	}
	got.inner = s.adapter.conn.SendBatch(ctx, &sent)
	if begun := got.inner.Tx(); begun != nil {
		decided.Began(ctx)
		got.tx = &tx{conn: c, inner: begun, saved: new(int), release: release}
		got.release = nil
	}
	return got, nil
}

// checkBegins checks the options of the transaction that a batch begins. pgx keeps its COMMIT statement in an
// unexported field. Its BEGIN statement is the batch's first statement, and is planned like the others.
func (s *session) checkBegins(ctx context.Context, b *pgx.Batch) error {
	commit, ok := basedriver.BatchCommit(b)
	switch {
	case ok && commit == "":
		return nil
	case ok:
		return s.checkOptions(ctx, pgx.TxOptions{CommitQuery: commit})
	case pgx.FailedBatchResults(b, nil).Tx() == nil:
		return nil
	}
	return &sqlfence.UnguardableError{Offset: -1, Reason: "this version of pgx doesn't show what commits the " +
		"transaction that a batch begins; begin it with BeginTx, and send the batch in it"}
}

type results struct {
	ctx     context.Context
	session *session // also after the Conn was released; the pool then closes the connection
	inner   pgx.BatchResults
	decided *core.Batch
	calls   []func(pgx.BatchResults) error // the callbacks, by the statements
	next    int                            // the next statement
	open    *rows                          // the rows of the last query
	err     error                          // the first error of the batch
	gone    error                          // the first error of a single statement
	closed  bool
	tx      *tx
	release func()
}

// errorOf returns the application's error for statement i, which ended with err. All later statements return the first
// error.
func (r *results) errorOf(i int, tag pgconn.CommandTag, err error) error {
	switch {
	case r.err != nil && err != nil:
		return r.err
	case i >= len(r.calls):
		return err
	}
	got := r.decided.ErrorOf(r.ctx, i, affected(tag.RowsAffected()), err)
	if err != nil {
		r.err = r.session.noted(got)
	} else if got != nil && r.gone == nil {
		r.gone = got
	}
	return got
}

// take returns the number of the next statement.
func (r *results) take() int {
	if r.open != nil { // pgx reads the remaining rows
		r.open.Close()
		r.open = nil
	}
	i := r.next
	r.next = min(i+1, len(r.calls))
	return i
}

func (r *results) Exec() (pgconn.CommandTag, error) {
	i := r.take()
	tag, err := r.inner.Exec()
	if r.closed {
		return tag, err
	}
	return tag, r.errorOf(i, tag, err)
}

func (r *results) Query() (pgx.Rows, error) {
	got, err := r.query()
	if err != nil {
		return failedRows{err}, err
	}
	return got, nil
}

func (r *results) query() (*rows, error) {
	i := r.take()
	inner, err := r.inner.Query()
	switch {
	case r.closed:
		return nil, err
	case err != nil:
		return nil, r.errorOf(i, pgconn.CommandTag{}, err)
	}
	got := &rows{Rows: inner, raw: r.session.state.RawAccess}
	got.endError = func(tag pgconn.CommandTag, err error) error { return r.errorOf(i, tag, err) }
	if r.decided.Guards(i) { // a refusal fails here
		if got.ahead = inner.Next(); !got.ahead {
			if got.end(); got.err != nil {
				return nil, got.err
			}
		}
	}
	r.open = got
	return got, nil
}

func (r *results) QueryRow() pgx.Row {
	got, _ := r.Query() // the rows have the error
	return row{got}
}

// Close reads the remaining results, calls the callbacks, and returns the first error.
func (r *results) Close() error {
	if r.closed {
		return r.err
	}
	var failed error
	for r.next < len(r.calls) && r.err == nil && failed == nil {
		if call := r.calls[r.next]; call != nil {
			failed = call(r)
		} else {
			_, _ = r.Exec() // its error is kept
		}
	}
	r.take()
	err := r.inner.Close()
	r.closed = true
	switch {
	case r.err != nil:
	case failed != nil:
		r.err = failed
	case err != nil:
		r.err = r.decided.End(r.ctx, err)
		if r.gone != nil {
			r.err = errors.Join(r.gone, r.err)
		}
	case r.gone != nil:
		r.err = r.gone
	}
	if r.release != nil {
		r.release()
		r.release = nil
	}
	return r.err
}

// Tx returns the transaction that the batch has begun; nil if it has begun no transaction.
func (r *results) Tx() pgx.Tx {
	if r.tx == nil {
		return nil
	}
	return r.tx
}
