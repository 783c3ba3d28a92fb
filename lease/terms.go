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

// DefaultTTL is the default of [TTL].
const DefaultTTL = 30 * time.Second

const (
	defaultBackoff = 100 * time.Millisecond

	responseLimit = 5 * time.Second // how long a single attempt without Timeout waits for its response
	maxTTL        = 24 * time.Hour

	maxHolder, maxResume = 480, 512 // bytes
)

// A Term is a condition for a lease. Invalid values and combinations are [ErrInvalid].
type Term func(*terms)

// TTL sets how long a lease lives unless it is extended: 1 ms to 24 h, default [DefaultTTL].
func TTL(d time.Duration) Term { return func(t *terms) { t.ttl = d } }

// Holder sets the holder's name for display: valid UTF-8 of 1 to 480 bytes without U+0000 and U+001F. The default is
// host, process id and a random text, such as "web-3/4711/k2m4qz".
func Holder(name string) Term { return func(t *terms) { t.holder, t.hasHolder = name, true } }

// Resume lets a restarted program continue with its previous lease: callers with the same id share one live lease, its
// token and its end, and one release ends it for all. The id must belong to one program. The id has the form of a
// [Holder], with up to 512 bytes, and is shown as the holder.
func Resume(id string) Term { return func(t *terms) { t.id, t.resumes = id, true } }

// Refresh extends the lease to its TTL when [Resume] resumes it. It is invalid without Resume.
func Refresh() Term { return func(t *terms) { t.refresh = true } }

// Ephemeral makes the lease end with the holder's database session, for example when the process dies. All such leases
// of a [Leases] share a connection. On SQLite it has no effect.
func Ephemeral() Term { return func(t *terms) { t.ephemeral = true } }

// NoWait makes one attempt and returns [ErrHeld] if another holder has the lease. It excludes [Retries], [Backoff],
// [Interval] and [Timeout].
func NoWait() Term { return func(t *terms) { t.noWait = true } }

// Retries limits the attempts that follow a pause, not those that follow a release: 0 or more, by default no limit.
func Retries(n int) Term { return func(t *terms) { t.retries, t.limited = n, true } }

// Timeout limits the time of acquiring a lease: 0 or more. The default 0 means 5 s for [Leases.TryAcquire] and
// [NoWait], and no limit otherwise.
func Timeout(d time.Duration) Term {
	return func(t *terms) { t.limit, t.limited, t.timed = d, true, true }
}

// Backoff sets a waiter's first pause: positive, default 100 ms. Pauses double, up to 5 s, minus a random part.
func Backoff(d time.Duration) Term {
	return func(t *terms) { t.backoff, t.even, t.limited = d, false, true }
}

// Interval makes a waiter try every d, which must be positive, without the pauses of [Backoff].
func Interval(d time.Duration) Term {
	return func(t *terms) { t.interval, t.even, t.limited = d, true, true }
}

// Margin makes the lease end for its holder d before other processes can take it: from 0, the default, to less than the
// TTL. To protect effects without a token, d must exceed the longest pause of the process.
func Margin(d time.Duration) Term { return func(t *terms) { t.margin = d } }

// MinHold keeps the key taken until d after the lease was acquired, even after a release: 0 to 24 h, default 0.
func MinHold(d time.Duration) Term { return func(t *terms) { t.hold = d } }

// Heartbeat sets the interval between extensions: positive and less than the TTL minus the [Margin]; default a third of
// that.
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

// A pace is how long and how often a waiter tries.
type pace struct {
	limit    time.Duration // in total; 0 for as long as the context
	retries  int
	even     bool          // whether all pauses are of the interval
	interval time.Duration // if even
	backoff  time.Duration // if not: the first pause
}

var defaultPace = pace{retries: math.MaxInt, backoff: defaultBackoff}

// holderSeparator separates a holder's name from a random text in the column holder. So holders with the same name
// differ, and none equals the id of a [Resume], which has no separator.
const holderSeparator = "\x1f"

// shown returns the name of a holder for display.
func shown(stored string) string {
	name, _, _ := strings.Cut(stored, holderSeparator)
	return name
}

var thisProcess = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
})

// stored returns the column holder for the terms.
func (t *terms) stored() string {
	switch {
	case t.resumes:
		return t.id
	case t.hasHolder:
		return t.holder + holderSeparator + rand.Text()[:12]
	}
	return thisProcess() + holderSeparator + rand.Text()[:12]
}

// newTerms applies lists of terms to the defaults, and checks each result. Terms about waiting replace those of an
// earlier list.
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
		t.limit, t.retries = responseLimit, 0
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
		add(given && (name == "" || len(name) > most || strings.ContainsAny(name, "\x00"+holderSeparator) ||
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
