package verify

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/fenced"
)

// A Finding is something that [Check] has found.
type Finding struct {
	// Level says how bad it is. [slog.LevelError] is a fault, a registration that doesn't do what it says: it guards
	// nothing, or every guarded write fails. [slog.LevelWarn] is a warning, of what lets a write without a token, or a
	// stale one, land, or makes writes fail that need not. [slog.LevelInfo] is a note: nothing has to be done.
	Level slog.Level

	// Code says what it is, as a word that stays the same, such as "missing-table";
	// docs/data/verify.md lists all codes.
	Code string

	// Table is the table, as registered with [sqlfence.WithTable]; empty if it is about the database.
	Table string

	// Problem is a sentence that says what is wrong, and Remedy what to do.
	Problem, Remedy string

	// SQL is a statement that repairs it; empty where none does. A GRANT names the role of db's session. Where it
	// isn't known which role the application connects as, <role> stands for that. It isn't for a fenced database,
	// which refuses most such statements: see docs/migrations.md.
	SQL string
}

// Severity returns the name of the level in docs/data/verify.md: "fault", "warning" or "note".
func (f Finding) Severity() string {
	switch {
	case f.Level >= slog.LevelError:
		return "fault"
	case f.Level >= slog.LevelWarn:
		return "warning"
	}
	return "note"
}

// String returns the finding in one line, as in "fault: missing-table: The table bokos …".
func (f Finding) String() string {
	line := f.Severity() + ": " + f.Code + ": " + f.Problem + " " + f.Remedy
	if f.SQL != "" {
		line += " SQL: " + f.SQL
	}
	return line
}

// Check compares what is registered with what the database has, and looks for ways around
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
//     names with tokens near [sqlfence.MaxToken].
//
// It returns the worst first; no finding at all is an empty list. docs/data/verify.md
// lists all findings.
//
// What it looks at is what db's session sees, with its role, search path and attached databases. What the
// role can't see is a note. A table that is registered without a schema is the one that the session
// finds by that name, or if it finds none those of all schemas. Stored code is searched for the
// names of the registered tables; code that puts a name together can't be seen.
//
// It asks by about a dozen queries, however many tables there are, and one more for each hundred
// tables with a fence column. That one reads the marks of all rows: it takes the time of a query
// for the highest and lowest value. It writes nothing, and holds off no writer. Check may be
// called by several goroutines at once.
//
// db is one of [sqlfence.Open] or [sqlfence.OpenDB], or opened by a driver of [sqlfence.WrapDriver] or
// [sqlfence.Register]; any other is [sqlfence.ErrInvalid], also if sqlfence is beneath another wrapper such as otelsql.
// Other errors are those of a query or a connection. Where [OnConnect] refuses all connections, Check
// returns what it has found, for which no rows are read.
func Check(ctx context.Context, db *sql.DB) ([]Finding, error) {
	if _, err := fenced.SettingsOf("verify.Check", db); err != nil {
		return nil, err
	}
	survey, err := catalogue.SurveyOf(ctx, db)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return refused.Findings, nil
	}
	return findings(survey), err
}

func findings(s catalogue.Survey) []Finding {
	found := []Finding{}
	for _, f := range s.Findings {
		found = append(found, Finding(f))
	}
	return found
}
