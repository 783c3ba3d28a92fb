package rowlock

import (
	"context"
	"errors"
	"strings"
)

// LoadLocked takes the lock as [Table.Request] does and reads the row, in one
// round trip: nobody can come between. The row may be at any version; e.Serial
// is not looked at, and the Lock returned has the version that was read. columns
// is a list as after SELECT, such as "customer, total", without arguments; dest
// are pointers as for [sql.Rows.Scan], one for each, written only if the lock is
// granted, and before a commit.
//
// Errors are those of Request but for the conflict. If what was read can't be
// stored in dest the lock may have been taken; it is the user's then, to release.
func (t *Table) LoadLocked(ctx context.Context, e Edit, columns string, dest ...any) (Lock, error) {
	c, err := t.loading(e, columns, dest)
	if err != nil {
		return Lock{}, err
	}
	c.unchecked = true
	return t.grant(ctx, "load", c)
}

// ReloadLocked is [Table.LoadLocked] for a row that the user has read before: it
// reports besides whether the row has changed since, that is, whether it has
// another version than e.Serial. Use it after a [*sqlfence.ConflictError].
func (t *Table) ReloadLocked(ctx context.Context, e Edit, columns string, dest ...any) (lock Lock, changed bool, err error) {
	lock, err = t.LoadLocked(ctx, e, columns, dest...)
	return lock, err == nil && lock.Serial != e.Serial, err
}

func (t *Table) loading(e Edit, columns string, dest []any) (claim, error) {
	c, err := t.check(e)
	if err != nil {
		return claim{}, err
	}
	if strings.TrimSpace(columns) == "" || len(dest) == 0 {
		return claim{}, errors.New("rowlock: nothing to load: name columns and give variables for them")
	}
	loading := t.request(c)
	loading.load, loading.dest = ", "+columns, dest
	return loading, nil
}
