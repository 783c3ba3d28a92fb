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

// A Mark names the column of [sqlfence.RowFence] on a registered table, in which each row
// keeps the token of its last write: the row's mark.
type Mark struct {
	// Table is as for [sqlfence.WithTable]: "books", "shop.books"; quoted in double quotes unless it
	// is a plain word.
	Table  string
	Column string // as for [sqlfence.RowFence]
}

// A RotateOption is a [Mark], or [RetireAll].
type RotateOption interface{ rotate(r *rotation) }

type rotation struct {
	marks []Mark
	all   bool
}

func (m Mark) rotate(r *rotation) { r.marks = append(r.marks, m) }

// RetireAll has Rotate also retire the names of rows, and names with a live lease. See with [Store.Retires] which
// these are.
func RetireAll() RotateOption { return retireAll{} }

type retireAll struct{}

func (retireAll) rotate(r *rotation) { r.all = true }

// A Retiring is a name that [Store.Rotate] would retire.
type Retiring struct {
	Token  sqlfence.Token // the newest
	Holder string         // of a live lease of this name; empty for none, and for a holder without a name
	Leased bool
}

// A RetireError reports names that [Store.Rotate] would have retired besides the one that it was given, and those with
// a live lease. It is [sqlfence.ErrInvalid], and nothing was changed.
type RetireError struct {
	Name  string
	Names []Retiring // in the order of their names
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

// Is makes it [sqlfence.ErrInvalid].
func (e *RetireError) Is(target error) bool { return target == sqlfence.ErrInvalid }

// Retires lists the names that Rotate would retire for name, with their newest tokens, in the order of their names:
// name itself, if the ledger has a token of it, and each that begins with name + "/". Names that are retired already
// aren't among them.
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

// retires is Retires in a transaction, where the leases with these keys have these holders.
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

// checkRetired refuses to retire what isn't named, and what is in use.
func checkRetired(name string, all []Retiring) error {
	all = slices.DeleteFunc(slices.Clone(all), func(r Retiring) bool { return r.Token.Name == name && !r.Leased })
	if len(all) > 0 {
		return &RetireError{Name: name, Names: all}
	}
	return nil
}

// holders returns the holders of the live leases by their keys; none if there is no table of leases.
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

// Rotate retires name and the names of its rows, name + "/" + key (see [sqlfence.Key]), and sets back the marks that
// leave a new name no room: those above [sqlfence.WarnToken]. It returns their number. Use it for a name that has run
// out of tokens, or after a token that was never issued has got into the rows' marks, which then refuse all others for
// ever.
//
// With a Mark, the first token of a new name is above all other marks and above the retired names' newest tokens, and
// the marks that are set back get the highest of these numbers. So a new holder's write refuses the older holders of
// the old name, as after any takeover.
//
// It refuses, and changes nothing, if that would retire another name than the one it is given, or one with a live
// lease: each name that begins with name + "/" is retired, also the key of a lease that has nothing to do with rows.
// [Store.Retires] lists them. Pass [RetireAll] if all of them belong to the old name.
//
// Retiring is final: Issue, and package lease, return [sqlfence.ErrTokenLimit] for a
// retired name, and tables with [sqlfence.Ledger] refuse all its tokens as stale.
// From then on the tables use a new name as their resource, which must not begin with name + "/".
// The procedure:
//
//  1. Stop all processes that write to the tables under the old name.
//  2. Call Rotate with the old name and a Mark for each table that has it as its resource.
//  3. Start the application with [sqlfence.Resource] of the new name on each of them,
//     for example Resource("books-2"); its first token is 1.
//
// Skip the first step only if all tables have Ledger beside RowFence, and none has Key:
// under Key, a row that is not in the ledger yet would still get a token of the old name.
// Otherwise nothing refuses the old name's tokens above WarnToken once the marks are set back. A process
// that still runs with one overwrites the rows of the new holders, and puts its token
// back into the marks, which then refuse the new holders. If the second step left out a
// table, its rows refuse the new tokens; call Rotate again, which changes nothing else. So do the marks if the new name
// had tokens before Rotate; [Store.Repair] raises these.
//
// Rotate is one transaction. Until it ends, no other client can write to the tables on PostgreSQL,
// or to the file on SQLite. The tables' triggers fire for each mark that is set back. If row-level
// security hides rows from the database role, Rotate fails.
//
// Errors, with nothing changed: [sqlfence.ErrUnknownName] if the ledger has neither the
// name nor one of its rows' (call [Store.Ensure] first if its tokens came from elsewhere
// and were never adopted), [sqlfence.ErrInvalid] for an invalid name or
// Mark, a [RetireError], which is ErrInvalid, for names that it would retire besides, or the database's.
func (s *Store) Rotate(ctx context.Context, name string, options ...RotateOption) (rows int64, err error) {
	name, err = normalize(name)
	if err != nil {
		return 0, err
	}
	var r rotation
	for _, o := range options {
		o.rotate(&r)
	}
	marks := r.marks
	locks, resets, err := s.resets(marks)
	if err != nil {
		return 0, fmt.Errorf("%w: rotate %q: %w", sqlfence.ErrInvalid, name, err)
	}
	holders, err := s.holders(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("tokens: rotate %q: %w", name, err)
	}
	err = s.transact(sqlfence.Bypass(ctx, "tokens: rotate"), func(ctx context.Context, tx *sql.Tx) error {
		// Tables are locked before the ledger, in the order of those who write to them. Then no name is added.
		if err := execAll(ctx, tx, append(locks[:len(locks):len(locks)], s.dialect.lock...)); err != nil {
			return err
		}
		if err := execAll(ctx, tx, s.dialect.turn, name); err != nil {
			return err
		}
		if !r.all && holders != nil { // again, as a lease may have been taken before the locks were
			if holders, err = s.holders(ctx, tx); err != nil {
				return err
			}
		}
		all, err := s.retires(ctx, tx, name, holders)
		if err == nil && !r.all {
			err = checkRetired(name, all)
		}
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
		return 0, fmt.Errorf("tokens: rotate %q: %w", name, s.explain(ctx, err, s.marked(marks)...))
	}
	return rows, nil
}

// setBack raises the floor to the highest number that tokens of a new name can be above, and sets the marks above it
// back to it. It returns how many these are.
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

// A reset is two statements for the marks of a table: a query for the highest that stays, and an UPDATE that sets the
// others back to the number between set and above. A sealed table's marks may be negative.
type reset struct{ highest, set, above string }

// resets returns the statements that keep others from writing to the tables, and those
// that set the marks back.
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
		table, column = d.Quote(table), d.Quote(column)
		if schema != "" {
			table = d.Quote(schema) + "." + table
		}
		if d.lockRows != nil {
			locks = append(locks, d.lockRows(table))
		}
		mark, warn := d.Facts().BuiltIn+"abs("+column+")", strconv.Itoa(sqlfence.WarnToken)
		resets = append(resets, reset{
			highest: sqltext.Whole(d, "SELECT "+d.Facts().BuiltIn+"max("+mark+") FROM "+table+
				" WHERE "+mark+" <= "+warn),
			set: "UPDATE " + table + " SET " + column + " = ", above: sqltext.Whole(d, " WHERE "+mark+" > "+warn),
		})
	}
	return locks, resets, nil
}

// marked is what Rotate needs of the tables with marks.
func (s *Store) marked(marks []Mark) (tables []setuperr.Table) {
	for _, m := range marks {
		_, name, _ := lang.SpellName(s.dialect.names, m.Table)
		tables = append(tables, setuperr.Table{Name: name, SQL: m.Table, Privileges: "SELECT, UPDATE"})
	}
	return tables
}

// execCount runs a statement and returns how many rows it changed.
func execCount(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	result, err := tx.ExecContext(trusted.Context(ctx, text), text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
