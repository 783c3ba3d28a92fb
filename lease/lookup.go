package lease

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

// Info describes a live lease. It is for people and diagnostics: by the time that it is
// read the lease may have ended. Only the guard in a write can tell whether its token
// is stale.
type Info struct {
	Key        string         // normalized
	LockID     string         `json:"-"` // enough to release the lease; so it is in no text or log
	Holder     string         // the name given by [Owner]; may be empty
	Token      sqlfence.Token // its Name is the key
	AcquiredAt time.Time      // by the server's clock
	ExpiresAt  time.Time      // by the server's clock
	Ephemeral  bool           // see [Ephemeral]
}

// String says who holds which key, since when and until when, without the lock id.
func (i Info) String() string {
	holder := i.Holder
	if holder == "" {
		holder = "-"
	}
	return fmt.Sprintf("%s held by %s since %s until %s", i.Token, holder,
		i.AcquiredAt.UTC().Format(time.RFC3339Nano), i.ExpiresAt.UTC().Format(time.RFC3339Nano))
}

// LogValue returns String's text, so that logs don't show the lock id either.
//
// JSON has the fields, without the lock id.
func (i Info) LogValue() slog.Value { return slog.StringValue(i.String()) }

// Lookup returns the live lease of key, and whether there is one. It changes nothing. Ask the
// primary: a standby that replays late may miss a lease that is held.
// Errors: [ErrInvalid] for the key, or the database's.
func (m *Leases) Lookup(ctx context.Context, key string) (Info, bool, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return Info{}, false, err
	}
	return m.one(ctx, "key", key)
}

// LookupID returns the live lease with this lock id, and whether there is one, so that a
// holder can see whether it still holds the lease. It changes nothing. Errors:
// [ErrInvalid] for the lock id, or the database's.
func (m *Leases) LookupID(ctx context.Context, lockID string) (Info, bool, error) {
	if err := validateLockID(lockID); err != nil {
		return Info{}, false, err
	}
	return m.one(ctx, "lock_id", lockID)
}

// IsLocked reports whether key has a live lease. It changes nothing. Ask the primary: a standby
// that replays late may say no of a lease that is held. Errors: [ErrInvalid] for the key, or the
// database's.
func (m *Leases) IsLocked(ctx context.Context, key string) (bool, error) {
	_, ok, err := m.Lookup(ctx, key)
	return ok, err
}

// List returns all live leases, ordered by key. It changes nothing. Errors are the
// database's.
func (m *Leases) List(ctx context.Context) ([]Info, error) {
	return m.infos(ctx, "", "")
}

// Sweep removes the rows of leases that have ended from fencing_leases, and returns
// their number. Call it only to keep the table small: it holds one row per key ever
// leased. Token counters live in fencing_tokens and are kept. Errors are the database's.
func (m *Leases) Sweep(ctx context.Context) (int64, error) {
	n, err := m.exec(ctx, m.dialect.sweep())
	if err != nil {
		return 0, fmt.Errorf("lease: sweep: %w", m.explain(ctx, err))
	}
	return n, nil
}

func (m *Leases) one(ctx context.Context, column, value string) (Info, bool, error) {
	found, err := m.infos(ctx, column, value)
	if err != nil || len(found) == 0 {
		return Info{}, false, err
	}
	return found[0], true, nil
}

func (m *Leases) infos(ctx context.Context, column, value string) (found []Info, err error) {
	scan := func(rows *sql.Rows) error {
		var i Info
		var acquired, expires int64
		err := rows.Scan(&i.Key, &i.LockID, &i.Holder, &i.Token.Value, &acquired, &expires, &i.Ephemeral)
		i.Token.Name = i.Key
		i.AcquiredAt, i.ExpiresAt = time.UnixMicro(acquired), time.UnixMicro(expires)
		found = append(found, i)
		return err
	}
	s := m.dialect.list(column, value)
	err = dberr.Resend(ctx, dberr.IsRolledBack, func() error {
		found = nil
		return queryOnce(ctx, m.db, scan, s)
	})
	if err != nil {
		return nil, fmt.Errorf("lease: lookup: %w", m.explain(ctx, err))
	}
	return found, nil
}
