package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// EditLock refuses a write with a [LockedError] while another user is editing the row. Package rowlock keeps the lock
// in three columns: by has the user's ID, since and expiry have times of the database's clock (docs/rowlock.md).
//
// [WithEditor] names the writing user. Without it, a write of the row fails while any user holds the lock. Statements
// that change the lock must run under [Bypass]. A table with EditLock alone needs no tokens. A stale token and a
// conflict of serials are reported before the lock.
func EditLock(by, since, expiry string) Rule {
	return func(t *registration) {
		if t.Rules.Lock != (guard.Lock{}) {
			t.Fail(errors.New("EditLock twice"))
		}
		t.Once(&t.Rules.Lock.By, "EditLock", by)
		t.Once(&t.Rules.Lock.Since, "EditLock", since)
		t.Once(&t.Rules.Lock.Expiry, "EditLock", expiry)
	}
}

// WithEditor returns a context for writes of user to rows that no other user has locked ([EditLock]). user is an
// integer, a string, or a driver.Valuer of these, and is compared as text. nil has no effect. With 0, "" or another
// type, writes to EditLock tables fail with [ErrInvalid].
func WithEditor(ctx context.Context, user any) context.Context {
	return core.WithEditor(ctx, user)
}

// A LockedError has the details of an [ErrLocked].
type LockedError struct {
	refusedAsLocked

	Table  string    // as registered, or as passed to package rowlock
	By     string    // the holder's ID, as text
	Since  time.Time // start of the lock, in UTC; zero if unknown
	Expiry time.Time // end of the lock, in UTC, unless it is renewed

	anonymous bool // the write's context had no editor
}

func (e *LockedError) Error() string {
	text := fmt.Sprintf("%v: table %q: by %q", ErrLocked, e.Table, e.By)
	if !e.Since.IsZero() {
		text += " since " + e.Since.UTC().Format(time.RFC3339)
	}
	if !e.Expiry.IsZero() {
		text += " until " + e.Expiry.UTC().Format(time.RFC3339)
	}
	if e.anonymous {
		text += "; the context doesn't say who writes: add WithEditor if it is the holder"
	}
	return text
}
