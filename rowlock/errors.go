package rowlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// ErrNotHeld: the user doesn't hold the lock that [Table.Renew] should extend, and no other user does. [Table.Request]
// can take the lock.
var ErrNotHeld = errors.New("rowlock: the user does not hold the lock")

func invalid(format string, args ...any) error {
	return dialectopt.Invalid("rowlock", fmt.Errorf(format, args...))
}

func errGone(table string, id any) error {
	return fmt.Errorf("%w: table %q, key %v", sqlfence.ErrGone, table, id)
}

// isRefusal reports whether err is a result rather than a failure: the row's state doesn't allow the call.
func isRefusal(err error) bool {
	return errors.Is(err, sqlfence.ErrGone) || errors.Is(err, sqlfence.ErrConflict) ||
		errors.Is(err, sqlfence.ErrLocked) || errors.Is(err, ErrNotHeld)
}

// explain adds to an error what failed, and what the database is missing. A refusal says that itself.
func (t *Table) explain(ctx context.Context, do string, err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	var db dialectopt.Queries = t.db
	if t.tx != nil {
		db = t.tx
	}
	err = dialectopt.Explain(ctx, db, err, t.needs(), rowlocks(t.dialect, t.options.Schema))
	return fmt.Errorf("rowlock: %s: table %q: %w", do, t.name, err)
}

func (m *Manager) explain(ctx context.Context, err error) error {
	return dialectopt.Explain(ctx, m.db, err, rowlocks(m.dialect, m.options.Schema))
}

// rowlocks is what the statements need of the table rowlocks.
func rowlocks(d *dialect, schema string) setuperr.Table {
	return setuperr.Own(d, schema, "rowlocks", d.create, "SELECT, INSERT, UPDATE, DELETE")
}

func (t *Table) needs() setuperr.Table {
	c := t.columns
	return setuperr.Table{Name: t.table, SQL: t.name,
		Privileges: "SELECT, UPDATE (" + c.by + ", " + c.since + ", " + c.expiry + ")"}
}
