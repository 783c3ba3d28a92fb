package lease

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/poll"
)

// Info describes a live lease.
type Info struct {
	Key        string         // normalized
	LockID     string         `json:"-"` // a secret
	Holder     string         // may be empty
	Token      sqlfence.Token // its Name is the key
	AcquiredAt time.Time      // by the server's clock, as ExpiresAt
	ExpiresAt  time.Time
	Ephemeral  bool
}

func (i Info) String() string {
	return fmt.Sprintf("%s held by %s since %s until %s", i.Token, cmp.Or(i.Holder, "-"),
		i.AcquiredAt.UTC().Format(time.RFC3339Nano), i.ExpiresAt.UTC().Format(time.RFC3339Nano))
}

func (i Info) LogValue() slog.Value { return slog.StringValue(i.String()) }

// Lookup returns the live lease of key, if there is one, or [ErrInvalid], or [sqlfence.ErrStandby] from a standby.
func (m *Leases) Lookup(ctx context.Context, key string) (Info, bool, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return Info{}, false, err
	}
	return m.one(ctx, "key", key, true)
}

// LookupID is [Leases.Lookup] by lock id.
func (m *Leases) LookupID(ctx context.Context, lockID string) (Info, bool, error) {
	if err := validateLockID(lockID); err != nil {
		return Info{}, false, err
	}
	return m.one(ctx, "lock_id", lockID, true)
}

// IsLocked is [Leases.Lookup] without the [Info].
func (m *Leases) IsLocked(ctx context.Context, key string) (bool, error) {
	_, ok, err := m.Lookup(ctx, key)
	return ok, err
}

// List returns all live leases, ordered by key. A standby may return old data.
func (m *Leases) List(ctx context.Context) ([]Info, error) {
	return m.infos(ctx, m.dialect.list("", ""), false)
}

// Watch yields the current holder of key, or the zero Info, and then each change, until the loop or ctx ends. It polls
// every interval, which must be positive. A standby may return old data. [ErrInvalid] ends the loop; other errors come
// with the zero Info.
func (m *Leases) Watch(ctx context.Context, key string, interval time.Duration) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		key, err := NormalizeKey(key)
		if err == nil && interval <= 0 {
			err = invalid("an interval of %v, want more than 0", interval)
		}
		if err != nil {
			yield(Info{}, err)
			return
		}
		ask := func(ctx context.Context) (Info, error) {
			found, _, err := m.one(ctx, "key", key, false)
			return found, err
		}
		same := func(a, b Info) bool { return a.Token == b.Token }
		poll.Changes(ctx, interval, ask, same)(yield)
	}
}

// Sweep deletes the rows of ended leases and returns their number. Tokens are kept. Without Sweep, the table keeps one
// row for each key.
func (m *Leases) Sweep(ctx context.Context) (int64, error) {
	n, err := m.exec(ctx, m.dialect.sweep)
	if err != nil {
		return 0, fmt.Errorf("lease: sweep: %w", m.explain(ctx, err))
	}
	return n, nil
}

// one returns the live lease with a value in a column. With decide, a server that may be behind returns an error.
func (m *Leases) one(ctx context.Context, column, value string, decide bool) (Info, bool, error) {
	found, err := m.infos(ctx, m.dialect.list(column, value), decide)
	if err != nil || len(found) == 0 {
		return Info{}, false, err
	}
	return found[0], true, nil
}

func (m *Leases) infos(ctx context.Context, s statement, decide bool) (found []Info, err error) {
	scan := func(row dialectopt.Row) error {
		var i Info
		var acquired, expires int64
		err := row.Scan(&i.Key, &i.LockID, &i.Holder, &i.Token.Value, &acquired, &expires, &i.Ephemeral)
		i.Token.Name, i.Holder = i.Key, shown(i.Holder)
		i.AcquiredAt, i.ExpiresAt = time.UnixMicro(acquired), time.UnixMicro(expires)
		found = append(found, i)
		return err
	}
	err = dberr.Resend(ctx, dberr.IsRolledBack, func() error {
		found = nil
		if !decide {
			return queryOnce(ctx, m.db, func(rows *sql.Rows) error { return scan(rows) }, s)
		}
		return s.send(ctx, m.db, func(db querier, text string) error {
			return dialectopt.Decide(ctx, db, m.dialect.server, scan, text, s.args...)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("lease: lookup: %w", m.explain(ctx, err))
	}
	return found, nil
}
