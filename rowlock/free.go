package rowlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Heartbeat records that a session is alive, and renews no lock. Call it more often than the silence of
// [Manager.FreeSilent]. An empty session is [sqlfence.ErrInvalid].
func (m *Manager) Heartbeat(ctx context.Context, session string) error {
	if session == "" {
		return invalid("heartbeat: the session is empty")
	}
	text, args := sqltext.Render(m.dialect, "UPDATE rowlocks SET heartbeat = {now} WHERE session = {stored {session}}",
		sqltext.Fragments{"session": sqltext.Value(session), "stored": sqltext.Func(m.dialect.stored)})
	// A deadlock with a transaction that takes several locks is repeated.
	err := transact(ctx, m.db, m.dialect, func(ctx context.Context, q owned) error {
		_, err := q.exec(ctx, text, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("rowlock: heartbeat: %w", m.explain(ctx, err))
	}
	return nil
}

// FreeUser frees all locks of user, for example at logout, and returns their number. An invalid ID is
// [sqlfence.ErrInvalid].
func (m *Manager) FreeUser(ctx context.Context, user any) (freed int, err error) {
	id, err := userText(user)
	if err != nil {
		return 0, err
	}
	return m.free(ctx, "free user",
		condition{"user_id = {stored {wanted}}", sqltext.Fragments{"wanted": sqltext.Value(id)}})
}

// FreeSession frees the locks of a session that has ended, and returns their number. An empty session is
// [sqlfence.ErrInvalid].
func (m *Manager) FreeSession(ctx context.Context, session string) (freed int, err error) {
	if session == "" {
		return 0, invalid("free session: the session is empty")
	}
	return m.free(ctx, "free session", condition{"session = {stored {wanted}}",
		sqltext.Fragments{"wanted": sqltext.Value(session)}})
}

// FreeSilent frees the locks of silent sessions, and returns their number. A session is silent if for silence, at least
// 1 ms, it had no [Manager.Heartbeat] and neither took nor renewed the lock. Locks without a session stay until they
// lapse.
func (m *Manager) FreeSilent(ctx context.Context, silence time.Duration) (freed int, err error) {
	if err := checkDuration("silence", silence); err != nil {
		return 0, err
	}
	ticks := sqltext.Value(m.dialect.Ticks(-silence))
	return m.free(ctx, "free silent", condition{
		"session <> {empty} AND heartbeat <= {after {bigint {silence}}}", sqltext.Fragments{"silence": ticks},
	})
}

// FreeAll frees all locks of the Manager's tables, and returns their number. Call it at the start of the program, if no
// other process serves these tables.
func (m *Manager) FreeAll(ctx context.Context) (freed int, err error) {
	return m.free(ctx, "free all", condition{text: "1 = 1"})
}

func (m *Manager) free(ctx context.Context, do string, c condition) (freed int, err error) {
	found, err := m.list(ctx, c)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, h := range found {
		m.mu.Lock()
		t := m.tables[h.Table]
		m.mu.Unlock()
		if t == nil {
			continue
		}
		n, err := t.free(ctx, do, h, c)
		if err != nil {
			errs = append(errs, err)
		}
		freed += n
	}
	return freed, errors.Join(errs...)
}

// free frees one lock if it is still the same and c still holds, and returns the number of freed locks.
func (t *Table) free(ctx context.Context, do string, h HeldLock, c condition) (freed int, err error) {
	key, err := parseKey(h.Row)
	if err != nil {
		return 0, err
	}
	held := sqltext.Fragments{
		"heldrow": sqltext.Value(h.Row), "helduser": sqltext.Value(h.User), "heldsession": sqltext.Value(h.Session),
		"heldsince": sqltext.Value(h.Since.UnixMicro()),
	}
	maps.Copy(held, c.fragments)
	err = t.run(ctx, do, func(ctx context.Context, q owned) (err error) {
		// The row first, as when taking its lock: then rowlocks is up to date.
		if err := t.lock(ctx, q, key); err != nil {
			return err
		}
		n, err := t.exec(ctx, q,
			`DELETE FROM rowlocks WHERE table_name = {stored {tablename}} AND row_key = {stored {heldrow}} `+
				`AND user_id = {stored {helduser}}
	AND session = {stored {heldsession}} AND {micros since} = {bigint {heldsince}} AND `+c.text, key, held)
		if err != nil || n == 0 {
			freed = 0
			return err
		}
		freed, err = t.exec(ctx, q, "UPDATE {table} SET "+setFree+` WHERE {row}
	AND `+t.dialect.same("{holder}", "{helduser}")+` AND {micros {since}} = {bigint {heldsince}}`, key, held)
		return err
	})
	if err != nil {
		return 0, err
	}
	return freed, nil
}
