package core

import (
	"context"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/editlock"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// findEditor stores the context's editor, the user who writes under the rule EditLock, as text in the guard's values.
func (e *Execution) findEditor(ctx context.Context) error {
	if !e.plan.Locks {
		return nil
	}
	user := ctx.Value(editorKey{})
	if user == nil {
		return nil
	}
	if b, ok := user.([]byte); ok {
		user = string(b)
	}
	text, _, ok := basedriver.Text(user, e.conn.settings.profile.Errors.BytesAreText.Is())
	if !ok || editlock.IsNoHolder(text) {
		return fmt.Errorf("%w: WithEditor(%#v): pass the user's ID, an integer other than 0 or a text",
			ErrInvalid, user)
	}
	e.with.values.Editor = text
	return nil
}

// lockedError returns the typed error for a row with an edit lock of another user.
func lockedError(t *Table, m guard.Marker, editor string, err error) error {
	return t.factory.Locked(Lock{t.Name, m.By, micros(m.Since), micros(m.Expiry)}, editor == "", err)
}

// micros returns the time that is n microseconds of Unix time; the zero time for 0,
// which means unknown.
func micros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
