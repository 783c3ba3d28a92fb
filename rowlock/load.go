package rowlock

import (
	"context"
	"strings"
)

// LoadLocked takes the lock as [Table.Request] does and reads the row, in one round trip: no client
// can change the row between the two. The row may be at any version: e.Serial is ignored, and the
// Lock returned has the version that was read. columns is a list as after SELECT, such as
// "customer, total", without arguments; dest has a pointer for each, as for [sql.Rows.Scan]. They
// are written only if the lock is granted, and before the commit.
//
// Errors are those of Request, except that there is no conflict. If dest can't store the
// values that were read, the user may have got the lock all the same, and can release it.
func (t *Table) LoadLocked(ctx context.Context, e Edit, columns string, dest ...any) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	if strings.TrimSpace(columns) == "" || len(dest) == 0 {
		return Lock{}, invalid("nothing to load: name columns and give variables for them")
	}
	u := t.request(c)
	u.anyVersion, u.load, u.dest = true, columns, dest
	return t.grant(ctx, "load", u)
}

// ReloadLocked is [Table.LoadLocked] for a row that the user has read before. It also
// reports whether the row has changed since: whether its version is another than
// e.Serial. Use it after a [*sqlfence.ConflictError].
func (t *Table) ReloadLocked(
	ctx context.Context, e Edit, columns string, dest ...any,
) (lock Lock, changed bool, err error) {
	lock, err = t.LoadLocked(ctx, e, columns, dest...)
	return lock, err == nil && lock.Serial != e.Serial, err
}
