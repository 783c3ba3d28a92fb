package tokens

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// deleteSize is how many names a transaction deletes, because each takes up locks of PostgreSQL's lock table.
const deleteSize = 100

// Delete deletes names without a holder from the ledger, such as those of finished jobs. It returns the names that it
// kept, because an open transaction uses them (call Delete again later), [Store.Rotate] has retired them, or their
// token is above [sqlfence.WarnToken]. The highest deleted token becomes a lower bound for the first token of every
// name, so a deleted name can be used again.
//
// After the deletion, tables with [sqlfence.Ledger] refuse the name's tokens with [sqlfence.ErrUnknownName], or
// [sqlfence.ErrStale] once the name is used again. A lease of the name isn't released. [Store.Adopt] refuses first
// tokens at or below the lower bound.
//
// Each transaction deletes 100 names; after an error, repeat Delete. Errors: [sqlfence.ErrInvalid]; an untyped error if
// the triggers of [Store.Setup] are missing or of another version, or row-level security may hide rows. Delete needs
// the privilege DELETE.
func (s *Store) Delete(ctx context.Context, names ...string) (left []string, err error) {
	names, err = normalizeAll(names)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	slices.Sort(names)
	if err = s.checkKeepsBound(ctx); err == nil {
		for part := range slices.Chunk(slices.Compact(names), deleteSize) {
			var stayed []string
			if stayed, err = s.deletePart(ctx, part); err != nil {
				break
			}
			left = append(left, stayed...)
		}
	}
	if err != nil {
		err = dialectopt.Explain(ctx, s.db, err, s.needs("SELECT, INSERT, UPDATE, DELETE"))
		return nil, fmt.Errorf("tokens: delete: %w", err)
	}
	return left, nil
}

// checkKeepsBound returns an error if the database doesn't keep the lower bound of first tokens.
func (s *Store) checkKeepsBound(ctx context.Context) error {
	if k := s.dialect.keeping; k.whole != "" {
		if found, err := s.has(ctx, k.installed); err != nil || !found {
			return cmp.Or(err, errNoBound)
		}
		if found, err := s.has(ctx, k.hidden); err != nil || found {
			return cmp.Or(err, errHidden)
		}
		return nil
	}
	if s.dialect.refused != "" {
		return nil // a role commonly can't see them
	}
	found, err := s.triggers(ctx)
	if err == nil && len(lacking(s.ledgerTriggers(ctx), found)) > 0 {
		err = errNoBound
	}
	return err
}

var errNoBound = errors.New("the triggers of the table " + sqltext.LedgerTable + " are missing or of another " +
	"version: call tokens.Store.Setup as a role that can create them; see docs/tokens.md")

var errHidden = errors.New("the table " + sqltext.LedgerTable + " has row-level security: a role that can't see " +
	"the lower bound of new tokens would get tokens that were used before; to delete names, disable " +
	"row-level security, and never enable it again")

// deletePart deletes names in one transaction. Its first statement locks the lower bound of first tokens. No later
// statement waits for a lock, because a session that waits for the lower bound may hold this lock: a deadlock.
func (s *Store) deletePart(ctx context.Context, names []string) (left []string, err error) {
	d := s.dialect
	err = s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := execAll(ctx, tx, []string{d.serve}, int64(0)); err != nil {
			return err
		}
		unused, args := d.about(d.unused, names)
		held, err := queryEach[int64](ctx, tx, unused, args...)
		if err != nil {
			return err
		}
		var free []string
		var highest int64
		for name, token := range held {
			if token <= sqlfence.WarnToken {
				free, highest = append(free, name), max(highest, token)
			}
		}
		if len(free) > 0 {
			if err := execAll(ctx, tx, []string{d.serve}, highest); err != nil {
				return err
			}
			if err := s.refuses(ctx, tx, highest); err != nil {
				return err
			}
			slices.Sort(free)
			text, args := d.about("DELETE FROM {ledger} WHERE name IN ({names})", free)
			if err := execAll(ctx, tx, []string{text}, args...); dberr.SQLState(err) == sqltext.LedgerRefusalState {
				return fmt.Errorf("%w (%w)", errNoBound, err)
			} else if err != nil {
				return err
			}
		}
		text, args := d.about("SELECT name, token FROM {ledger} WHERE name IN ({names})", names)
		held, err = queryEach[int64](ctx, tx, text, args...)
		left = slices.Sorted(maps.Keys(held))
		return err
	})
	return left, err
}

// refuses checks that the triggers refuse a first token at the lower bound.
func (s *Store) refuses(ctx context.Context, tx *sql.Tx, floor int64) error {
	if s.dialect.refused == "" || floor < 1 {
		return nil
	}
	err := execAll(ctx, tx, []string{s.dialect.refused})
	switch {
	case err == nil:
		return errNoBound
	case strings.Contains(err.Error(), sqltext.ServedToken):
		return nil
	}
	return err
}

// about replaces {names} in a statement, and returns the statement and its arguments.
func (d *dialect) about(text string, names []string) (statement string, args []any) {
	listed, args := d.listed(names)
	statement, _ = sqltext.Render(d, text, sqltext.Fragments{"names": sqltext.Raw(listed)})
	return statement, args
}
