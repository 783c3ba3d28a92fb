package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// ErrNotHeld: the user doesn't hold the lock that is to be renewed, and nobody
// else does. Another Request may get it.
var ErrNotHeld = errors.New("rowlock: the user does not hold the lock")

// tries is how often a claim is sent while nothing explains why it is refused.
// Someone else would have to come and go each time.
const tries = 100

// A claim is one conditional UPDATE of a row's lock.
type claim struct {
	checked
	set       frag                 // what is written
	allowed   func(c columns) frag // the condition, on these columns
	held      bool                 // that it isn't held is reason enough to refuse
	unchecked bool                 // the row may be at any version
	load      string               // columns to read, with a comma before; or none
	dest      []any                // where they go
}

// claim carries c out and returns the lock, or why it was refused.
func (t *Table) claim(ctx context.Context, q querier, c claim) (Lock, error) {
	for range tries {
		f, err := t.try(ctx, q, c)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return Lock{}, errGone(t.name, c.ID)
		case err != nil:
			return Lock{}, err
		case f.granted:
			return t.lock(f), nil
		}
		if refusal := t.refusal(c, f); refusal != nil {
			return Lock{}, refusal
		}
		// What refused has gone in the meantime: its time has just run out, or, in
		// SQLite outside of a transaction, it was changed between the two statements.
	}
	return Lock{}, errors.New("the row takes no lock: look for a trigger or a rule on the table")
}

// try returns sql.ErrNoRows if there is no row.
func (t *Table) try(ctx context.Context, q querier, c claim) (facts, error) {
	if t.dialect == sqlfence.Postgres {
		text, args := t.claimPostgres(c)
		return t.read(ctx, q, c.dest, text, args)
	}
	text, args := t.claimSQLite(c)
	f, err := t.read(ctx, q, c.dest, text, args)
	if !errors.Is(err, sql.ErrNoRows) {
		return f, err
	}
	text, args = render(t.dialect, "SELECT ", t.facts(t.columns), ", 0 FROM ", t.quoted, " ", t.where(c.key))
	return t.read(ctx, q, nil, text, args)
}

// claimPostgres is one statement, also if it refuses. The row is locked first, so
// that the condition and the facts are of one version, the newest: a plain UPDATE
// that waited would be checked on the newest, but a SELECT beside it would read
// the one before.
func (t *Table) claimPostgres(c claim) (string, []any) {
	found := columns{t.dialect, "rowlock_serial", "rowlock_by", "rowlock_since", "rowlock_expiry"}
	keys, join := frag{}, frag{}
	for i, key := range t.keys {
		name := fmt.Sprintf("rowlock_key%d", i)
		keys = append(keys, ", ", key, " AS ", name)
		join = append(join, " AND ", key, " = ", name)
	}
	return render(t.dialect,
		"WITH rowlock_found AS MATERIALIZED (SELECT ",
		t.columns.serial, " AS ", found.serial, ", ", t.columns.by, " AS ", found.by, ", ",
		t.columns.since, " AS ", found.since, ", ", t.columns.expiry, " AS ", found.expiry, keys,
		" FROM ", t.quoted, " ", t.where(c.key), " FOR NO KEY UPDATE), ",
		"rowlock_granted AS (UPDATE ", t.quoted, " SET ", c.set, " FROM rowlock_found WHERE ", t.condition(c, found), join,
		" RETURNING CAST(", t.columns.by, " AS text) AS rowlock_new_by, ",
		stamp(t.dialect, t.columns.since), " AS rowlock_new_since, ",
		stamp(t.dialect, t.columns.expiry), " AS rowlock_new_expiry, true AS rowlock_ok", c.load, ") ",
		"SELECT ", found.version(), ", COALESCE(rowlock_new_by, CAST(", found.by, " AS text)), ",
		"COALESCE(rowlock_new_since, ", stamp(t.dialect, found.since), "), ",
		"COALESCE(rowlock_new_expiry, ", stamp(t.dialect, found.expiry), "), ",
		found.live(), ", COALESCE(rowlock_ok, false), rowlock_granted.* ",
		"FROM rowlock_found LEFT JOIN rowlock_granted ON true")
}

// claimSQLite returns no row if it refuses: a second statement has to tell why.
// In a transaction nobody can come between, because the first one has taken the
// place of the only writer, even where it changed nothing.
func (t *Table) claimSQLite(c claim) (string, []any) {
	return render(t.dialect,
		"UPDATE ", t.quoted, " SET ", c.set, " ", t.where(c.key), " AND ", t.condition(c, t.columns),
		" RETURNING ", t.facts(t.columns), ", 1, 0, 0, 0, 0", c.load)
}

func (t *Table) condition(c claim, columns columns) frag {
	if c.unchecked {
		return frag{columns.versioned(), " AND ", c.allowed(columns)}
	}
	return frag{columns.versioned(), " AND ", columns.unchanged(c.Serial), " AND ", c.allowed(columns)}
}
