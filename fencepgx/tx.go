package fencepgx

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// Begin begins a transaction.
func (c *Conn) Begin(ctx context.Context) (pgx.Tx, error) { return c.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx begins a transaction with options. Its statements without a token in their context have the tokens of ctx.
func (c *Conn) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	return c.begin(ctx, opts, nil)
}

func (c *Conn) begin(ctx context.Context, opts pgx.TxOptions, release func()) (pgx.Tx, error) {
	s := c.session
	if err := s.checkOptions(ctx, opts); err != nil {
		s.state.ReportFailure(ctx, "BEGIN", err)
		return nil, err
	}
	if err := s.state.BeforeTx(ctx, opts.AccessMode == pgx.ReadOnly); err != nil {
		return nil, s.noted(err)
	}
	inner, err := s.adapter.conn.BeginTx(ctx, opts)
	if err = s.state.Began(ctx, err); err != nil {
		return nil, s.noted(err)
	}
	return &tx{conn: c, inner: inner, saved: new(int), release: release}, nil
}

// checkOptions refuses a write in the SQL that begins or ends the transaction, because pgx sends this SQL without a
// guard. It also records that the SQL may change settings of the session, which guards depend on.
func (s *session) checkOptions(ctx context.Context, opts pgx.TxOptions) error {
	for _, text := range []string{beginText(opts), cmp.Or(opts.CommitQuery, "commit"), "rollback"} {
		// Any EXECUTE is refused, because its name may stand for another statement when the transaction is committed.
		if plan := s.state.Rewriter().Plan(text); plan.Verdict != guard.Pass || s.state.MayExecute(text) {
			return &sqlfence.UnguardableError{Offset: -1,
				Reason: "the transaction's options hold a statement that writes to a " +
					"registered table, or an EXECUTE; send it by itself, in the transaction"}
		}
		if err := s.adapter.isNoName(text); err != nil {
			return err
		}
		s.state.Follow(ctx, text)
	}
	return nil
}

// beginText returns the text that pgx begins a transaction with.
func beginText(opts pgx.TxOptions) string {
	if opts.BeginQuery != "" {
		return opts.BeginQuery
	}
	text := "begin"
	if opts.IsoLevel != "" {
		text += " isolation level " + string(opts.IsoLevel)
	}
	if opts.AccessMode != "" {
		text += " " + string(opts.AccessMode)
	}
	if opts.DeferrableMode != "" {
		text += " " + string(opts.DeferrableMode)
	}
	return text
}

// A tx is a transaction, or a savepoint in one.
type tx struct {
	conn      *Conn
	inner     pgx.Tx
	saved     *int   // how many savepoints the transaction has had
	parent    *tx    // the transaction in which a savepoint was set; nil for a transaction
	savepoint string // the name of the savepoint
	release   func() // releases the connection; nil to keep it
	closed    bool
}

var _ pgx.Tx = (*tx)(nil)

// over reports whether the transaction or an outer one has ended, or the connection was released. The pool closes a
// connection that is released in a transaction.
func (t *tx) over() bool {
	return t.closed || t.conn.session == nil || t.parent != nil && t.parent.over()
}

// Begin sets a savepoint.
func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.over() {
		return nil, pgx.ErrTxClosed
	}
	for _, text := range []string{"savepoint", "release savepoint", "rollback to savepoint"} {
		if err := t.conn.session.adapter.isNoName(fmt.Sprintf("%s sp_%d", text, *t.saved+1)); err != nil {
			t.conn.session.state.ReportFailure(ctx, "SAVEPOINT", err)
			return nil, err
		}
	}
	*t.saved++
	inner, err := t.inner.Begin(ctx)
	if err != nil {
		return nil, t.conn.session.state.Explain(ctx, err)
	}
	nested := &tx{conn: t.conn, inner: inner, saved: t.saved, parent: t, savepoint: fmt.Sprintf("sp_%d", *t.saved)}
	nested.follow(lang.SetSavepoint)
	return nested, nil
}

func (t *tx) follow(verb lang.TxVerb) {
	t.conn.session.state.FollowSavepoint(lang.TxControl{Verb: verb, Name: t.savepoint})
}

// An ending adapts a transaction for the core's Commit and Rollback.
type ending struct {
	ctx   context.Context
	inner pgx.Tx
}

func (e ending) Commit() error   { return e.inner.Commit(e.ctx) }
func (e ending) Rollback() error { return e.inner.Rollback(e.ctx) }

// Commit returns [sqlfence.ErrUnknownOutcome] if the COMMIT of a guarded write got no response.
func (t *tx) Commit(ctx context.Context) error {
	if t.over() {
		return pgx.ErrTxClosed
	}
	defer t.end()
	s := t.conn.session
	if t.parent != nil {
		t.follow(lang.ReleaseSavepoint)
		return s.state.Explain(ctx, t.inner.Commit(ctx))
	}
	return s.noted(s.state.Commit(ctx, ending{ctx, t.inner}))
}

func (t *tx) Rollback(ctx context.Context) error {
	if t.over() {
		return pgx.ErrTxClosed
	}
	defer t.end()
	if t.parent != nil {
		t.follow(lang.RollbackToSavepoint)
		return t.inner.Rollback(ctx)
	}
	return t.conn.session.noted(t.conn.session.state.Rollback(ending{ctx, t.inner}))
}

func (t *tx) end() {
	t.closed = true
	if t.release != nil {
		t.release()
	}
}

func (t *tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if t.over() {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	return t.conn.Exec(ctx, sql, args...)
}

func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.over() {
		return failedRows{pgx.ErrTxClosed}, pgx.ErrTxClosed
	}
	return t.conn.Query(ctx, sql, args...)
}

func (t *tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	got, _ := t.Query(ctx, sql, args...) // the rows have the error
	return row{got}
}

func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.over() {
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	}
	if pgx.FailedBatchResults(b, nil).Tx() != nil { // the batch's COMMIT would commit t
		return pgx.FailedBatchResults(b, errors.New("Batch.BeginTx cannot be used within a transaction")) // as pgx says it
	}
	return t.conn.SendBatch(ctx, b)
}

func (t *tx) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource,
) (int64, error) {
	if t.over() {
		return 0, pgx.ErrTxClosed
	}
	return t.conn.CopyFrom(ctx, table, columns, src)
}

func (t *tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if t.over() {
		return nil, pgx.ErrTxClosed
	}
	return t.conn.Prepare(ctx, name, sql)
}

func (t *tx) LargeObjects() pgx.LargeObjects { return t.inner.LargeObjects() }

// Conn returns the connection, which isn't guarded. The observer gets a [sqlfence.RawAccess] event.
func (t *tx) Conn() *pgx.Conn {
	if t.over() {
		return t.inner.Conn()
	}
	return t.conn.session.raw()
}
