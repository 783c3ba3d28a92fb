package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/editlock"
	"github.com/sqlfence/sqlfence/rewrite"
)

// EditLock refuses writes to a row that somebody else is editing: UPDATE, DELETE,
// upsert and MERGE on a row whose lock is held fail with a [LockedError], by
// whichever library they are sent. The lock is in three columns of the row, which
// package rowlock writes: by is who holds it, an integer or a text, where NULL, 0
// and the empty text are nobody; since and expiry are when it was taken and when
// it lapses, NULL for never taken. In PostgreSQL they are timestamptz, in SQLite
// integers, milliseconds of Unix time in UTC. The clock is the database's.
//
// Who writes is told by [WithEditor]. A write without it is nobody's, and is
// refused while anybody holds the lock.
//
// Statements that take and give back locks are sent under [Bypass].
//
// A table with EditLock and no other rule needs no tokens. Of several reasons a
// stale token is told first, then a conflict of serials, then the lock.
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

// WithEditor returns a context whose writes are those of user, who may write to
// rows that nobody holds and to those that user holds (see [EditLock]). user is
// an integer, a text, or a driver.Valuer of these, and is compared as the text
// that the database makes of the column. One that could be nobody, 0 or the empty
// text, or is of another type, refuses every write that would be compared; nil is
// as none.
func WithEditor(ctx context.Context, user any) context.Context {
	return context.WithValue(ctx, editorKey{}, user)
}

// findEditor notes the text of the context's editor, "" for none.
func (a *attempt) findEditor(ctx context.Context) error {
	user := ctx.Value(editorKey{})
	if user == nil {
		return nil
	}
	if b, ok := user.([]byte); ok {
		user = string(b)
	}
	text, _, ok := textOf(user, a.fence.profile.dialect)
	if !ok || editlock.IsNobody(text) {
		return &UnguardableError{Table: a.table(0).name, Reason: fmt.Sprintf("the context's editor %#v could be nobody; give WithEditor the user's integer or text", user)}
	}
	a.values.Editor = text
	return nil
}

func (a *attempt) explainLocked(m rewrite.Marker, err error) error {
	return &LockedError{Table: a.table(m.Table).name, By: m.By, Since: micros(m.Since), Expiry: micros(m.Expiry), err: err}
}

// micros returns a time of the database's, the zero one if that is unknown.
func micros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
