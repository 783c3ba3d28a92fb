package lease

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Defaults and limits of the terms, each of the [Term] that it is named after.
const (
	DefaultTTL     = 30 * time.Second
	defaultRetries = 10
	defaultBackoff = 100 * time.Millisecond
	defaultTimeout = 5 * time.Second

	// maxTTL is the longest ttl.
	maxTTL = 24 * time.Hour

	// maxHolder is the maximum length of an owner's name in bytes.
	maxHolder = 512
)

// A Term is a condition of a lease, given to [Leases.Acquire], [Leases.TryAcquire],
// [Leases.Do] or [WithDefaults]. Terms are checked together: invalid values and
// combinations are [ErrInvalid], and nothing is sent.
type Term func(*terms)

// TTL sets how long a lease lives unless it is extended: 1 ms to 24 h. The default
// is [DefaultTTL].
func TTL(d time.Duration) Term { return func(t *terms) { t.ttl = d } }

// Owner names the holder, and lets it acquire its own lease again: while the lease is
// live, the same owner gets the same lease, with the same token and lock id, and its
// expiry doesn't change (but see [Refresh]). One release ends it for all of them. The
// name must belong to one holder alone: processes that share a name share the lease. It
// is valid UTF-8 of 1 to 512 bytes without NUL. By default a lease has no owner.
func Owner(name string) Term {
	return func(t *terms) { t.owner, t.hasOwner = name, true }
}

// Refresh extends the lease when its owner acquires it again. It needs [Owner].
func Refresh() Term { return func(t *terms) { t.refresh = true } }

// Ephemeral makes a lease on PostgreSQL, MySQL and MariaDB end with its holder's database session, too: at
// once when the process dies or the server restarts, without waiting for the ttl. All
// ephemeral leases of one [Leases] share that session, a connection of the pool that is
// kept as long as there are any, and until a second after the database was closed. A holder notices
// the loss of its session when it extends the lease. The tokens are as durable as those of other
// leases. Acquire fails with [ErrNoSessions] through a pooler that hands a session from one client to another,
// in a pool of one connection, and where several servers write to one database, as in a Galera
// cluster.
//
// On SQLite Ephemeral has no effect: no server sees a holder die, so the lease ends with
// its ttl.
func Ephemeral() Term { return func(t *terms) { t.ephemeral = true } }

// Retries sets how often Acquire asks again while another holder has the lease: 0 or
// more. Attempts that follow a release don't count. The default is 10.
func Retries(n int) Term {
	return func(t *terms) { t.backsOff().retries = n }
}

// Backoff sets the pause before the second attempt: over 0. Each further pause is twice
// as long, up to 5 s. Every pause is shortened by a random part of up to a half, so that
// waiters don't ask all at once. The default is 100 ms.
func Backoff(d time.Duration) Term {
	return func(t *terms) { t.backsOff().backoff = d }
}

// Timeout limits how long Acquire takes in total: 0 or more. With 0 only the context
// limits it. The default is 5 s.
func Timeout(d time.Duration) Term {
	return func(t *terms) { t.backsOff().limit = d }
}

// Wait makes Acquire wait up to limit in total and ask again every interval, any number
// of times. The limit is 0 or more, and 0 means one attempt; with a higher limit the
// interval must be over 0. It replaces Retries, Backoff and Timeout and can't be combined
// with them.
func Wait(limit, interval time.Duration) Term {
	return func(t *terms) {
		t.evenly = true
		t.pace = pace{limit: limit, retries: math.MaxInt, even: true, interval: interval}
		if limit == 0 { // one attempt, which is to be answered all the same
			t.limit, t.retries = defaultTimeout, 0
		}
	}
}

// Margin makes the lease end for its holder this much before its ttl is over: [Lease.Done]
// is closed, [Lease.Err] says so, and the context of the lease and of [Leases.Do] ends.
// Others can't have the lease before its ttl is over, so the margin is the time that the
// holder has to stop in. It is 0 or more and less than the ttl. The default is 0: a
// write that comes late is refused by its token, and needs no margin. Set one where the
// work has effects that no token guards, longer than the pauses that the process is
// expected to make (a timer may run late, too) and than its last step takes.
func Margin(d time.Duration) Term { return func(t *terms) { t.margin = d } }

// MinHold keeps others from taking the lease until d after it was acquired, by the database's clock, also
// if it is released before: [Lease.Release], and the end of [Leases.Do], then don't free the lease but have it
// end at that time. So a job that takes 5 ms isn't run by a second process with a clock that is behind. d is 0 to
// 24 h, and may be longer than the ttl: heartbeats keep the lease meanwhile, and the release moves its end. The
// default is 0.
//
// From the release on the lease is no one's: it can't be extended or released again, has no holder's name, and
// its owner doesn't get it again. A lease that isn't released, because its process has died or the database can't be
// reached, ends with its ttl, which may be earlier. [Leases.Release], by a lock id, knows no terms: it frees the
// lease at once. In an [Election] the next leader waits for d.
func MinHold(d time.Duration) Term { return func(t *terms) { t.hold = d } }

// Heartbeat sets the interval at which [Leases.Do] extends the lease: over 0 and less
// than the ttl without the [Margin]. The default is a third of that.
func Heartbeat(d time.Duration) Term { return func(t *terms) { t.heartbeat, t.beats = d, true } }

type terms struct {
	ttl       time.Duration
	margin    time.Duration
	hold      time.Duration
	owner     string
	hasOwner  bool
	refresh   bool
	ephemeral bool

	pace
	evenly, growing bool // the pace was given by Wait, or by others

	heartbeat time.Duration
	beats     bool
}

// A pace is how long and how often a waiter asks.
type pace struct {
	limit    time.Duration // in total; 0 for as long as the context
	retries  int
	even     bool          // whether all pauses are of the interval
	interval time.Duration // if even
	backoff  time.Duration // if not: the first pause
}

var defaultPace = pace{limit: defaultTimeout, retries: defaultRetries, backoff: defaultBackoff}

// backsOff returns the pace, with pauses that grow.
func (t *terms) backsOff() *pace {
	if t.even {
		t.pace = defaultPace
	}
	t.growing = true
	return &t.pace
}

// newTerms applies lists of terms to the defaults, and checks the result. Terms about
// waiting replace those of an earlier list. The error says all that is wrong with a list.
func newTerms(lists ...[]Term) (*terms, error) {
	t := &terms{ttl: DefaultTTL, pace: defaultPace}
	for _, list := range lists {
		t.evenly, t.growing = false, false
		var errs []error
		for _, term := range list {
			if term == nil {
				errs = append(errs, errors.New("nil term"))
				continue
			}
			term(t)
		}
		if err := errors.Join(append(errs, t.check()...)...); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *terms) check() (errs []error) {
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(!validTTL(t.ttl), badTTL, t.ttl, maxTTL)
	if t.hasOwner {
		add(t.owner == "" || len(t.owner) > maxHolder || strings.IndexByte(t.owner, 0) >= 0 ||
			!utf8.ValidString(t.owner),
			"an owner's name of %d bytes, want 1 to %d of valid UTF-8 without NUL", len(t.owner), maxHolder)
	}
	add(t.refresh && !t.hasOwner, "Refresh needs Owner")
	add(t.retries < 0, "%d retries, want 0 or more", t.retries)
	add(!t.even && t.backoff <= 0, "a back-off of %v, want more than 0", t.backoff)
	add(!t.even && t.limit < 0, "a timeout of %v, want 0 or more", t.limit)
	add(t.evenly && t.growing, "Wait replaces Retries, Backoff and Timeout and can't be combined with them")
	add(t.even && t.limit < 0, "a wait of %v, want 0 or more", t.limit)
	add(t.even && t.limit > 0 && t.retries > 0 && t.interval <= 0,
		"a wait of %v with an interval of %v, want more than 0", t.limit, t.interval)
	add(t.margin < 0 || t.margin >= t.ttl, "a margin of %v, want 0 or more and less than the ttl of %v",
		t.margin, t.ttl)
	add(t.hold < 0 || t.hold > maxTTL, "a minimum hold of %v, want 0 to %v", t.hold, maxTTL)
	add(t.beats && (t.heartbeat <= 0 || t.heartbeat >= t.ttl-t.margin),
		"a heartbeat of %v, want more than 0 and less than the %v of the ttl without the margin", t.heartbeat,
		t.ttl-t.margin)
	return errs
}

func validTTL(d time.Duration) bool { return d >= time.Millisecond && d <= maxTTL }

const badTTL = "a ttl of %v, want 1ms to %v"

func checkTTL(d time.Duration) error {
	if !validTTL(d) {
		return invalid(badTTL, d, maxTTL)
	}
	return nil
}

// beat returns the time between two heartbeats.
func (t *terms) beat() time.Duration {
	if t.beats {
		return t.heartbeat
	}
	return (t.ttl - t.margin) / 3
}
