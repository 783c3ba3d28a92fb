package sqlfence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/verify"
)

// A Finding is something that [Verify] has found.
type Finding struct {
	// Level says how bad it is. [slog.LevelError] is a fault, a registration that doesn't do what it says: it guards
	// nothing, or every guarded write fails. [slog.LevelWarn] is a warning, of what lets a write without a token, or a
	// stale one, land, or makes writes fail that need not. [slog.LevelInfo] is a note: nothing has to be done.
	Level slog.Level

	// Code says what it is, as a word that stays the same, such as "missing-table";
	// docs/verify.md has all of them.
	Code string

	// Table is the table, as registered with [WithTable]; empty if it is about the database.
	Table string

	// Problem is a sentence that says what is wrong, and Remedy what to do.
	Problem, Remedy string

	// SQL is a statement that repairs it; empty where none does. A GRANT names the role of db's session. Where it
	// isn't known which role the application connects as, <role> stands for that. It isn't for a fenced database,
	// which refuses most such statements: see docs/migrations.md.
	SQL string
}

// String returns the finding in one line, as in "fault: missing-table: The table bokos …".
func (f Finding) String() string {
	line := verify.Severity(f.Level).String() + ": " + f.Code + ": " + f.Problem + " " + f.Remedy
	if f.SQL != "" {
		line += " SQL: " + f.SQL
	}
	return line
}

// Verify compares what is registered with what the database has, and looks for ways around
// sqlfence. It finds
//
//   - registered tables and columns that don't exist, and columns of a wrong type;
//   - a ledger that is missing or can't be used, and several of them;
//   - fence columns that are part of a key;
//   - views, rules, triggers, functions, foreign keys, partitions, foreign tables and subscriptions
//     that can write the rows in other ways;
//   - seals that aren't whole or don't go well with a trigger;
//   - settings that tokens depend on;
//   - marks in the rows, which are the tokens in their fence columns, that can't be right, and
//     names with tokens near [MaxToken].
//
// It returns the worst first; no finding at all is an empty list. docs/verify.md has all that it
// finds, with what to do.
//
// What it looks at is what db's session sees, with its role, search path and attached databases. What the
// role can't see is a note. A table that is registered without a schema is the one that the session
// finds by that name, or if it finds none those of all schemas. Stored code is searched for the
// names of the registered tables; code that puts a name together can't be seen.
//
// It asks by about a dozen queries, however many tables there are, and one more for each hundred
// tables with a fence column. That one reads the marks of all rows: it takes the time of a query
// for the highest and lowest value. It writes nothing, and holds off no writer. Verify may be
// called by several goroutines at once.
//
// db is one of [Open] or [OpenDB], or opened by a driver of [WrapDriver] or [Register]; any
// other is [ErrInvalid], also if sqlfence is beneath another wrapper such as otelsql. Other
// errors are those of a query or a connection. Where [WithVerify] refuses all connections, Verify
// returns what it has found, for which no rows are read.
func Verify(ctx context.Context, db *sql.DB) ([]Finding, error) {
	if _, err := fenced.SettingsOf("Verify", db); err != nil {
		return nil, err
	}
	c, err := db.Conn(ctx)
	if refused := (*VerifyError)(nil); errors.As(err, &refused) {
		return refused.Findings, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sqlfence: verify: %w", err)
	}
	defer c.Close()
	var found []Finding
	err = c.Raw(func(driverConn any) error {
		fenced, ok := driverConn.(interface{ fenced() *conn })
		if !ok {
			return fmt.Errorf("%w: the connection is a %T", ErrInvalid, driverConn)
		}
		inner := fenced.fenced()
		found, err = verifyOver(ctx, inner.state.Settings(), inner.link, true)
		return err
	})
	return found, err
}

// fenced returns the connection itself, for what database/sql hands out.
func (c *conn) fenced() *conn { return c }

// verifyOver looks for what is wrong, over a connection of the base driver.
func verifyOver(ctx context.Context, s *core.Settings, l *link, rows bool) ([]Finding, error) {
	found, refused, err := s.Verify(ctx, l, rows, WarnToken)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return []Finding{wrongServer(refused)}, nil
	}
	findings := make([]Finding, len(found))
	for i, f := range found {
		findings[i] = Finding{slog.Level(f.Severity), f.Code, f.Table, f.Problem, f.Remedy, f.SQL}
	}
	return findings, nil
}

// wrongServer is the finding that guards don't hold on the server. Where they don't, nothing else is worth looking for.
func wrongServer(refused *session.Refusal) Finding {
	remedy := "Use a server that docs/servers.md has as tested."
	if refused.Server != "" {
		remedy = fmt.Sprintf("Use a server that docs/servers.md has as tested, or take the risk with "+
			"WithUntestedServer(%q).", refused.Server)
	}
	return Finding{Level: slog.LevelError, Code: "wrong-server",
		Problem: "Guarded writes are refused: " + refused.Error() + ".",
		Remedy:  remedy}
}

// A VerifyError reports what [WithVerify] has found: connections are refused until it is
// repaired, which has to be done through the bare driver or a database with [WithoutGuards]. It
// is [ErrNotSetUp].
type VerifyError struct {
	refusedAs[isNotSetUp]

	Findings []Finding // all that were found, the worst first
}

// Error lists the faults.
func (e *VerifyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: no connection until this is repaired, through the bare driver or a database with "+
		"WithoutGuards", ErrNotSetUp)
	for _, f := range e.Findings {
		if f.Level == slog.LevelError {
			b.WriteString("\n\t" + f.String())
		}
	}
	return b.String()
}

// WithVerify does what [Verify] does, but for the rows, when the database is first connected to. A
// fault refuses the connection with a [*VerifyError], and so does an error of a query: no
// statement runs on a database in which a registration is wrong, such as one with a misspelt
// name, which would guard nothing. Each further connection looks again, until one has passed;
// then none does any more. Connections that begin at the same time look once. What else is found is
// logged, with [WithLogger]: warnings as such, notes as information.
//
// It takes about a dozen queries, within the deadline of the context that the connection is
// made for. The tables have to be there: a program that creates them itself does so over a database of its
// own, such as one with [WithoutGuards], where WithVerify does nothing. What
// refuses no connection is a ledger that isn't there yet, since package tokens creates it over this
// database; and a fault of a table in [Observe] mode, which promises to refuse nothing.
func WithVerify() Option {
	return func(o *core.Options) { o.Verify = true }
}

// A verification is what the connections of one database know about it. It is safe for concurrent
// use.
type verification struct {
	passed atomic.Bool
	runs   atomic.Int64 // that have refused a connection

	begin sync.Once
	turn  chan *VerifyError // the last one's result; empty while a connection looks
}

// admit lets a new connection through if the database is right. It looks unless another connection
// has found that before; if others look now, it waits for their result.
func (v *verification) admit(ctx context.Context, s *core.Settings, base driver.Conn) error {
	if !s.Verifies() || v.passed.Load() {
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
	found, err := verifyOver(ctx, s, newLink(s, base), false)
	if err != nil {
		return err
	}
	refuses := func(f Finding) bool { return f.Level == slog.LevelError && s.Refuses(f.Code, f.Table) }
	if slices.ContainsFunc(found, refuses) {
		last = &VerifyError{Findings: found}
		v.runs.Add(1)
		return last
	}
	v.passed.Store(true)
	logFindings(ctx, s.Logger(), found)
	return nil
}

// logFindings logs what has refused no connection.
func logFindings(ctx context.Context, logger *slog.Logger, found []Finding) {
	if logger == nil {
		return
	}
	for _, f := range found {
		logger.LogAttrs(ctx, min(f.Level, slog.LevelWarn), "sqlfence: verify",
			slog.String("finding", verify.Severity(f.Level).String()),
			slog.String("code", f.Code),
			slog.String("table", f.Table), slog.String("problem", f.Problem), slog.String("remedy",
				f.Remedy), slog.String("sql", f.SQL))
	}
}
