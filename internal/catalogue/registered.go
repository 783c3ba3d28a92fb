package catalogue

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/session"
)

func wrongServer(refused *session.Refusal) Finding {
	remedy := "Use a server that docs/servers.md lists as tested"
	if refused.Server != "" {
		remedy += fmt.Sprintf(", or take the risk with WithUntestedServer(%q)", refused.Server)
	}
	return Finding{Level: Fault, Code: "wrong-server", Remedy: remedy + ".",
		Problem: "Guarded writes are refused: " + refused.Error() + "."}
}

// Refuses reports whether a finding refuses connections. Only faults do, except faults of tables in Observe mode and a
// missing ledger.
func Refuses(s *core.Settings, f Finding) bool {
	return f.Level == Fault && f.Code != missingLedger && s.Enforces(f.Table)
}

// A FenceColumn is the fence column of a table, by names as WithTable and RowFence read them.
type FenceColumn struct{ Table, Column string }

// PatternsOf returns the patterns with a fence column, as registered.
func PatternsOf(s *core.Settings) (names []string) {
	for _, t := range s.Tables() {
		if t.Rules.Pattern && t.Rules.FenceColumn != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// FenceColumns returns the fence columns of the tables that a fenced database registers. For a pattern, such as
// "shop.*", it queries the catalogue for the tables, over one connection. Errors name function as the caller.
func FenceColumns(ctx context.Context, function string, db *sql.DB) (columns []FenceColumn, err error) {
	s, err := fenced.SettingsOf(function, db)
	if err != nil {
		return nil, err
	}
	for _, t := range s.Tables() {
		if t.Rules.FenceColumn != "" && !t.Rules.Pattern {
			columns = append(columns, FenceColumn{t.Name, core.Written("", t.Rules.FenceColumn)})
		}
	}
	patterns := PatternsOf(s)
	if len(patterns) == 0 {
		return columns, nil
	}
	err = onConn(ctx, db, func(s *core.Settings, l core.ConnAdapter) error {
		covered, err := patternTargets(ctx, databases[s.Dialect()], querySurvey(l), toVerify(s))
		for _, t := range covered {
			if t.FenceColumn != "" {
				column := FenceColumn{core.Written(t.Schema, t.rel.name), core.Written("", t.FenceColumn)}
				columns = append(columns, column)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: find the tables that %s stands for: %w", function, strings.Join(patterns, ", "),
			err)
	}
	return columns, nil
}

func toVerify(s *core.Settings) []Table {
	tables := make([]Table, len(s.Tables()))
	for i, t := range s.Tables() {
		tables[i] = Table{t.Name, t.Resource, t.ClaimOf, t.HasLedger(), t.FromTransaction, t.Rules}
	}
	return tables
}
