package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
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

// Rotate retires name and the names of its rows, name + "/" + key (see [sqlfence.Key]), and sets
// the marks of all rows back to 0, so that the tokens of a new name can begin at 1 in these tables.
// It returns the number of marks it reset. Use it for a name that has run out of tokens, or after a
// token that was never issued has got into the rows' marks, which then refuse all others for ever.
//
// Retiring is final: Issue, and package lease, return [sqlfence.ErrTokenLimit] for a
// retired name, and tables with [sqlfence.Ledger] refuse all its tokens as stale. Mind
// that every name which begins with name + "/" is retired, also the key of a lease that
// has nothing to do with rows. From then on the tables use a new name as their resource.
// The procedure:
//
//  1. Stop all processes that write to the tables under the old name.
//  2. Call Rotate with the old name and a Mark for each table that has it as its resource.
//  3. Start the application with [sqlfence.Resource] of the new name on each of them,
//     for example Resource("books-2"); its first token is 1.
//
// Skip the first step only if all tables have Ledger beside RowFence, and none has Key:
// under Key, a row that is not in the ledger yet would still get a token of the old name.
// Otherwise nothing refuses the old name's tokens once the marks are reset. A process
// that still runs with one overwrites the rows of the new holders, and puts its token
// back into the marks, which then refuse the new holders. If the second step left out a
// table, its rows refuse the new tokens; call Rotate again, which changes nothing else.
//
// Rotate is one transaction. Until it ends, no other client can write to the tables on PostgreSQL,
// or to the file on SQLite. The tables' triggers fire for each mark that is reset. If row-level
// security hides rows from the database role, Rotate fails.
//
// Errors, with nothing changed: [sqlfence.ErrUnknownName] if the ledger has neither the
// name nor one of its rows' (call [Store.Ensure] first if its tokens came from elsewhere
// and were never adopted), [sqlfence.ErrInvalid] for an invalid name or
// Mark, or the database's.
func (s *Store) Rotate(ctx context.Context, name string, marks ...Mark) (rows int64, err error) {
	name, err = normalize(name)
	if err != nil {
		return 0, err
	}
	locks, resets, err := s.resets(marks)
	if err != nil {
		return 0, fmt.Errorf("%w: rotate %q: %w", sqlfence.ErrInvalid, name, err)
	}
	err = s.transact(sqlfence.Bypass(ctx, "tokens: rotate"), func(ctx context.Context, tx *sql.Tx) error {
		// Tables are locked before the ledger, in the order of those who write to them.
		if err := execAll(ctx, tx, locks); err != nil {
			return err
		}
		if err := execAll(ctx, tx, s.dialect.turn, name); err != nil {
			return err
		}
		retired, err := s.dialect.retire(ctx, tx, name)
		if err != nil {
			return err
		}
		if !retired {
			return fmt.Errorf("%w: %q", sqlfence.ErrUnknownName, name)
		}
		rows = 0
		for _, reset := range resets {
			n, err := execCount(ctx, tx, reset)
			if err != nil {
				return err
			}
			rows += n
		}
		return nil
	})
	switch {
	case errors.Is(err, sqlfence.ErrUnknownName):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("tokens: rotate %q: %w", name, s.explain(ctx, err, s.marked(marks)...))
	}
	return rows, nil
}

// resets returns the statements that keep others from writing to the tables, and those
// that reset the marks.
func (s *Store) resets(marks []Mark) (locks, resets []string, err error) {
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
		resets = append(resets, "UPDATE "+table+" SET "+column+" = 0 WHERE "+column+" <> 0")
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
