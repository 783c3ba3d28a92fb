package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/editlock"
	"github.com/sqlfence/sqlfence/rewrite"
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
	return func(t *table) {
		if t.rules.Lock != (rewrite.Lock{}) {
			t.fail(errors.New("EditLock twice"))
		}
		t.once(&t.rules.Lock.By, "EditLock", by)
		t.once(&t.rules.Lock.Since, "EditLock", since)
		t.once(&t.rules.Lock.Expiry, "EditLock", expiry)
	}
}

type editorKey struct{}

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
	return context.WithValue(ctx, editorKey{}, user)
}

// findEditor notes the text of the context's editor; empty for none.
func (e *execution) findEditor(ctx context.Context) error {
	if !e.registry.locks || !e.plan.Locks {
		return nil
	}
	user := ctx.Value(editorKey{})
	if user == nil {
		return nil
	}
	if b, ok := user.([]byte); ok {
		user = string(b)
	}
	text, _, ok := basedriver.Text(user, e.state.settings.profile.storesBytesAsText())
	if !ok || editlock.IsNoHolder(text) {
		return fmt.Errorf("%w: WithEditor(%#v): pass the user's ID, an integer other than 0 or a text", ErrInvalid, user)
	}
	e.with.values.Editor = text
	return nil
}

// lockedError returns the typed error for a row that another user has locked.
func lockedError(t *table, m rewrite.Marker, editor string, err error) error {
	return &LockedError{Table: t.name, anonymous: editor == "", By: m.By, Since: micros(m.Since), Expiry: micros(m.Expiry), refusedAs: refusedAs[isLocked]{err}}
}

// micros returns the time that is n microseconds of Unix time; the zero time for 0,
// which means unknown.
func micros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// A LockedError reports a write that was refused because another user is editing the
// row (see [EditLock] and package rowlock). It is [ErrLocked] and, where the database
// refused the write, wraps the base driver's error.
type LockedError struct {
	refusedAs[isLocked]

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
