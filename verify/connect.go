package verify

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/core"
)

// An Error has the findings of [OnConnect]. While a fault remains, all connections are refused, so the fault must be
// repaired without sqlfence or with [sqlfence.WithoutGuards]. An Error is [sqlfence.ErrNotSetUp].
type Error struct {
	Findings []Finding // all findings, the worst first
}

// Error lists the faults.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: no connection until this is repaired, through the bare driver or a database with "+
		"WithoutGuards", sqlfence.ErrNotSetUp)
	for _, f := range e.Findings {
		if f.Level == slog.LevelError {
			b.WriteString("\n\t" + f.String())
		}
	}
	return b.String()
}

// Is reports whether target is [sqlfence.ErrNotSetUp].
func (e *Error) Is(target error) bool { return target == sqlfence.ErrNotSetUp }

// Temporary returns false, because a repetition can't succeed before a repair.
func (e *Error) Temporary() bool { return false }

// OnConnect runs [Check], without reading rows, when the program first connects to the database. It refuses the
// connection with an [*Error] if Check finds a fault, and with the query's error if a query fails. So no statement runs
// on a database in which a registration is wrong: a misspelt name, for example, would guard nothing. Each new
// connection repeats the check until a check has passed; later connections skip it. Connections that open at the same
// time wait for one common check. [sqlfence.WithLogger] logs the findings of a check that has passed: notes as
// information, all others as warnings.
//
// The check takes about a dozen queries, within the deadline of the connection's context. The tables must exist: a
// program that creates its tables must create them through a separate database, for example with
// [sqlfence.WithoutGuards], where OnConnect does nothing. Two kinds of faults refuse no connection: a missing ledger,
// because package tokens creates the ledger over this database, and faults of a table in [sqlfence.Observe] mode,
// because Observe refuses nothing.
func OnConnect() sqlfence.Option {
	return func(o *core.Options) {
		o.OnConnect = func() core.Check {
			a := admission{slot: make(chan *Error, 1)}
			a.slot <- nil
			return a.accept
		}
	}
}

// An admission holds the result of the checks for all connections of one database. It is safe for concurrent use.
type admission struct {
	passed  atomic.Bool
	refused atomic.Int64 // number of connections that were checked and refused

	slot chan *Error // the last refusal; empty while a connection looks
}

// accept accepts a new connection if the database passes the check. It skips the check if an earlier connection has
// passed. If another connection is running the check, accept waits for the result.
func (a *admission) accept(ctx context.Context, s *core.Settings, l core.ConnAdapter) error {
	if a.passed.Load() {
		return nil
	}
	before := a.refused.Load()
	var last *Error
	select {
	case last = <-a.slot:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { a.slot <- last }()
	switch {
	case a.passed.Load():
		return nil
	case a.refused.Load() > before:
		return last
	}
	survey, err := catalogue.Connection(ctx, s, l, false)
	if err != nil {
		return fmt.Errorf("sqlfence: verify: %w", err)
	}
	found := findings(survey)
	refuses := func(f Finding) bool { return catalogue.Refuses(s, catalogue.Finding(f)) }
	if slices.ContainsFunc(found, refuses) {
		last = &Error{found}
		a.refused.Add(1)
		return last
	}
	a.passed.Store(true)
	log(ctx, s.Logger(), found)
	return nil
}

// log logs the findings that refuse no connection.
func log(ctx context.Context, logger *slog.Logger, found []Finding) {
	if logger == nil {
		return
	}
	for _, f := range found {
		logger.LogAttrs(ctx, min(f.Level, slog.LevelWarn), "sqlfence: verify", slog.String("finding", f.Severity()),
			slog.String("code", f.Code), slog.String("table", f.Table), slog.String("problem", f.Problem),
			slog.String("remedy", f.Remedy), slog.String("sql", f.SQL))
	}
}
