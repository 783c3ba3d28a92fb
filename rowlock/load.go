package rowlock

import (
	"context"
	"strings"
)

// LoadLocked takes the lock as [Table.Request] does, at any version of the row, and reads the row in the same round
// trip, so that no client can change it in between. e.Serial is ignored; compare it with the version returned to
// learn whether the row has changed. columns is a list as after SELECT, such as "customer, total", without arguments;
// dest has a pointer for each, as for [sql.Rows.Scan].
//
// Errors are those of Request, except that there is no conflict. If dest can't store the values, the user may hold
// the lock nevertheless, and can release it.
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
