package lease

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence"
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
func (l *Leases) Lookup(ctx context.Context, key string) (Info, bool, error) {
	key, err := NormalizeKey(key)
	if err != nil {
		return Info{}, false, err
	}
	return l.one(ctx, l.sql.byKey, key)
}

// LookupID returns the live lease with a lock id, and whether there is one: so a
// holder can see whether it still holds it. It changes nothing. Errors:
// [ErrInvalid] for the lock id, or the database's own.
func (l *Leases) LookupID(ctx context.Context, lockID string) (Info, bool, error) {
	if err := ValidateLockID(lockID); err != nil {
		return Info{}, false, err
	}
	return l.one(ctx, l.sql.byID, lockID)
}

// IsLocked tells whether key has a live lease. It changes nothing. Errors:
// [ErrInvalid] for the key, or the database's own.
func (l *Leases) IsLocked(ctx context.Context, key string) (bool, error) {
	_, ok, err := l.Lookup(ctx, key)
	return ok, err
}

// List returns all live leases, in the order of their keys. It changes nothing.
func (l *Leases) List(ctx context.Context) ([]Info, error) {
	return l.infos(ctx, l.sql.list)
}

// Sweep removes from fencing_leases the rows of leases that have ended, and
// returns how many those were. Nothing needs it but the size of the table, which
// has a row for each key that was ever leased: the counters of the tokens are in
// fencing_tokens, where no row is ever removed.
func (l *Leases) Sweep(ctx context.Context) (int64, error) {
	n, err := l.exec(ctx, l.sql.sweep)
	if err != nil {
		return 0, fmt.Errorf("lease: sweep: %w", err)
	}
	return n, nil
}

func (l *Leases) one(ctx context.Context, query string, arg string) (Info, bool, error) {
	found, err := l.infos(ctx, query, arg)
	if err != nil || len(found) == 0 {
		return Info{}, false, err
	}
	return found[0], true, nil
}

func (l *Leases) infos(ctx context.Context, query string, args ...any) (found []Info, err error) {
	scan := func(rows *sql.Rows) error {
		var i Info
		var acquired, expires int64
		err := rows.Scan(&i.Key, &i.LockID, &i.Holder, &i.Token.Value, &acquired, &expires, &i.Ephemeral)
		i.Token.Name = i.Key
		i.AcquiredAt, i.ExpiresAt = time.UnixMicro(acquired), time.UnixMicro(expires)
		found = append(found, i)
		return err
	}
	err = retry(func() error {
		found = nil
		return queryOnce(ctx, l.db, scan, query, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("lease: lookup: %w", err)
	}
	return found, nil
}

// scanTimes reads when a lease ends, and how long that is from now.
func scanTimes(rows *sql.Rows) (until time.Time, left time.Duration, err error) {
	var at, in int64
	err = rows.Scan(&at, &in)
	return time.UnixMicro(at), time.Duration(in) * time.Microsecond, err
}
