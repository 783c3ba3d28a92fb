package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// The size of the screen that status writes for.
const (
	screenColumns = 80
	screenLines   = 24
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the server, the ledger, the leases and the faults",
		Long: `Show on one screen of 80 columns and 24 lines:

  server    the version string; "which isn't known" if guards may not hold
  ledger    the table that guards read, and whether its triggers are intact;
            names are near their limit from a tenth of the highest token on
  leases    live leases, the first three by name; rows of ended leases
  tables    tables with a column fence_token in all visible schemas, without
            views, partitions and temporary tables
  settings  settings that findings are about, and the timeout of locks
  missing   tables, triggers and functions that sqlfence migrate would create
  found     the findings of sqlfence verify without --table, faults first

With a fault the status is 3.`,
		Example: `  sqlfence status
  sqlfence status --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDatabase(false, func(source database.Source, db *sql.DB) error {
				return a.showStatus(cmd.Context(), source, db)
			}, withoutTables)
		},
	}
}

// An overview is the answer of status.
type overview struct {
	Server struct {
		Version string `json:"version"`
		Known   bool   `json:"known"`
	} `json:"server"`
	Ledger   ledgerOverview    `json:"ledger"`
	Leases   leaseOverview     `json:"leases"`
	Tables   []string          `json:"tables"`
	Settings map[string]string `json:"settings"`
	Missing  []string          `json:"missing"`  // missing tables, triggers and functions of sqlfence
	Unshown  []string          `json:"unshown"`  // reasons why a part isn't shown
	Findings []finding         `json:"findings"` // the worst first
}

type ledgerOverview struct {
	Table     string   `json:"table"`    // empty if there is none
	Triggers  string   `json:"triggers"` // state of the ledger's triggers: right, wrong, or unseen by this role
	Names     int      `json:"names"`
	Highest   tokenRow `json:"highest"`    // the highest token of a name that isn't retired
	NearLimit int      `json:"near_limit"` // names that have used up a tenth of their tokens
	Retired   int      `json:"retired"`
}

type leaseOverview struct {
	Live  []leaseRow `json:"live"`
	Ended int        `json:"ended"` // rows of leases that have ended
}

func (a *app) showStatus(ctx context.Context, source database.Source, db *sql.DB) error {
	survey, err := catalogue.SurveyOf(ctx, db)
	if err != nil {
		return err
	}
	o := overview{Tables: survey.Tables, Settings: survey.Settings, Missing: []string{}, Unshown: []string{},
		Ledger: ledgerOverview{Table: survey.Ledger}, Leases: leaseOverview{Live: []leaseRow{}}}
	o.Server.Version = survey.Version
	found := make([]verify.Finding, len(survey.Findings))
	for i, f := range survey.Findings {
		found[i] = verify.Finding(f)
	}
	var failed bool
	o.Findings, failed = findingsOf(found, slog.LevelError)
	o.Server.Known = !o.isFound("wrong-server")

	store, err := tokens.New(db, tokens.WithLogger(a.log))
	if err != nil {
		return err
	}
	leases, err := source.Leases(db)
	if err != nil {
		return err
	}
	switch {
	case survey.Ledger == "":
	case o.isFound("wrong-ledger"):
		o.Ledger.Triggers = "wrong"
	case survey.HidesTriggers:
		o.Ledger.Triggers = "unseen"
	default:
		o.Ledger.Triggers = "right"
	}
	for what, look := range map[string]func() error{
		"the ledger": func() error { return o.Ledger.read(ctx, &ledger{store, db, source}) },
		"leases": func() error {
			live, err := leases.List(ctx)
			for _, l := range live {
				o.Leases.Live = append(o.Leases.Live, newLeaseRow(l))
			}
			if err != nil {
				return err
			}
			const rows = "SELECT COUNT(*) FROM fencing_leases"
			err = db.QueryRowContext(trusted.Context(ctx, rows), rows).Scan(&o.Leases.Ended)
			o.Leases.Ended = max(0, o.Leases.Ended-len(live))
			return err
		},
		"what is missing": func() error {
			lacking, err := lacks(ctx, source, db)
			for _, file := range lacking {
				o.Missing = append(o.Missing, file.title)
			}
			return err
		},
	} {
		if err := o.leaveOut(what, look()); err != nil {
			return err
		}
	}
	slices.Sort(o.Unshown)
	err = a.write(o, func() { fmt.Fprint(a.out, o.screen(min(cmp.Or(a.out.columns(), screenColumns), screenColumns))) })
	if failed {
		return no(err)
	}
	return err
}

// leaveOut handles the error of a query for a part of the overview, what. If the role lacks an object or a privilege,
// it adds the reason to o.Unshown, except for a missing table, which o.Missing lists. It returns any other error.
func (o *overview) leaveOut(what string, err error) error {
	lacks := (*sqlfence.SetupError)(nil)
	if !errors.As(err, &lacks) {
		return err
	}
	if !strings.HasPrefix(lacks.Missing, "table ") {
		o.Unshown = append(o.Unshown, what+": "+message(err))
	}
	return nil
}

func (o *overview) isFound(code string) bool {
	return slices.ContainsFunc(o.Findings, func(f finding) bool { return f.Code == code })
}

func (o *ledgerOverview) read(ctx context.Context, l *ledger) error {
	for token, err := range l.List(ctx, "") {
		if err != nil {
			return err
		}
		o.Names++
		switch value := token.Value; {
		case value > sqlfence.MaxToken:
			o.Retired++
			continue
		case value >= sqlfence.WarnToken:
			o.NearLimit++
		}
		if token.Value > o.Highest.Value {
			o.Highest = newTokenRow(token)
		}
	}
	return nil
}

// screen returns the overview as lines of so many columns, for one screen.
func (o *overview) screen(columns int) string {
	var lines []string
	add := func(label, text string) {
		const width = 9
		text = folded(fmt.Sprintf("%-*s%s", width, label, visible(text)), columns, strings.Repeat(" ", width))
		lines = append(lines, strings.Split(text, "\n")...)
	}
	server, _, _ := strings.Cut(o.Server.Version, " on ")
	if !o.Server.Known {
		server += ", which isn't known"
	}
	add("server", server)
	add("ledger", o.Ledger.String())
	add("leases", fmt.Sprintf("live %d, ended %d", len(o.Leases.Live), o.Leases.Ended))
	const shownLeases, shownTables = 3, 10
	for _, l := range o.Leases.Live[:min(len(o.Leases.Live), shownLeases)] {
		add("", fmt.Sprintf("%s, held by %s until %s", l.Key, cmp.Or(l.Holder, "-"), l.ExpiresAt))
	}
	if more := len(o.Leases.Live) - shownLeases; more > 0 {
		add("", fmt.Sprintf("and %d more", more))
	}
	tables := strings.Join(o.Tables[:min(len(o.Tables), shownTables)], ", ")
	if more := len(o.Tables) - shownTables; more > 0 {
		tables += fmt.Sprintf(" and %d more", more)
	}
	add("tables", cmp.Or(tables, "none with a column fence_token"))
	if len(o.Settings) > 0 {
		var settings []string
		for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
			settings = append(settings, name+" "+strings.ReplaceAll(o.Settings[name], ",", ", "))
		}
		add("settings", strings.Join(settings, ", "))
	}
	for _, text := range o.Unshown {
		add("unshown", text)
	}
	if len(o.Missing) > 0 {
		remedy := ": sqlfence migrate prints them, and adds them with --apply"
		lacks := func(table string) bool { return slices.Contains(o.Missing, table) }
		if lacks(sqltext.LedgerTable) && !lacks(sqltext.LeaseTable) {
			remedy += ". If the ledger was lost, its tokens begin again at 1: run sqlfence tokens repair --floor N then, " +
				"with the highest token ever issued"
		}
		add("missing", strings.Join(o.Missing, ", ")+remedy)
	}
	return strings.Join(append(lines, o.wrong(columns, screenLines-len(lines))...), "\n") + "\n"
}

// wrong returns the defects as at most room lines, the worst first.
func (o *overview) wrong(columns, room int) (lines []string) {
	counts := make(map[string]int)
	for _, f := range o.Findings {
		counts[f.Severity]++
	}
	lines = []string{fmt.Sprintf("found    faults %d, warnings %d, notes %d; sqlfence verify lists them",
		counts["fault"], counts["warning"], counts["note"])}
	for _, f := range o.Findings {
		text := fmt.Sprintf("%s: %s (%s): %s %s", f.Severity, cmp.Or(f.Table, "the database"), f.Code, f.Problem,
			f.Remedy)
		one := strings.Split(folded(visible(text), columns, "  "), "\n")
		if f.SQL != "" {
			sql := strings.Join(strings.Fields(f.SQL), " ")
			one = append(one, strings.Split(folded("  "+visible(sql), columns, "  "), "\n")...)
		}
		if f.Severity != "note" && (len(lines) == 1 || len(lines)+len(one) <= room) {
			lines = append(lines, one...)
		}
	}
	return lines
}

// String describes the ledger.
func (o *ledgerOverview) String() string {
	if o.Table == "" {
		return "none"
	}
	triggers := map[string]string{"right": "protected by its triggers", "wrong": "not protected as it should be",
		"unseen": "with triggers that this role can't see"}[o.Triggers]
	text := fmt.Sprintf("%s, %s; names %d, near their limit %d, retired %d", o.Table, triggers, o.Names, o.NearLimit,
		o.Retired)
	if o.Highest.Value > 0 {
		text += fmt.Sprintf("; highest token %d, of %s", o.Highest.Value, o.Highest.Name)
	}
	return text
}
