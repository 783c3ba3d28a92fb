package lease

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Defaults and limits of the terms, each of the [Term] that it is named after.
const (
	DefaultTTL     = 30 * time.Second
	defaultBackoff = 100 * time.Millisecond

	// answerLimit is how long a single attempt may take, unless Timeout says otherwise.
	answerLimit = 5 * time.Second

	// maxTTL is the longest ttl.
	maxTTL = 24 * time.Hour

	// maxHolder is the maximum length of a holder's name in bytes, and maxResume that of an identity.
	maxHolder, maxResume = 480, 512
)

// A Term is a condition of a lease, given to [Leases.Acquire], [Leases.TryAcquire],
// [Leases.Do] or [WithDefaults]. Terms are checked together: invalid values and
// combinations are [ErrInvalid], and nothing is sent.
type Term func(*terms)

// TTL sets how long a lease lives unless it is extended: 1 ms to 24 h. The default
// is [DefaultTTL].
func TTL(d time.Duration) Term { return func(t *terms) { t.ttl = d } }

// Holder names the holder for others to see: in a [HeldError], in an [Info] and in events. The name gives no right to
// anything, and several holders may have the same. It is valid UTF-8 of 1 to 480 bytes without U+0000 and U+001F. The
// default is the host's name, the process id and a random text, as in "web-3/4711/k2m4qz".
func Holder(name string) Term { return func(t *terms) { t.holder, t.hasHolder = name, true } }

// Resume lets callers with the same id take one lease: while the lease is live, Acquire with this id returns the same
// lease, with the same token and lock id, and its expiry doesn't change (but see [Refresh]). One release ends the lease
// for all of them. So a program that was restarted goes on with its lease from before. Two programs that run at the
// same time with the same id both hold the lease, and no token tells them apart: an id must belong to one of them. A
// name that several replicas share is no such id.
//
// Others see the id as the holder's name. It is valid UTF-8 of 1 to 512 bytes without U+0000 and U+001F.
func Resume(id string) Term { return func(t *terms) { t.id, t.resumes = id, true } }

// Refresh extends the lease when it is resumed. It needs [Resume].
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

// NoWait makes one attempt: if another holder has the lease, Acquire and Do return [ErrHeld] at once. It can't be
// combined with Retries, Backoff, Interval and Timeout.
func NoWait() Term { return func(t *terms) { t.noWait = true } }

// Retries limits how often Acquire asks again while another holder has the lease: 0 or more. Attempts that follow a
// release don't count. By default there is no limit.
func Retries(n int) Term { return func(t *terms) { t.retries, t.limited = n, true } }

// Timeout limits how long Acquire takes in total: 0 or more. With 0, the default, only the context limits it.
// [Leases.TryAcquire], and Acquire with NoWait, take at most 5 s by default.
func Timeout(d time.Duration) Term {
	return func(t *terms) { t.limit, t.limited, t.timed = d, true, true }
}

// Backoff sets the pause before the second attempt: over 0. Each further pause is twice
// as long, up to 5 s. Every pause is shortened by a random part of up to a half, so that
// waiters don't ask all at once. The default is 100 ms.
func Backoff(d time.Duration) Term {
	return func(t *terms) { t.backoff, t.even, t.limited = d, false, true }
}

// Interval makes Acquire ask again every d, over 0, instead of after pauses that grow as [Backoff] says.
func Interval(d time.Duration) Term {
	return func(t *terms) { t.interval, t.even, t.limited = d, true, true }
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
// can't be resumed. A lease that isn't released, because its process has died or the database can't be
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
	holder    string // what others see
	hasHolder bool
	id        string // what the lease is resumed by
	resumes   bool
	refresh   bool
	ephemeral bool

	owner string // what is stored for holder or id

	pace
	noWait, limited bool // a list of terms has NoWait, or others about waiting
	timed           bool // Timeout was given

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

var defaultPace = pace{retries: math.MaxInt, backoff: defaultBackoff}

// mark stands in the column holder between a holder's name and a text that is random. So no two holders store
// the same, and none stores what another resumes its lease by.
const mark = "\x1f"

// shown returns the name of a holder as others see it.
func shown(stored string) string {
	name, _, _ := strings.Cut(stored, mark)
	return name
}

// thisProcess is the default name of a holder.
var thisProcess = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
})

// stored returns what the column holder has for the terms.
func (t *terms) stored() string {
	switch {
	case t.resumes:
		return t.id
	case t.hasHolder:
		return t.holder + mark + rand.Text()[:12]
	}
	return thisProcess() + mark + rand.Text()[:12]
}

// newTerms applies lists of terms to the defaults, and checks the result. Terms about
// waiting replace those of an earlier list. The error says all that is wrong with a list.
func newTerms(lists ...[]Term) (*terms, error) {
	t := &terms{ttl: DefaultTTL, pace: defaultPace}
	for _, list := range lists {
		before := t.noWait
		t.noWait, t.limited = false, false
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
		t.noWait = t.noWait || before && !t.limited
	}
	if t.noWait {
		t.limit, t.retries = answerLimit, 0
	}
	t.owner = t.stored()
	return t, nil
}

func (t *terms) check() (errs []error) {
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(!validTTL(t.ttl), badTTL, t.ttl, maxTTL)
	named := func(given bool, what, name string, most int) {
		add(given && (name == "" || len(name) > most || strings.ContainsAny(name, "\x00"+mark) ||
			!utf8.ValidString(name)),
			"%s of %d bytes, want 1 to %d of valid UTF-8 without U+0000 and U+001F", what, len(name), most)
	}
	named(t.hasHolder, "a holder's name", t.holder, maxHolder)
	named(t.resumes, "an id", t.id, maxResume)
	add(t.refresh && !t.resumes, "Refresh needs Resume")
	add(t.retries < 0, "%d retries, want 0 or more", t.retries)
	add(!t.even && t.backoff <= 0, "a back-off of %v, want more than 0", t.backoff)
	add(t.even && t.interval <= 0, "an interval of %v, want more than 0", t.interval)
	add(t.limit < 0, "a timeout of %v, want 0 or more", t.limit)
	add(t.noWait && t.limited,
		"NoWait makes one attempt and can't be combined with Retries, Backoff, Interval and Timeout")
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
