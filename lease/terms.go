package lease

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// What holds unless a [Term] says otherwise.
const (
	DefaultTTL     = 30 * time.Second
	DefaultRetries = 10
	DefaultBackoff = 100 * time.Millisecond
	DefaultTimeout = 5 * time.Second

	// MaxTTL is the longest time that a lease can be granted or extended for.
	MaxTTL = 24 * time.Hour

	// maxHolder is the length limit of an owner in bytes.
	maxHolder = 512
)

// A Term is a condition on which a lease is asked for. Terms are checked
// together; those that can't be meant are [ErrInvalid], and nothing is sent.
type Term func(*terms)

// TTL sets how long a lease lives unless it is extended: over 0, at most
// [MaxTTL], and at least a millisecond. The default is [DefaultTTL].
func TTL(d time.Duration) Term { return func(t *terms) { t.ttl = d } }

// Owner names the holder, for people to read, and makes asking again harmless:
// while the lease lives, the same owner gets the same lease, with the same token
// and the same lock id, and its expiry stays (but see [Refresh]). So who releases
// it releases it for all of them. The name must be that of one holder alone: two
// processes that share it share the lease. It is valid UTF-8 of 1 to 512 bytes
// without NUL.
func Owner(name string) Term {
	return func(t *terms) { t.owner, t.hasOwner = name, true }
}

// Refresh has an owner that asks again get its lease extended by the ttl. It
// needs [Owner].
func Refresh() Term { return func(t *terms) { t.refresh = true } }

// Ephemeral makes a lease on PostgreSQL that ends also with the database session
// that stands for its holder: at once when the process dies or the server
// restarts, without waiting for the ttl. All ephemeral leases of one [Leases]
// share that session, a connection of the pool that is kept while there are any.
// It can't be used through a pooler that hands a session from one client to
// another. A session that is lost is noticed when the lease is to be extended.
// The tokens are as durable as any.
//
// On SQLite a lease can't end before its ttl, because no server sees its holder
// die: Ephemeral changes nothing there.
func Ephemeral() Term { return func(t *terms) { t.ephemeral = true } }

// Retries sets how often Acquire asks again while another holds the lease: 0 or
// more. The default is [DefaultRetries]. Being woken by a release doesn't count.
func Retries(n int) Term {
	return func(t *terms) { t.retries, t.paced = n, true }
}

// Backoff sets the pause before the second attempt, over 0; each further one is
// twice as long, up to 5 s. Of each a random part of up to a half is taken off,
// so that waiters don't come all at once. The default is [DefaultBackoff].
func Backoff(d time.Duration) Term {
	return func(t *terms) { t.backoff, t.paced = d, true }
}

// Timeout sets how long Acquire takes altogether; 0 leaves it to the context.
// The default is [DefaultTimeout].
func Timeout(d time.Duration) Term {
	return func(t *terms) { t.timeout, t.paced = d, true }
}

// Wait has Acquire wait for limit altogether, and ask again every interval,
// however often that is. A limit of 0 is one attempt; else the interval must be
// over 0. It stands in the place of Retries, Backoff and Timeout, and can't be
// used beside them.
func Wait(limit, interval time.Duration) Term {
	return func(t *terms) { t.limit, t.interval, t.waits = limit, interval, true }
}

// Heartbeat sets how often [Leases.Do] extends the lease: over 0, and less than
// the ttl. The default is a third of the ttl.
func Heartbeat(d time.Duration) Term { return func(t *terms) { t.heartbeat, t.beats = d, true } }

type terms struct {
	ttl       time.Duration
	owner     string
	hasOwner  bool
	refresh   bool
	ephemeral bool

	retries          int
	backoff, timeout time.Duration
	paced            bool // one of the three was given

	limit, interval time.Duration
	waits           bool

	heartbeat time.Duration
	beats     bool
}

// newTerms applies lists of terms to the defaults, and checks the outcome. A
// later list's way of waiting stands in the place of an earlier one's.
func newTerms(lists ...[]Term) (*terms, error) {
	t := &terms{ttl: DefaultTTL, retries: DefaultRetries, backoff: DefaultBackoff, timeout: DefaultTimeout}
	for _, list := range lists {
		paced, waits := t.paced, t.waits
		t.paced, t.waits = false, false
		for _, term := range list {
			if term == nil {
				return nil, invalid("nil term")
			}
			term(t)
		}
		if !t.paced && !t.waits {
			t.paced, t.waits = paced, waits
		}
		if err := t.check(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *terms) check() error {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, invalid(format, args...))
		}
	}
	if err := checkTTL(t.ttl); err != nil {
		errs = append(errs, err)
	}
	if t.hasOwner {
		add(t.owner == "" || len(t.owner) > maxHolder || strings.IndexByte(t.owner, 0) >= 0 || !utf8.ValidString(t.owner),
			"an owner is valid UTF-8 of 1 to %d bytes without NUL", maxHolder)
	}
	add(t.refresh && !t.hasOwner, "Refresh needs Owner")
	add(t.retries < 0, "%d retries", t.retries)
	add(t.backoff <= 0, "a back-off of %v", t.backoff)
	add(t.timeout < 0, "a timeout of %v", t.timeout)
	add(t.waits && t.paced, "Wait stands in the place of Retries, Backoff and Timeout")
	add(t.waits && t.limit < 0, "a wait of %v", t.limit)
	add(t.waits && t.limit > 0 && t.interval <= 0, "a wait of %v with an interval of %v", t.limit, t.interval)
	add(t.beats && (t.heartbeat <= 0 || t.heartbeat >= t.ttl), "a heartbeat of %v with a ttl of %v", t.heartbeat, t.ttl)
	return errors.Join(errs...)
}

func checkTTL(d time.Duration) error {
	if d < time.Millisecond || d > MaxTTL {
		return invalid("a ttl of %v, want 1ms to %v", d, MaxTTL)
	}
	return nil
}

// beat returns the time between two heartbeats.
func (t *terms) beat() time.Duration {
	if t.beats {
		return t.heartbeat
	}
	return t.ttl / 3
}
