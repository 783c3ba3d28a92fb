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
// A process may lose the lease and win it again, while another process has written. Elected can't write under a later
// leadership, because its context has the token, and a transaction that spans two leaderships is refused. Any other
// goroutine must, before it reads, pass the token of [Election.Lease] to [sqlfence.WithFence].
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
	// Run, or by [Election.Resign]. Elected must return then; no new campaign starts before.
	Elected func(ctx context.Context)

	// Short is called when heartbeats fail and a third of the TTL is left (docs/leases.md). err is the last
	// heartbeat's, or nil without a response.
	Short func(left time.Duration, err error)

	// Lost is called once, with a [*LostError].
	Lost func(err error)
}

// NewElection returns an election of key. The terms override the defaults of the Leases that Run is called with. Of the
// terms about waiting, only [Backoff] and [Interval] have an effect. Errors are [ErrInvalid].
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

// Run campaigns until this process is the leader, and again after a loss. When ctx ends, Run releases the lease after
// Elected has returned, and returns nil. It must not be called concurrently. Run logs a failure of the database and
// tries again within 5 s. It returns [ErrInvalid], [sqlfence.ErrTokenLimit], [ErrNoSessions], [*sqlfence.SetupError],
// and the error of a closed database.
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
			poll.Rest(ctx, 2*longestBackoff)
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

// IsLeader reports whether this process is the leader.
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

// TokensOf helps to implement a [sqlfence.WithTokenSource] for another library's election: held is the lease that this
// process won last, or nil, and key the lease's key. If a write needs a token of key (names contains key or, for a
// table with [sqlfence.Key], "books/" for the key "books/42"), the result is held's token, or a [*NotLeaderError] if
// held has ended. Otherwise the result is empty.
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
		l, err := m.waitInQueue(ctx, r)
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
		pause = min(2*pause, longestBackoff)
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

// A leadership is the time of one lease of an election.
type leadership struct {
	lease *Lease
	ctx   context.Context // until the work is to end
	end   context.CancelCauseFunc
}

// lead leads until the lease is lost or given up and Elected has returned. It reports whether Resign was called.
func (e *Election) lead(ctx context.Context, l *Lease, r *request) (resigned bool) {
	stop := l.heartbeats(ctx, r)
	defer stop() // if a callback panics, the lease ends with its ttl
	inner, end := context.WithCancelCause(l.ctx.Context)
	p := &leadership{lease: l, ctx: &leaseContext{inner, l}, end: end}
	e.current.Store(p)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if e.on.Elected != nil {
			e.on.Elected(p.ctx)
		}
	}()
	told := e.attend(p, worked, (r.ttl-r.margin-r.beat())/2)
	stop()
	if lost := l.finishDo(ctx); lost != nil && !told {
		e.reportLost(lost)
	}
	resigned = errors.Is(context.Cause(p.ctx), ErrReleased)
	p.end(ErrReleased) // lets go of the contexts
	return resigned
}

// attend waits until the leadership p has ended and worked is closed. It calls [Callbacks].Short when less time than
// near is left, and reports whether it has called [Callbacks].Lost.
func (e *Election) attend(p *leadership, worked <-chan struct{}, near time.Duration) (told bool) {
	l := p.lease
	short, warned := time.NewTimer(l.left()-near), false
	defer short.Stop()
	ended, lost := p.ctx.Done(), l.Done()
	for ended != nil || worked != nil {
		select {
		case <-ended:
			ended = nil
		case <-worked:
			worked = nil
		case <-lost:
			lost = nil
			if err := l.Err(); errors.Is(err, ErrLeaseLost) {
				e.reportLost(err)
				told = true
			}
		case <-short.C:
			left := l.left()
			l.mu.Lock()
			err := l.lastErr
			l.mu.Unlock()
			switch {
			case left > near:
				warned = false
				short.Reset(left - near)
			case left > 0: // else it is lost
				if !warned && e.on.Short != nil {
					e.on.Short(left, err)
				}
				warned = true
				short.Reset(left) // by then it is extended, or lost
			}
		}
	}
	return told
}

func (e *Election) reportLost(err error) {
	if e.on.Lost != nil {
		e.on.Lost(err)
	}
}
