package core

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/verify"
)

// Verify compares what is registered with what the database of a link has; rows: also the marks in the rows. Tokens
// from warn on are worth a warning. Where guards don't hold on the server, refused says why, and nothing else is
// looked for.
func (s *Settings) Verify(
	ctx context.Context, l Link, rows bool, warn int64,
) (found []verify.Finding, refused *session.Refusal, err error) {
	c := NewConn(s, l, new(Found))
	if len(s.tables) > 0 {
		if refused, err = c.CheckServer(ctx); refused != nil || err != nil {
			return nil, refused, wrapped("verify", err)
		}
	}
	ask := func(ctx context.Context, query string) ([][]string, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.Query(ctx, query)
	}
	found, err = verify.Run(ctx, catalogues[s.profile.Dialect], ask, s.toVerify(), verify.Options{
		Rows: rows, Apart: c.session.Apart, Leaks: c.session.Leaks, Standby: c.session.Standby, Schema: s.schema,
		Warn: warn, Max: MaxToken,
	})
	return found, nil, wrapped("verify", err)
}

// A FenceColumn is the fence column of a table, by names as WithTable and RowFence read them.
type FenceColumn struct{ Table, Column string }

// Patterns returns the patterns with a fence column, as registered.
func (s *Settings) Patterns() (names []string) {
	for _, t := range s.tables {
		if t.Rules.Pattern && t.Rules.FenceColumn != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// FenceColumns returns the fence columns of the registered tables, and of those that patterns stand for, which it
// asks for. Without patterns it asks nothing, and ask may be nil.
func (s *Settings) FenceColumns(ctx context.Context, ask verify.Ask) (all []FenceColumn, err error) {
	for _, t := range s.tables {
		if t.Rules.FenceColumn != "" && !t.Rules.Pattern {
			all = append(all, FenceColumn{t.Name, written(t.Rules.FenceColumn)})
		}
	}
	if len(s.Patterns()) == 0 {
		return all, nil
	}
	covered, err := verify.Patterns(ctx, catalogues[s.profile.Dialect], ask, s.toVerify())
	for _, c := range covered {
		table := written(c.Name)
		if c.Schema != "" {
			table = written(c.Schema) + "." + table
		}
		if c.Fence != "" {
			all = append(all, FenceColumn{table, written(c.Fence)})
		}
	}
	return all, err
}

// wrapped adds what was done to an error, if it is one.
func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlfence: %s: %w", what, err)
}

func (s *Settings) toVerify() []verify.Table {
	tables := make([]verify.Table, len(s.tables))
	for i, t := range s.tables {
		tables[i] = t.toVerify()
	}
	return tables
}

func (t *Table) toVerify() verify.Table {
	r := &t.Rules
	return verify.Table{
		Registered: t.Name, Schema: r.Schema, Name: r.Name, Resource: t.Resource,
		Fence: r.FenceColumn, Key: r.Key, Serial: r.Serial, Claim: r.Claim, By: r.Lock.By, Since: r.Lock.Since,
		Expiry:  r.Lock.Expiry,
		Pattern: r.Pattern, Exempt: r.Exempt,
		Ledger: t.hasLedger(), ClaimOf: t.ClaimOf, Sealed: r.Sealed, FromTransaction: t.FromTransaction,
		SingleUse: r.SingleUse, UnfencedInserts: r.UnfencedInserts,
	}
}

// Verifies reports whether connections are refused where the database isn't right.
func (s *Settings) Verifies() bool { return s.verifies && s.bypass == "" }

// Refuses reports whether a fault of this code, of a table or of the database, refuses connections: not where the
// table is only observed, nor for a ledger that isn't there yet.
func (s *Settings) Refuses(code, table string) bool {
	if code == verify.MissingLedger || s.enforced == nil {
		return false
	}
	return table == "" || slices.ContainsFunc(s.enforced.tables, func(t *Table) bool {
		return t.Name == table && !t.Rules.Exempt
	})
}

// Logger returns the logger of the options; nil for none.
func (s *Settings) Logger() *slog.Logger { return s.logger }
