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

// An Election makes one process at a time the leader, among the processes that run an Election with the same key, and
// gives the token of the key's lease to all of the leader's writes. Other processes get an error before such a write is
// sent.
//
//	election, err := lease.NewElection("jobs", lease.Callbacks{Elected: work})
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("jobs"), sqlfence.WithTokenSource(election.Tokens))
//	leases, err := lease.New(db)
//	err = election.Run(ctx, leases)
//
// If a process loses the lease and wins it again, a write must not depend on data from before. Elected and transactions
// are safe; other goroutines must pass the token of [Election.Lease] to [sqlfence.WithFence] before they read.
//
// An Election is safe for concurrent use. The zero value can't be used.
type Election struct {
	key     string
	terms   []Term
	on      Callbacks
	running atomic.Bool
	current atomic.Pointer[leadership] // the last one; nil before the first
}

// Callbacks are the functions that an [Election] calls. Each may be nil. Short and Lost aren't called concurrently, and
// must return soon.
type Callbacks struct {
	// Elected is called once in a leadership, on a new goroutine. ctx carries the token and ends with the lease, with
	// Run, or by [Election.Resign]; its cause is the reason. Elected must return then; no new campaign starts before.
	Elected func(ctx context.Context)

	// Short is called when heartbeats fail and a third of the TTL is left (docs/leases.md). err is the last heartbeat's
	// error, or nil without a response.
	Short func(left time.Duration, err error)

	// Lost is called once, with a [*LostError].
	Lost func(err error)
}

// NewElection returns an election of key. The terms override the defaults of Run's Leases. Of the terms about waiting,
// only [Backoff] and [Interval] count. Errors are [ErrInvalid].
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

// Run campaigns until this process is the leader, extends the lease, and campaigns again after a loss. When ctx ends,
// Run releases the lease after Elected has returned, and returns nil. It must not be called concurrently. Failures of
// the database are logged and repeated after at most 5 s, except [ErrInvalid], [sqlfence.ErrTokenLimit],
// [ErrNoSessions], [*sqlfence.SetupError], and a closed database.
func (e *Election) Run(ctx context.Context, leases *Leases) error {
	if !e.running.CompareAndSwap(false, true) {
		return invalid("the election of %q is running already", e.key)
	}
	defer e.running.Store(false)
	for {
		l, r, err := e.campaign(ctx, leases)
		if err != nil || ctx.Err() != nil {
			if l != nil { // it came too late
				_ = l.finishDo(ctx)
			}
			return err
		}
		if resigned := e.lead(ctx, l, r); resigned && ctx.Err() == nil {
			poll.Rest(ctx, 2*longestPause)
		}
	}
}

// Resign ends the context of Elected with [ErrReleased], and releases the lease when Elected has returned. Run
// campaigns again 10 s later.
func (e *Election) Resign() {
	if p := e.current.Load(); p != nil {
		p.end(ErrReleased)
	}
}

// IsLeader reports whether this process is the leader, for display.
func (e *Election) IsLeader() bool {
	p := e.current.Load()
	return p != nil && p.ctx.Err() == nil
}

// Lease returns the leadership's lease, or a [*NotLeaderError]. Releasing it resigns at once.
func (e *Election) Lease() (*Lease, error) {
	held := e.last()
	if err := leads(held, e.key); err != nil {
		return nil, err
	}
	return held, nil
}

// Tokens is a source for [sqlfence.WithTokenSource]: [TokensOf] of the current lease.
func (e *Election) Tokens(_ context.Context, names []string) ([]sqlfence.Token, error) {
	return TokensOf(e.last(), e.key, names)
}

// TokensOf implements a token source for another election. held is its last lease, or nil. If names contains key, or
// "books/" for the key "books/42", TokensOf returns the token, or a [*NotLeaderError] without a live lease.
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

// leads returns why a process with this last lease isn't the leader.
func leads(held *Lease, key string) error {
	if held == nil {
		return &NotLeaderError{Key: key}
	}
	if err := held.Err(); err != nil {
		return &NotLeaderError{key, err}
	}
	return nil
}

func (e *Election) last() *Lease {
	if p := e.current.Load(); p != nil {
		return p.lease
	}
	return nil
}

// campaign waits for the lease. If ctx has ended, it returns neither a lease nor an error.
func (e *Election) campaign(ctx context.Context, m *Leases) (*Lease, *request, error) {
	for pause := defaultBackoff; ctx.Err() == nil; {
		r, err := m.request(e.key, e.terms)
		if err != nil {
			return nil, nil, err
		}
		r.retries, r.limit = math.MaxInt, campaignRound
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
		m.log().Warn("lease: an attempt to become the leader failed, and is repeated", "key", e.key, "err", err)
		poll.Rest(ctx, pause-randomly(pause/2))
		pause = min(2*pause, longestPause)
	}
	return nil, nil, nil
}

// campaignRound is how long a candidate waits in line before it begins again, because its connection may be dead.
const campaignRound = 30 * time.Second

// isFinal reports whether another campaign would fail in the same way.
func isFinal(err error) bool {
	var setup *sqlfence.SetupError
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoSessions) || errors.Is(err, sqlfence.ErrTokenLimit) ||
		errors.As(err, &setup) || dberr.IsClosed(err)
}

// A NotLeaderError reports that the process isn't the leader. It is [ErrNotLeader].
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

func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }

// Unwrap returns a [*LostError] or [ErrReleased], or nil before the first leadership.
func (e *NotLeaderError) Unwrap() error { return e.err }
