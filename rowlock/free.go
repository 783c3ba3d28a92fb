package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/own"
)

// FreeUser frees the locks of a user, at logout, and returns how many; the id is
// spelled as the database does. Like the other methods that free, it frees each
// lock in a transaction of its own, by one condition: the row is still held by that
// user, since that time, kept alive by that session. A lock that someone else has
// taken in the meantime, or that was taken again, is left alone. Those that can't
// be freed don't keep it from the others; their errors are joined.
func (m *Manager) FreeUser(ctx context.Context, user any) (freed int, err error) {
	id, err := userText(user)
	if err != nil {
		return 0, err
	}
	return m.free(ctx, "free user", frag{"user_id = ", arg{id}})
}

// FreeSession frees the locks that a session keeps alive, at its end, and returns
// how many. An empty session is refused.
func (m *Manager) FreeSession(ctx context.Context, session string) (freed int, err error) {
	if session == "" {
		return 0, errors.New("rowlock: no session to free")
	}
	return m.free(ctx, "free session", frag{"session = ", arg{session}})
}

// FreeSilent frees the locks of all sessions of which no sign of life has come
// for silence or longer: by [Manager.Heartbeat], or by taking or renewing that
// lock. It returns how many. Locks of no session stay until they lapse. Call it
// now and then. A silence under 1 ms is refused.
func (m *Manager) FreeSilent(ctx context.Context, silence time.Duration) (freed int, err error) {
	if silence < time.Millisecond {
		return 0, fmt.Errorf("rowlock: a silence of %v is less than 1ms", silence)
	}
	return m.free(ctx, "free silent", frag{"session <> '' AND heartbeat <= ", after(m.dialect, -silence)})
}

// FreeAll frees all locks, at start-up, when no session can be alive, and returns
// how many. Don't call it while another process serves the same tables.
func (m *Manager) FreeAll(ctx context.Context) (freed int, err error) {
	return m.free(ctx, "free all", frag{"1 = 1"})
}

// free frees the locks of the manager's tables for which where holds.
func (m *Manager) free(ctx context.Context, do string, where frag) (freed int, err error) {
	found, err := m.list(ctx, where)
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
		n, err := t.freeHeld(ctx, do, h, where)
		if err != nil {
			errs = append(errs, err)
		}
		freed += n
	}
	return freed, errors.Join(errs...)
}

// freeHeld frees one lock if it is still that one, and if where still holds: a
// heartbeat may just have come. It returns how many it freed, 0 or 1.
func (t *Table) freeHeld(ctx context.Context, do string, h Held, where frag) (freed int, err error) {
	key, err := keyValues(h.Row)
	if err != nil {
		return 0, err
	}
	err = t.run(ctx, do, func(ctx context.Context, q querier) error {
		freed = 0
		// The row first, as all do who take its lock; from here on rowlocks tells
		// what is. SQLite has one writer, which the DELETE becomes.
		if t.dialect == sqlfence.Postgres {
			text, args := render(t.dialect, "SELECT 1 FROM ", t.quoted, " ", t.where(key), " FOR NO KEY UPDATE")
			if _, err := q.ExecContext(ctx, text, args...); err != nil {
				return err
			}
		}
		since := frag{" = CAST(", arg{stampOf(t.dialect, h.Since)}, " AS bigint)"}
		text, args := render(t.dialect, "DELETE FROM rowlocks WHERE table_name = ", arg{t.name}, " AND row_key = ", arg{h.Row},
			" AND user_id = ", arg{h.User}, " AND session = ", arg{h.Session}, " AND ", stamp(t.dialect, "since"), since, " AND ", where)
		result, err := q.ExecContext(own.Context(ctx, text), text, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		c := t.columns
		text, args = render(t.dialect, "UPDATE ", t.quoted, " SET ", t.freed(), " ", t.where(key),
			" AND CAST(", c.by, " AS text) = ", arg{h.User}, " AND ", stamp(t.dialect, c.since), since)
		if result, err = q.ExecContext(ctx, text, args...); err != nil {
			return err
		}
		n, err := result.RowsAffected()
		freed = int(n)
		return err
	})
	if err != nil {
		return 0, err
	}
	return freed, nil
}
