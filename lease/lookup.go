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

// Info is what the database says of a live lease. It is for people and
// diagnostics: by the time it is read the lease may have ended. Only the guard
// in a write can tell whether its token is stale.
type Info struct {
	Key        string // normalised
	LockID     string // whoever has it can release the lease; String leaves it out
	Holder     string // as given by [Owner]; may be empty
	Token      sqlfence.Token
	AcquiredAt time.Time // by the server's clock, as is
	ExpiresAt  time.Time
	Ephemeral  bool
}

// String tells who holds what, since when and until when.
func (i Info) String() string {
	holder := i.Holder
	if holder == "" {
		holder = "-"
	}
	return fmt.Sprintf("%s held by %s since %s until %s", i.Token, holder,
		i.AcquiredAt.UTC().Format(time.RFC3339Nano), i.ExpiresAt.UTC().Format(time.RFC3339Nano))
}

// LogValue is String: a log doesn't show the lock id either.
func (i Info) LogValue() slog.Value { return slog.StringValue(i.String()) }

// Lookup returns the live lease on key, and whether there is one. It changes
// nothing. Errors: [ErrInvalid] for the key, or the database's own.
func (m *Leases) Lookup(ctx context.Context, key string) (Info, bool, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return Info{}, false, err
	}
	return m.one(ctx, "key", key)
}

// LookupID returns the live lease with a lock id, and whether there is one: so a
// holder can see whether it still holds it. It changes nothing. Errors:
// [ErrInvalid] for the lock id, or the database's own.
func (m *Leases) LookupID(ctx context.Context, lockID string) (Info, bool, error) {
	if err := ValidateLockID(lockID); err != nil {
		return Info{}, false, err
	}
	return m.one(ctx, "lock_id", lockID)
}

// IsLocked tells whether key has a live lease. It changes nothing. Errors:
// [ErrInvalid] for the key, or the database's own.
func (m *Leases) IsLocked(ctx context.Context, key string) (bool, error) {
	_, ok, err := m.Lookup(ctx, key)
	return ok, err
}

// List returns all live leases, in the order of their keys. It changes nothing.
func (m *Leases) List(ctx context.Context) ([]Info, error) {
	return m.infos(ctx, "", "")
}

// Sweep removes from fencing_leases the rows of leases that have ended, and
// returns how many those were. Nothing needs it but the size of the table, which
// has a row for each key that was ever leased: the counters of the tokens are in
// fencing_tokens, where no row is ever removed.
func (m *Leases) Sweep(ctx context.Context) (int64, error) {
	n, err := m.exec(ctx, m.dialect.sweep())
	if err != nil {
		return 0, fmt.Errorf("lease: sweep: %w", err)
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
		return nil, fmt.Errorf("lease: lookup: %w", err)
	}
	return found, nil
}
