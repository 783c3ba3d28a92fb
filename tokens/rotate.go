package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A Mark names the fence column of a table ([sqlfence.RowFence]), for [Store.Rotate].
type Mark struct {
	Table  string // as for [sqlfence.WithTable]
	Column string // as for [sqlfence.RowFence]
}

// A RotateOption is a [Mark], or [RetireAll].
type RotateOption interface{ rotate(r *rotation) }

type rotation struct {
	columns []Mark
	all     bool
}

func (m Mark) rotate(r *rotation) { r.columns = append(r.columns, m) }

// RetireAll makes Rotate retire all names that [Store.Retires] lists, even with a live lease.
func RetireAll() RotateOption { return retireAll{} }

type retireAll struct{}

func (retireAll) rotate(r *rotation) { r.all = true }

// A Retiring is a name that [Store.Rotate] would retire.
type Retiring struct {
	Token  sqlfence.Token // the newest
	Leased bool           // the name has a live lease
	Holder string         // the holder of the lease; may be empty
}

// A RetireError reports names that [Store.Rotate] would retire without being asked to: the names of rows, and names
// with a live lease. It is [sqlfence.ErrInvalid].
type RetireError struct {
	Name  string
	Names []Retiring // ordered by name
}

func (e *RetireError) Error() string {
	const most = 10
	var names []string
	for _, r := range e.Names[:min(most, len(e.Names))] {
		name := fmt.Sprintf("%q with token %d", r.Token.Name, r.Token.Value)
		if r.Leased {
			name += fmt.Sprintf(" and a live lease of %q", r.Holder)
		}
		names = append(names, name)
	}
	if n := len(e.Names) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return fmt.Sprintf("%v: rotate %[2]q: it would retire, for ever, %[3]s. Stop their holders. A new name must not "+
		"begin with %[4]q: take one such as %[5]q. If all these names belong to the old name, pass tokens.RetireAll "+
		"(sqlfence tokens rotate --force)", sqlfence.ErrInvalid, e.Name, strings.Join(names, ", "), e.Name+"/",
		e.Name+"-2")
}

func (e *RetireError) Is(target error) bool { return target == sqlfence.ErrInvalid }

// Retires returns the names that Rotate would retire, ordered by name: name, if it has a token, and each that begins
// with name + "/".
func (s *Store) Retires(ctx context.Context, name string) ([]Retiring, error) {
	name, err := normalize(name)
	if err != nil {
		return nil, err
	}
	var found []Retiring
	holders, err := s.holders(ctx, s.db)
	if err == nil {
		err = s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			found, err = s.retires(ctx, tx, name, holders)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: rotate %q: %w", name, s.explain(ctx, err))
	}
	return found, nil
}

// retires is Retires in a transaction. holders has the holders of leases by their keys.
func (s *Store) retires(
	ctx context.Context, tx *sql.Tx, name string, holders map[string]string,
) (all []Retiring, err error) {
	text, args := s.dialect.retires(name)
	err = dialectopt.EachRow(ctx, tx, func(rows *sql.Rows) error {
		var r Retiring
		if err := rows.Scan(&r.Token.Name, &r.Token.Value); err != nil {
			return err
		}
		r.Holder, r.Leased = holders[r.Token.Name]
		if r.Token.Value > 0 && r.Token.Value <= sqlfence.MaxToken {
			all = append(all, r)
		}
		return nil
	}, text, args...)
	return all, err
}

// toRetire returns the names that a rotation retires. Without all, it returns a RetireError for names other than name
// and for live leases. It reads the leases again, because one may have been taken before the tables were locked.
func (s *Store) toRetire(
	ctx context.Context, tx *sql.Tx, name string, holders map[string]string, all bool,
) (found []Retiring, err error) {
	if !all && holders != nil {
		if holders, err = s.holders(ctx, tx); err != nil {
			return nil, err
		}
	}
	found, err = s.retires(ctx, tx, name, holders)
	if err != nil || all {
		return found, err
	}
	asked := func(r Retiring) bool { return r.Token.Name == name && !r.Leased }
	if others := slices.DeleteFunc(slices.Clone(found), asked); len(others) > 0 {
		return nil, &RetireError{Name: name, Names: others}
	}
	return found, nil
}

// holders returns the holders of the live leases by their keys; nil without a table of leases.
func (s *Store) holders(ctx context.Context, db dialectopt.Queries) (map[string]string, error) {
	holders := make(map[string]string)
	err := dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
		var key, holder string
		err := rows.Scan(&key, &holder)
		holders[key] = holder
		return err
	}, render(s.dialect, "SELECT l."+s.dialect.Quote("key")+", l.holder FROM fencing_leases AS l WHERE {live l}"))
	lacks := setuperr.Lacks(err, setuperr.Table{Name: sqltext.LeaseTable})
	if lacks || dberr.SQLState(err) == dberr.InsufficientPrivilege {
		return nil, nil
	}
	return holders, err
}

// Rotate retires a name and the names of its rows, name + "/" + key (see [sqlfence.Key]), for good: no token of these
// names can be issued any more. In the tables of the [Mark] options it sets fence columns above [sqlfence.WarnToken] to
// the highest lower token, and returns the number of these rows. Use Rotate if a name has run out of tokens, or if rows
// store a token that was never issued. Before, stop all processes that write under the old name (docs/tokens.md).
//
// The first token of a new name is then higher than all stored tokens of these tables. The new name must not begin with
// name + "/". [Store.Issue] returns [sqlfence.ErrTokenLimit] for a retired name.
//
// Rotate is one transaction. Until it ends, no other client can write to the tables on PostgreSQL, or to the file on
// SQLite. Triggers of the tables fire for each reset row.
//
// Errors: a [*RetireError] if other names, or a live lease, would be retired without [RetireAll];
// [sqlfence.ErrUnknownName] (call [Store.Ensure] for a name that was never adopted); [sqlfence.ErrInvalid] for the name
// or a Mark.
func (s *Store) Rotate(ctx context.Context, name string, options ...RotateOption) (rows int64, err error) {
	name, err = normalize(name)
	if err != nil {
		return 0, err
	}
	var r rotation
	for _, o := range options {
		o.rotate(&r)
	}
	locks, resets, err := s.resets(r.columns)
	if err != nil {
		return 0, fmt.Errorf("%w: rotate %q: %w", sqlfence.ErrInvalid, name, err)
	}
	holders, err := s.holders(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("tokens: rotate %q: %w", name, err)
	}
	err = s.transact(sqlfence.Bypass(ctx, "tokens: rotate"), func(ctx context.Context, tx *sql.Tx) error {
		// Tables are locked before the ledger, in the lock order of writers. After the locks no session can add a name.
		if err := execAll(ctx, tx, append(locks[:len(locks):len(locks)], s.dialect.lock...)); err != nil {
			return err
		}
		if err := execAll(ctx, tx, s.dialect.awaitWrites, name); err != nil {
			return err
		}
		all, err := s.toRetire(ctx, tx, name, holders, r.all)
		if err != nil {
			return err
		}
		retired, err := s.dialect.retire(ctx, tx, name)
		if err != nil {
			return err
		}
		if !retired {
			return fmt.Errorf("%w: %q", sqlfence.ErrUnknownName, name)
		}
		rows, err = s.setBack(ctx, tx, all, resets)
		return err
	})
	switch {
	case errors.Is(err, sqlfence.ErrUnknownName), errors.As(err, new(*RetireError)):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("tokens: rotate %q: %w", name, s.explain(ctx, err, s.fencedTables(r.columns)...))
	}
	return rows, nil
}

// setBack computes the highest token up to [sqlfence.WarnToken], of the retired names and of the fence columns. It
// makes this token the lower bound of new names, sets fence columns above WarnToken to it, and returns the number of
// these rows.
func (s *Store) setBack(ctx context.Context, tx *sql.Tx, retired []Retiring, resets []reset) (rows int64, err error) {
	var floor int64
	for _, r := range retired {
		if r.Token.Value <= sqlfence.WarnToken {
			floor = max(floor, r.Token.Value)
		}
	}
	for _, r := range resets {
		highest, err := queryOnce(ctx, tx, r.highest)
		if err != nil {
			return 0, err
		}
		floor = max(floor, highest)
	}
	if floor > 0 && len(resets) > 0 {
		if err := execAll(ctx, tx, []string{s.dialect.serve}, floor); err != nil {
			return 0, err
		}
	}
	for _, r := range resets {
		n, err := execCount(ctx, tx, r.set+strconv.FormatInt(floor, 10)+r.above)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

// A reset is two statements for the fence column of a table: highest is a query for the highest token that stays, and
// set + number + above an UPDATE that sets the others to this number. They compare absolute values, because a table
// with Sealed may store negative tokens (see schema.Unseal).
type reset struct{ highest, set, above string }

// resets returns the statements that lock the tables, and the statements that reset the fence columns.
func (s *Store) resets(marks []Mark) (locks []string, resets []reset, err error) {
	d := s.dialect
	for _, m := range marks {
		schema, table, err := lang.SpellName(d.names, m.Table)
		if err != nil {
			return nil, nil, err
		}
		column, err := lang.ParseColumn(d.names, m.Column)
		if err != nil {
			return nil, nil, err
		}
		table, column = sqltext.QuoteIn(d, schema, table), d.Quote(column)
		if d.lockRows != nil {
			locks = append(locks, d.lockRows(table))
		}
		mark, warn := d.Capabilities().BuiltIn+"abs("+column+")", strconv.Itoa(sqlfence.WarnToken)
		resets = append(resets, reset{
			highest: sqltext.Whole(d, "SELECT "+d.Capabilities().BuiltIn+"max("+mark+") FROM "+table+
				" WHERE "+mark+" <= "+warn),
			set: "UPDATE " + table + " SET " + column + " = ", above: sqltext.Whole(d, " WHERE "+mark+" > "+warn),
		})
	}
	return locks, resets, nil
}

func (s *Store) fencedTables(marks []Mark) (tables []setuperr.Table) {
	for _, m := range marks {
		_, name, _ := lang.SpellName(s.dialect.names, m.Table)
		tables = append(tables, setuperr.Table{Name: name, SQL: m.Table, Privileges: "SELECT, UPDATE"})
	}
	return tables
}

func execCount(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	result, err := tx.ExecContext(trusted.Context(ctx, text), text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
