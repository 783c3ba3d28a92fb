package core

import (
	"context"
	"time"

	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Batch holds the statements of a pgx batch: pgx sends them together, before the first response. Every statement is
// classified before the batch is sent, so that one refusal stops the whole batch.
type Batch struct {
	conn    *Conn
	queued  []queued
	guarded bool // some statement is guarded
	moves   bool // some statement may change the session that the guards of later statements rely on
	joined  bool // the server gets all statements as one SQL string
}

type queued struct {
	*Execution
	guarded bool
	commits bool // the statement may commit guarded statements
	began   time.Time
}

// Reasons why a statement of a batch is refused, or sent without its guard.
const (
	needsOwnMessage = "an earlier statement of the batch may change the session that a guard relies on " +
		"(search_path); send that statement separately"
	needsNoOptions = "in a batch pgx takes no option but a query rewriter; pass plain arguments"
	needsEnd       = "in the simple protocol pgx joins the statements of a batch, and the end of this statement " +
		"can't be found; close its quotes, comments and brackets"
	needsFirstPlace = "an earlier statement of the batch may change standard_conforming_strings, which decides where " +
		"the strings of this statement end; send this statement separately, or pass strings that contain backslashes " +
		"as arguments"
	notObserved = "in a batch an observed statement is sent without its guard, because a failing guard would end " +
		"the other statements"
)

// NewBatch returns an empty batch. joined: the driver joins the statements into one SQL string.
func (s *Conn) NewBatch(joined bool) *Batch {
	s.noteHold()
	return &Batch{conn: s, joined: joined}
}

// Add classifies a statement by its plan, and returns the request to send. After an error no statement of the batch may
// be sent.
func (b *Batch) Add(ctx context.Context, r Request, plan *rewrite.Plan) (Request, error) {
	s := b.conn
	q := queued{Execution: s.apart(r, plan, true)}
	s.reported = nil
	decided, err := q.decideFor(s.context(ctx), b)
	if decided == refused {
		err = s.Explain(ctx, err)
		q.reportFailure(ctx, err)
		return Request{}, err
	}
	q.guarded = decided == guarded
	if decided == passed {
		s.Follow(ctx, q.sent.Query)
		q.commits = mayCommit(q.sent.Query)
	}
	b.moves = b.moves || s.session.Unsettles(q.read.Query)
	b.guarded = b.guarded || q.guarded
	q.began = q.begin()
	b.queued = append(b.queued, q)
	return q.sent, nil
}

// decideFor decides like [Execution.decide], and refuses what isn't possible in a batch.
func (q *queued) decideFor(ctx context.Context, b *Batch) (outcome, error) {
	decided, err := q.decide(ctx)
	if decided == guarded && q.Observes() {
		decided, err = q.unobserved(ctx)
	}
	reason, controls := "", []lang.TxControl(nil)
	if q.conn.hold.on {
		controls, _ = q.conn.txControls(q.read.Query)
	}
	switch {
	case decided == refused:
		return refused, err
	case q.read.options > 0:
		reason = needsNoOptions
	case q.read.Escapes != lex.EscapesUnknown && len(b.queued) > 0 && !b.joined:
		reason = needsFirstPlace
	case decided == guarded && b.moves:
		reason = needsOwnMessage
	case decided == passed && b.joined && !lang.IsWhole(q.conn.settings.profile.Dialect, q.sent.Query):
		reason = needsEnd
	case len(controls) > 0:
		reason = endsAlone
	default:
		return decided, nil
	}
	err = q.registry.unguardable(nil, "", reason)
	q.report(ctx, q.refusal(Refused, err))
	return refused, err
}

// unobserved guards the statement for its enforced tables only, because a batch can't send a failed statement again.
func (q *queued) unobserved(ctx context.Context) (outcome, error) {
	event := q.event(Bypassed)
	event.Reason = notObserved
	decided, err := q.enforceOnly(ctx)
	if decided == refused {
		q.report(ctx, q.refusal(Refused, err))
		return refused, err
	}
	q.note(event)
	return decided, nil
}

// Ready returns nil if the batch may be sent. An error means that nothing was sent. It is driver.ErrBadConn on a lost
// connection.
func (b *Batch) Ready(ctx context.Context) error {
	for i := range b.queued {
		if b.queued[i].guarded {
			err := b.conn.Explain(ctx, b.queued[i].linked(ctx))
			b.queued[i].reportFailure(ctx, err)
			return err
		}
	}
	return ctx.Err()
}

// Guards reports whether statement i was sent with a guard.
func (b *Batch) Guards(i int) bool { return i < len(b.queued) && b.queued[i].guarded }

// Began records that the batch began a transaction that stays open after the batch.
func (b *Batch) Began(ctx context.Context) {
	_ = b.conn.Began(ctx, nil)
	b.conn.guardedTx = b.guarded
}

// ErrorOf returns the application's error for statement i, which ended with err, and reports the outcome to observers.
// affected returns the number of affected rows. An adapter must call ErrorOf once for each statement. The statements
// after the first error were not executed.
func (b *Batch) ErrorOf(
	ctx context.Context, i int, affected interface{ RowsAffected() (int64, error) }, err error,
) error {
	q := &b.queued[i]
	b.conn.reported = nil
	err = b.errorOf(ctx, q, affected, err)
	q.reportFailure(ctx, err)
	return err
}

func (b *Batch) errorOf(
	ctx context.Context, q *queued, affected interface{ RowsAffected() (int64, error) }, err error,
) error {
	s := b.conn
	if !q.guarded {
		err = q.followPassed(ctx, q.commits && b.commits(), err)
		if err != nil && b.guarded && !s.inTx {
			err = s.settle(err, true)
		}
		q.reportSent(ctx, err)
		return s.Explain(ctx, err)
	}
	if err != nil {
		return q.failed(ctx, err)
	}
	s.adapter.Touch()
	q.end(q.began)
	gone := q.InspectResult(ctx, affected)
	q.reportSent(ctx, gone)
	if gone == nil {
		q.ReportGuarded(ctx)
	}
	return s.Explain(ctx, gone)
}

// End returns the application's error if the batch ended with err after the responses to all statements. Outside of a
// transaction the server commits all statements together, and err is its response to that commit.
func (b *Batch) End(ctx context.Context, err error) error {
	s := b.conn
	if typed, raised := s.settings.refusedBySeal(err); raised {
		err = typed
	} else if b.guarded && !s.inTx {
		err = s.settle(err, true)
	}
	err = s.Explain(ctx, err)
	s.ReportFailure(ctx, "COMMIT", err)
	return err
}

// commits reports whether a COMMIT of the batch commits guarded statements.
func (b *Batch) commits() bool { return b.guarded || b.conn.pending || b.conn.guardedTx }

// failed is [Batch.errorOf] for a guarded statement that failed with err.
func (q *queued) failed(ctx context.Context, err error) error {
	q.conn.FollowRollback(err)
	typed, raised := q.outcomeError(ctx, q.outdated(err))
	if !raised {
		q.reportSent(ctx, typed)
	}
	return q.conn.Explain(ctx, typed)
}
