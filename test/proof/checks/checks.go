//go:build linux

// Package checks lists the requirements of a fence, with a test for each. A storm finds rare violations; a check
// creates one situation, and reports the promise that the fence breaks.
package checks

import (
	"cmp"
	"sync"
	"time"
)

// A Check is one requirement of a fence.
type Check struct {
	Name string
	More bool // more than a fence has to promise
	do   func(l *Lab) error
}

// List are all of them. The eighth has the last row that is new.
var List = []Check{
	{Name: "a lock has one holder at a time", do: (*Lab).oneHolder},
	{Name: "two that ask for a lock at once don't both get it", do: (*Lab).atOnce},
	{Name: "a lock lasts for as long as was asked for", do: (*Lab).lastsAsAsked},
	{Name: "a clock that is ahead takes no lock", do: (*Lab).clockAhead},
	{Name: "a lock ends by itself", do: (*Lab).endsByItself},
	{Name: "a release by a former holder leaves the lock to the newer one", do: (*Lab).lateRelease},
	{Name: "a process's locks are apart", do: (*Lab).apart},
	{Name: "no former holder of many writes behind the newest", do: (*Lab).manyFormer},
	{Name: "tokens rise from holder to holder", do: (*Lab).tokensRise},
	{Name: "tokens rise over the end of a process", do: (*Lab).tokensSurvive},
	{Name: "the holder's write lands", do: (*Lab).holderWrites},
	{Name: "a refused write hasn't landed, an acknowledged one has", do: (*Lab).toldTheTruth},
	{Name: "a write that was said not to have landed doesn't land later", do: (*Lab).givenUp},
	{Name: "a stale write behind a newer one is refused", do: (*Lab).staleWrite},
	{Name: "a stale write of a process that was started again is refused", do: (*Lab).forgotten},
	{Name: "a stale write under the former one of a process's two locks is refused", do: (*Lab).twoLocks},
	{Name: "a stale write is refused when the newer one's lock is over, too", do: (*Lab).afterwards},
	{Name: "a write that pauses before it is sent is refused behind a newer one", do: (*Lab).pausedWrite},
	{Name: "a write that is late on the wire is refused behind a newer one", do: (*Lab).lateOnTheWire},
	{Name: "a write that waits for the row behind a newer one is refused", do: (*Lab).waitingWrite},
	{Name: "a pause behind the lock makes no stale write a new one", do: (*Lab).pausedLock},
	{Name: "a holder writes a row again", More: true, do: (*Lab).writesAgain},
	{Name: "a stale write is refused before the newer holder has written", More: true, do: (*Lab).staleFirst},
	{Name: "a write that waits for the row is refused behind a newer token", More: true, do: (*Lab).waitingFirst},
	{Name: "a token that was never given is refused", More: true, do: (*Lab).neverGiven},
}

// Times to live of locks. A short one is over soon; a check has to be done within a long one.
const (
	short = 60 * time.Millisecond
	long  = 3 * time.Second
)

func (l *Lab) oneHolder() error   { return l.held(3) }
func (l *Lab) clockAhead() error  { return l.held(2) }
func (l *Lab) lateRelease() error { return cmp.Or(l.releaseBy(1, 3), l.releaseBy(1, 1)) }

// held has another process try to take a lock that lasts.
func (l *Lab) held(other int) error {
	a, err := l.take(1, long)
	if err != nil {
		return err
	}
	return cmp.Or(l.keepsOff(other, a, "process %d takes the lock of process 1, which lasts", other), l.release(a))
}

// keepsOff makes a process try to take a lock that another process holds, and fails if both hold the lock.
func (l *Lab) keepsOff(process int, has *lock, format string, args ...any) error {
	k, err := l.try(process)
	switch {
	case err != nil || k == nil:
		return err
	case has.lasts():
		return broken(format, args...)
	}
	return cmp.Or(l.release(k), errSlow)
}

// atOnce makes two processes acquire concurrently, once with a pause of the first process, if the program supports a
// pause.
func (l *Lab) atOnce() error {
	for turn := range 15 {
		hold := time.Duration(0)
		if turn == 0 {
			hold = 5 * short
		}
		a, err := l.asks(1, long, hold)
		if err != nil {
			return err
		}
		time.Sleep(hold / 5)
		b, err := l.asks(3, long, 0)
		if err != nil {
			return err
		}
		var given []*lock
		for _, k := range []*lock{a, b} {
			if k.taken() {
				given = append(given, k)
			}
		}
		switch {
		case len(given) < 2:
		case a.lasts() && b.lasts():
			err = broken("process 1 takes the lock with the token %d, and process 3 with %d, at the same time", a.token, b.token)
		default:
			err = errSlow
		}
		for _, k := range given {
			err = cmp.Or(err, l.release(k))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) lastsAsAsked() error {
	a, err := l.take(1, 25*short)
	if err != nil {
		return err
	}
	tried := false
	for a.lasts() {
		b, err := l.try(3)
		switch {
		case err != nil:
			return err
		case b == nil:
			tried = true
			time.Sleep(10 * time.Millisecond)
		case a.lasts():
			return cmp.Or(broken("process 3 takes the lock of process 1, %v before its end", time.Until(a.ends)), l.release(b))
		default:
			return l.release(b)
		}
	}
	if err := l.release(a); err != nil || tried {
		return err
	}
	return errSlow
}

// apart has a process take two locks, and give one of them back.
func (l *Lab) apart() error {
	a, err := l.take(1, long)
	if err != nil {
		return err
	}
	own := l.row
	defer func() { l.row = own }()
	l.row = l.another()
	b, err := l.take(1, long)
	if err != nil {
		return err
	}
	l.row = own
	if err := l.keepsOff(3, a, "process 3 takes a lock of process 1, which has taken another one since"); err != nil {
		return err
	}
	if err := l.release(a); err != nil {
		return err
	}
	l.row = b.row
	if err := l.keepsOff(3, b, "process 3 takes a lock of process 1, which has given another one back"); err != nil {
		return err
	}
	return l.release(b)
}

func (l *Lab) endsByItself() error {
	if _, err := l.take(1, short); err != nil {
		return err
	}
	b, err := l.take(3, long)
	if err != nil {
		return reached(err)
	}
	return l.release(b)
}

// releaseBy has a former holder release its lock.
func (l *Lab) releaseBy(former, newer int) error {
	a, b, err := l.pass(former, newer)
	if err != nil {
		return err
	}
	if err := l.release(a); err != nil {
		return err
	}
	err = l.keepsOff(5, b, "process 5 takes the lock of process %d, which process %d has released", newer, former)
	return cmp.Or(err, l.release(b))
}

func (l *Lab) tokensRise() error {
	last := int64(0)
	for i := range 12 {
		a, err := l.take(1+i%3, long)
		if err != nil {
			return err
		}
		if a.token <= last {
			return broken("token %d behind %d", a.token, last)
		}
		last = a.token
		if err := l.release(a); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) tokensSurvive() error {
	a, err := l.take(1, short)
	if err != nil {
		return err
	}
	l.end(1)
	b, err := l.take(1, long)
	if err != nil {
		return err
	}
	if b.token <= a.token {
		return broken("token %d behind %d", b.token, a.token)
	}
	return l.release(b)
}

func (l *Lab) holderWrites() error {
	a, err := l.take(1, long)
	if err != nil {
		return err
	}
	return cmp.Or(reached(l.lands(a)), l.release(a))
}

func (l *Lab) writesAgain() error {
	a, err := l.take(1, long)
	if err != nil {
		return err
	}
	return cmp.Or(l.lands(a), reached(l.lands(a)), l.release(a))
}

func (l *Lab) toldTheTruth() error {
	a, b, err := l.pass(1, 3)
	if err != nil {
		return err
	}
	return cmp.Or(l.write(a).told(), l.write(b).told(), l.write(a).told(), l.release(b))
}

// givenUp makes a write wait for its row until the program responds or the server fails the write, and searches for the
// write after its transaction.
func (l *Lab) givenUp() error {
	w, unlock, err := l.blocked(long)
	if err != nil {
		return err
	}
	for limit := time.Now().Add(long); !w.answered() && time.Now().Before(limit); {
		time.Sleep(5 * time.Millisecond)
	}
	unlock()
	l.untilIdle()
	if unlock, err = l.lockRow(); err != nil { // it waits behind the write's transaction
		return err
	}
	unlock()
	return cmp.Or(w.wait().told(), l.release(w.lock))
}

func (l *Lab) staleWrite() error { return l.staleBehind(1, 3, false) }
func (l *Lab) forgotten() error  { return l.staleBehind(1, 3, true) }
func (l *Lab) twoLocks() error   { return l.staleBehind(1, 1, false) }

// staleBehind makes a former holder write after the newer holder.
func (l *Lab) staleBehind(former, newer int, restarted bool) error {
	a, b, err := l.pass(former, newer)
	if err != nil {
		return err
	}
	if err := l.lands(b); err != nil {
		return err
	}
	if restarted {
		l.end(former)
	}
	if l.write(a).landed() {
		return broken("token %d writes the row behind %d", a.token, b.token)
	}
	return l.release(b)
}

// afterwards makes a former holder write after the newer holder's lock was released or has expired.
func (l *Lab) afterwards() error {
	for _, ttl := range []time.Duration{long, 5 * short} {
		a, err := l.take(1, short)
		if err != nil {
			return err
		}
		b, err := l.take(3, ttl)
		if err != nil {
			return err
		}
		given, how := time.Now(), "had ended"
		if err := l.lands(b); err != nil {
			return err
		}
		if ttl == long {
			how = "was released"
			if err := l.release(b); err != nil {
				return err
			}
		} else {
			time.Sleep(time.Until(given.Add(ttl + short)))
		}
		if l.write(a).landed() {
			return broken("token %d writes the row behind %d, after its lock %s", a.token, b.token, how)
		}
	}
	return nil
}

// manyFormer makes all former holders write after the newest holder. Tokens that begin at 1 reach two digits meanwhile.
func (l *Lab) manyFormer() error {
	var former []*lock
	for i := range 12 {
		ttl := long
		if i%5 == 4 {
			ttl = short
		}
		a, err := l.take(1+2*(i%3), ttl)
		if err != nil {
			return err
		}
		former = append(former, a)
		if i == 0 {
			err = l.lands(a)
		}
		if ttl == long {
			err = cmp.Or(err, l.release(a))
		}
		if err != nil {
			return err
		}
	}
	b, err := l.take(3, long)
	if err != nil {
		return err
	}
	if err := l.lands(b); err != nil {
		return err
	}
	for _, a := range former {
		if l.write(a).landed() {
			return broken("token %d writes the row behind %d", a.token, b.token)
		}
	}
	return l.release(b)
}

// pausedWrite has the lock pass to another while a write is between the program's look and the statement.
func (l *Lab) pausedWrite() error {
	a, err := l.take(1, short)
	if err != nil {
		return err
	}
	stale := l.begin(a, 10*short)
	b, err := l.take(3, long)
	if err != nil {
		return err
	}
	newer := l.write(b)
	return cmp.Or(behind(stale.wait(), newer), l.release(b))
}

// lateOnTheWire passes the lock to another process while a write is on its way to the database, once after each message
// of the write. The program needs no place for a pause.
func (l *Lab) lateOnTheWire() error {
	for after := range 16 {
		a, err := l.take(1, 5*short)
		if err != nil {
			return err
		}
		stalled, err := l.stalled(a, after)
		if err != nil || !stalled {
			return err
		}
	}
	return nil
}

// stalled has a write stand still on the wire, and reports whether it did.
func (l *Lab) stalled(a *lock, after int) (stalled bool, err error) {
	stall := l.target.Wire.Stall(after)
	goOn := sync.OnceFunc(func() { l.target.Wire.GoOn(stall) })
	defer goOn()
	stale := l.begin(a, 0)
	for stands := false; !stands; {
		select {
		case <-stall.Reached:
			stands = true
		case <-time.After(5 * time.Millisecond):
			if stale.answered() { // it has sent no more
				goOn()
				return false, cmp.Or(stale.wait().err, l.release(a))
			}
		}
	}
	limit := time.Now().Add(long)
	b, err := l.takeUnless(func() bool { return time.Now().After(limit) }, 3, long) // a fence may keep it off until the write has ended
	if err != nil || b == nil {
		goOn()
		stale.wait()
		return true, err
	}
	newer := l.write(b)
	goOn()
	return true, cmp.Or(behind(stale.wait(), newer), l.release(b))
}

func (l *Lab) pausedLock() error {
	a, err := l.asks(1, short, 10*short)
	if err != nil {
		return err
	}
	time.Sleep(short / 2) // it has the lock by then, mostly; no answer says so before the pause is over
	b, err := l.takeUnless(func() bool { return len(a.answer) > 0 }, 3, long)
	if err != nil || b == nil {
		return err // it doesn't pause with the lock
	}
	newer := l.write(b)
	switch {
	case !a.taken():
		return cmp.Or(l.release(b), errSlow) // the other one was first
	case a.token > b.token:
		return l.release(b) // by its token it is the newer one
	}
	return cmp.Or(behind(l.write(a), newer), l.release(b))
}

// waitingWrite has two writes wait for a row, the newer one before the stale one.
func (l *Lab) waitingWrite() error {
	a, b, err := l.pass(1, 3)
	if err != nil {
		return err
	}
	unlock, err := l.lockRow()
	if err != nil {
		return err
	}
	newer := l.begin(b, 0)
	l.settle(newer)
	stale := l.begin(a, 0)
	l.settle(newer, stale)
	unlock()
	return cmp.Or(behind(stale.wait(), newer.wait()), l.release(b))
}

func (l *Lab) staleFirst() error {
	a, b, err := l.pass(1, 3)
	if err != nil {
		return err
	}
	if l.write(a).landed() {
		return broken("token %d writes the row, though %d was given", a.token, b.token)
	}
	return l.release(b)
}

// waitingFirst has a write wait for a row while the lock passes to another.
func (l *Lab) waitingFirst() error {
	stale, unlock, err := l.blocked(short)
	if err != nil {
		return err
	}
	b, err := l.takeUnless(stale.answered, 3, long) // a fence may keep it off until the write has ended
	unlock()
	if err != nil || b == nil {
		return err
	}
	if stale.wait().landed() {
		return broken("token %d writes the row, though %d was given", stale.lock.token, b.token)
	}
	return l.release(b)
}

func (l *Lab) neverGiven() error {
	a, err := l.take(1, long)
	if err != nil {
		return err
	}
	if err := l.release(a); err != nil {
		return err
	}
	a.token, a.id = a.token+1000, "never given"
	if l.write(a).landed() {
		return broken("token %d writes the row, and was never given", a.token)
	}
	return nil
}
