package verify

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/fenced"
)

// A Finding is a fault, a warning or a note that [Check] returns.
type Finding struct {
	// Level is the severity. [slog.LevelError] is a fault: the registration guards nothing, or every guarded write
	// fails. [slog.LevelWarn] is a warning: a write without a token or with a stale token can succeed, or valid writes
	// can fail. [slog.LevelInfo] is a note: no action is necessary.
	Level slog.Level

	// Code is the kind of finding, such as "missing-table". Codes don't change between versions; docs/data/verify.md
	// lists them.
	Code string

	// Table is the table, as registered with [sqlfence.WithTable]; empty if the finding concerns the whole database.
	Table string

	// Problem describes the defect, and Remedy has the advice, each in sentences.
	Problem, Remedy string

	// SQL is a statement that repairs the defect; empty if no statement can. A GRANT names the role of db's session, or
	// has the placeholder <role> if the application's role is unknown. Don't run SQL on a fenced database, because a
	// fenced database refuses most DDL: see docs/migrations.md.
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

// Check compares the registrations with the database, looks for ways around sqlfence, and returns the findings, the
// worst first. The result is empty if there is no finding. Check finds, for example,
//
//   - registered tables and columns that don't exist, and columns of a wrong type;
//   - a missing or unusable ledger, and several ledgers;
//   - fence columns that are part of a key;
//   - views, rules, triggers, functions, foreign keys, partitions, foreign tables and subscriptions that can write the
//     rows in other ways;
//   - seals that aren't complete, and triggers that don't work with a seal;
//   - settings that tokens depend on;
//   - impossible tokens in fence columns, and names with tokens near [sqlfence.MaxToken].
//
// docs/data/verify.md lists all findings.
//
// Check sees the catalogue with the role, search path and attached databases of db's session. A registered table that
// the role can't see is a fault, and another object that Check queries a note. For a table that is registered without a
// schema, Check uses the table that the session finds by the name, or the tables of all schemas if the session finds
// none. Check searches stored code for the names of the registered tables, but can't recognize a name that the code
// builds at run time.
//
// Check sends about a dozen queries, however many tables there are, and one more for each hundred tables with a fence
// column. The additional query reads the fence columns of all rows, so it takes as long as a query for the highest and
// lowest value. Check writes nothing, and blocks no writer. It is safe for concurrent use.
//
// db must come from [sqlfence.Open] or [sqlfence.OpenDB], or use a driver of [sqlfence.WrapDriver] or
// [sqlfence.Register]. Any other database is [sqlfence.ErrInvalid], even if sqlfence is beneath another wrapper such as
// otelsql. Check can fail with the error of a query or of a connection. If [OnConnect] refuses all connections, Check
// returns the findings of OnConnect, which doesn't read rows.
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
