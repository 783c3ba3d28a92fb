package sqlfence

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/verify"
)

// WithVerify does what [Verify] does, but for the rows, when the database is first connected to. A
// [Fault] refuses the connection with a [*VerifyError], and so does an error of a query: no
// statement runs on a database in which a registration is wrong, such as one with a misspelt
// name, which would guard nothing. Each further connection looks again, until one has passed;
// then none does any more. Connections that begin at the same time look once. What else is found is
// logged, with [WithLogger]: warnings as such, notes as information.
//
// It takes up to twenty queries, within the deadline of the context that the connection is
// made for. The tables have to be there: a program that creates them itself does so over a database of its
// own, such as one with [WithBypass], where WithVerify does nothing. What
// refuses no connection is a ledger that isn't there yet, since package tokens creates it over this
// database; and a Fault of a table in [Observe] mode, which promises to refuse nothing.
func WithVerify() Option {
	return func(o *options) { o.verify = true }
}

// A verification is what the connections of one database know about it. It is safe for concurrent
// use.
type verification struct {
	passed atomic.Bool
	runs   atomic.Int64 // that have refused a connection

	begin sync.Once
	turn  chan *VerifyError // what the last of them found; nobody has it while somebody looks
}

// admit lets a new connection through if the database is right. It looks unless somebody has
// found that before; if others look now, it waits for what they find.
func (v *verification) admit(ctx context.Context, s *settings, base driver.Conn) error {
	if !s.verifies || s.bypass != "" || v.passed.Load() {
		return nil
	}
	v.begin.Do(func() { v.turn = make(chan *VerifyError, 1); v.turn <- nil })
	before := v.runs.Load()
	var last *VerifyError
	select {
	case last = <-v.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { v.turn <- last }()
	switch {
	case v.passed.Load():
		return nil
	case v.runs.Load() > before:
		return last
	}
	found, err := s.verify(ctx, base, false)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, s.refuses) {
		last = &VerifyError{found}
		v.runs.Add(1)
		return last
	}
	v.passed.Store(true)
	s.logFindings(ctx, found)
	return nil
}

// refuses reports whether a finding refuses the connection.
func (s *settings) refuses(f Finding) bool {
	if f.Severity != Fault || f.Code == verify.MissingLedger || s.enforced == nil {
		return false
	}
	return f.Table == "" || slices.ContainsFunc(s.enforced.tables, func(t *table) bool { return t.name == f.Table })
}

// logFindings logs what has refused no connection.
func (s *settings) logFindings(ctx context.Context, found []Finding) {
	if s.logger == nil {
		return
	}
	for _, f := range found {
		level := slog.LevelInfo
		if f.Severity > Note {
			level = slog.LevelWarn
		}
		s.logger.LogAttrs(ctx, level, "sqlfence: verify", slog.String("finding", f.Severity.String()), slog.String("code", f.Code),
			slog.String("table", f.Table), slog.String("problem", f.Problem), slog.String("remedy", f.Remedy), slog.String("sql", f.SQL))
	}
}
