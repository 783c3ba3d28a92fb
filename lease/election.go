package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/poll"
)

// An Election has one process at a time lead, among all that run one of the same key: the
// one that holds the lease of the key. It is made before the database is, so that its
// [Election.Tokens] can be the database's source of tokens (see [sqlfence.WithTokenSource]): then
// every write of the process that needs the key's token has it, also one without a context.
//
//	election, err := lease.NewElection("jobs", lease.Callbacks{Elected: work})
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("jobs"), sqlfence.WithTokenSource(election.Tokens))
//	leases, err := lease.New(db)
//	err = election.Run(ctx, leases)
//
// Processes that don't lead, or lead no more, get an error for such writes before anything
// is sent. That counts by this process's clock, as described at [Lease]; a write that is on
// its way when the lease ends is for the database to judge, by its token.
//
// Between losing the key and leading again another may have led. What this process had read
// before, it must not write with its next token. So it campaigns again only when
// Elected has returned; and a transaction can't go on under another token than it began
// with. Other work that reads and then writes should take the token before it reads:
// [sqlfence.WithFence] with the token of [Election.Lease].
//
// [NewElection] returns one; the zero value can't be used. It is safe for concurrent use.
type Election struct {
	key     string
	terms   []Term
	on      Callbacks
	running atomic.Bool
	current atomic.Pointer[leadership] // the last one; nil before the first
}

// Callbacks tell the process what becomes of its leadership; each may be nil. For one
// leadership Elected is called once, and Lost at most once. Short and Lost are called by
// [Election.Run] one after the other, and should return soon.
type Callbacks struct {
	// Elected is called on a goroutine of its own when this process begins to lead. ctx
	// carries the token, and ends when the lease does, when [Election.Run]'s context ends,
	// or by [Election.Resign]; as with [Lease.Context] its cause says why. Then Elected
	// should return: until it has, the lease is kept, unless it is lost, and this process
	// doesn't campaign again. If it returns before, the process leads on.
	Elected func(ctx context.Context)

	// Short is called when heartbeats have failed for so long that little time is left to
	// the lease: half of what is left when a heartbeat is due, by default a third of the
	// ttl without its [Margin]. err is the last heartbeat's error, nil if there is no
	// answer yet. It is called again only if the lease has been extended in between.
	Short func(left time.Duration, err error)

	// Lost is called when the lease is lost, with a [*LostError], which is [ErrLeaseLost]. It
	// isn't called when the process resigns. Writes fail before that.
	Lost func(err error)
}

// NewElection returns an election of key. The terms are those of its leases; they override
// the defaults of the [Leases] that it is run with. A campaign waits as long as it takes, so
// of the terms about waiting only the pauses count: [Backoff], and [Interval].
// [Resume] lets a process have its lease back after a restart. Errors are [ErrInvalid], for the key or the terms.
func NewElection(key string, on Callbacks, terms ...Term) (*Election, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return nil, err
	}
	if _, err := newTerms(terms); err != nil {
		return nil, invalid("%w", err)
	}
	return &Election{key: key, terms: terms, on: on}, nil
}

// Run campaigns until this process leads, keeps the lease by heartbeats as [Leases.Do] does,
// and campaigns again when it has been lost, until ctx ends. Then it releases the lease, if
// Elected has returned, and returns nil. Failures of the database are logged, and tried
// again after pauses of up to 5 s. When Run has returned it may be called again, but not by
// two at once.
//
// Errors are what trying again doesn't change: [ErrInvalid], also if the election is
// running already; [sqlfence.ErrTokenLimit]; [ErrNoSessions]; a [*sqlfence.SetupError] if a table is missing
// (see [Leases.Setup]); and that the database is closed.
func (e *Election) Run(ctx context.Context, leases *Leases) error {
	if !e.running.CompareAndSwap(false, true) {
		return invalid("the election of %q is running already", e.key)
	}
	defer e.running.Store(false)
	for {
		l, r, err := e.campaign(ctx, leases)
		if err != nil || ctx.Err() != nil {
			l.abandon(ctx)
			return err
		}
		if resigned := e.lead(ctx, l, r); resigned && ctx.Err() == nil {
			poll.Rest(ctx, 2*longestPause)
		}
	}
}

// Resign gives up the leadership, if this process has it, so that another can have it:
// Elected's context ends with [ErrReleased] as its cause, and when Elected has returned, the
// lease is released. Run campaigns again 10 s later. To give up for good, end Run's context.
func (e *Election) Resign() {
	if p := e.current.Load(); p != nil {
		p.end(ErrReleased)
	}
}

// IsLeader reports whether this process leads and has not been asked to stop: false before
// [Election.Run] as well. It looks at the clock, as [Lease.Err] does. By the time that the answer is read it
// may be outdated: what depends on it needs the token.
func (e *Election) IsLeader() bool {
	p := e.current.Load()
	return p != nil && p.ctx.Err() == nil
}

// Lease returns the lease of this process, also while Elected comes to its end. Its end,
// [Lease.Done], is that of the leadership; to release it is to resign without waiting for
// Elected. The error is a [*NotLeaderError].
func (e *Election) Lease() (*Lease, error) {
	held := e.last()
	if err := leads(held, e.key); err != nil {
		return nil, err
	}
	return held, nil
}

// Tokens is a source of tokens, for [sqlfence.WithTokenSource]: [TokensOf] of this process's lease.
func (e *Election) Tokens(_ context.Context, names []string) ([]sqlfence.Token, error) {
	return TokensOf(e.last(), e.key, names)
}

// TokensOf returns what a source for [sqlfence.WithTokenSource] does that stands on the lease of a key: its token if names
// asks for it, by the key, or if the key is of a row, "books/42", by "books/"; and nothing for other names. held is the
// last lease that the process has got, nil for none. If it doesn't hold it now, the error is a [*NotLeaderError], which
// is [ErrLeaseLost], too, if it has lost it. It is for elections by other packages; [Election.Tokens] is that of this
// one's.
func TokensOf(held *Lease, key string, names []string) ([]sqlfence.Token, error) {
	for _, name := range names {
		if name == key || strings.HasSuffix(name, "/") && strings.HasPrefix(key, name) {
			if err := leads(held, key); err != nil {
				return nil, err
			}
			return held.tokens, nil
		}
	}
	return nil, nil
}

// leads returns why a process doesn't lead that has got a lease last, or none.
func leads(held *Lease, key string) error {
	if held == nil {
		return &NotLeaderError{Key: key}
	}
	if err := held.Err(); err != nil {
		return &NotLeaderError{key, err}
	}
	return nil
}

// last returns the lease of this process's last leadership, or nil.
func (e *Election) last() *Lease {
	if p := e.current.Load(); p != nil {
		return p.lease
	}
	return nil
}

// campaign waits for the lease. There is neither a lease nor an error if ctx has ended.
func (e *Election) campaign(ctx context.Context, m *Leases) (*Lease, *request, error) {
	for pause := defaultBackoff; ctx.Err() == nil; {
		r, err := m.request(e.key, e.terms)
		if err != nil {
			return nil, nil, err
		}
		r.waitRound()
		l, err := m.waitInLine(ctx, r)
		switch {
		case err == nil:
			return l, r, nil
		case ctx.Err() != nil:
			return nil, nil, nil
		case isFinal(err):
			return nil, nil, err
		case errors.Is(err, ErrHeld):
			continue
		}
		m.log().Warn("lease: a campaign failed, and goes on", "key", e.key, "err", err)
		poll.Rest(ctx, pause-randomly(pause/2))
		pause = min(2*pause, longestPause)
	}
	return nil, nil, nil
}

// campaignRound is how long a candidate waits in line before it begins anew, so that it
// doesn't wait for ever for an answer on a connection that is dead.
const campaignRound = 30 * time.Second

// waitRound leaves the pauses as they are, and sets the limits to a round.
func (t *terms) waitRound() {
	t.retries, t.limit = math.MaxInt, campaignRound
}

// isFinal reports whether a campaign that failed with err would fail again.
func isFinal(err error) bool {
	var setup *sqlfence.SetupError
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoSessions) || errors.Is(err, sqlfence.ErrTokenLimit) ||
		errors.As(err, &setup) || dberr.IsClosed(err)
}

// A NotLeaderError says that a process doesn't lead. It is [ErrNotLeader], and wraps why
// its last lease has ended: a [*LostError], [ErrReleased], or nil if it hasn't led yet.
type NotLeaderError struct {
	Key string

	err error
}

func (e *NotLeaderError) Error() string {
	text := fmt.Sprintf("%v: key %q", ErrNotLeader, e.Key)
	if e.err != nil {
		text += ": " + strings.TrimPrefix(e.err.Error(), "lease: ")
	}
	return text
}

// Is reports whether target is [ErrNotLeader].
func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }

// Unwrap returns why this process leads no more, or nil.
func (e *NotLeaderError) Unwrap() error { return e.err }

// Temporary returns false: the same work can go on only if this process is elected again.
func (e *NotLeaderError) Temporary() bool { return false }
