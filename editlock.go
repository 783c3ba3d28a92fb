package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// EditLock refuses writes to a row that another user is editing: UPDATE, DELETE, upsert and MERGE
// on a locked row fail with a [LockedError], whichever library sends them. The lock is in three
// columns of the row, which package rowlock writes: by is the holder's ID, an integer or a text,
// where NULL, 0 and the empty text mean no holder; since and expiry are the times at which the lock
// was taken and expires. A lock without an expiry (NULL) has expired. In PostgreSQL the times are
// timestamptz, in SQLite integers, milliseconds of Unix time in UTC, in MySQL bigint, microseconds
// of it. The clock is the database's.
//
// [WithEditor] says who is writing. A write without it is refused while any user holds the lock.
//
// Package rowlock takes and releases locks under [Bypass]; other statements that do
// so need it, too.
//
// A table with EditLock and no other rule needs no tokens. If a write is refused for
// several reasons, a stale token is reported first, then a conflict of serials, then
// the lock.
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

// WithEditor returns a context for the writes of user, who may write to rows that no other user has
// locked (see [EditLock]). user is an integer, a text, or a driver.Valuer of these. It is compared
// as text with the column, as the database prints that.
//
// A transaction that was begun with an editor has it for the statements with a context that has
// none.
//
// A nil user is the same as no WithEditor. Zero, the empty string and other types
// are invalid: every write to an EditLock table then fails with [ErrInvalid].
func WithEditor(ctx context.Context, user any) context.Context {
	return core.WithEditor(ctx, user)
}

// A LockedError reports a write that was refused because another user is editing the row (see [EditLock] and
// package rowlock). errors.Is(err, [ErrLocked]) is true for it. If the database refused the write, Unwrap returns
// the base driver's error.
type LockedError struct {
	refusedAsLocked

	Table  string    // as registered with [WithTable], or as given to package rowlock
	By     string    // the holder's ID, as text
	Since  time.Time // when it was taken, in UTC; zero if unknown
	Expiry time.Time // when it expires, in UTC, unless it is renewed

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
