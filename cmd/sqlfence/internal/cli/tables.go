package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/verify"
)

const tableHelp = `Each --table registers a table, NAME or NAME=RULE,RULE…, as sqlfence.WithTable does. The rules are
row-fence:COLUMN, ledger, resource:NAME, key:COLUMN, claim:COLUMN, claimof:TABLE, sealed, sealed-from-transaction,
single-use, optional, unfenced-inserts, exempt, serial:COLUMN, required-serial:COLUMN, edit-lock:BY:SINCE:EXPIRY, and
observe. Write a name that contains = , or : in double quotes. Each --tables FILE registers the tables of a program,
which writes the file with schema.Registration.`

// rules are the rules of --table by their names, with the number of their arguments.
var rules = map[string]struct {
	arguments int
	make      func(args []string) sqlfence.Rule
}{
	"row-fence":               {1, func(a []string) sqlfence.Rule { return sqlfence.RowFence(a[0]) }},
	"ledger":                  {0, func([]string) sqlfence.Rule { return sqlfence.Ledger() }},
	"resource":                {1, func(a []string) sqlfence.Rule { return sqlfence.Resource(unquoted(a[0])) }},
	"key":                     {1, func(a []string) sqlfence.Rule { return sqlfence.Key(a[0]) }},
	"claim":                   {1, func(a []string) sqlfence.Rule { return sqlfence.Claim(a[0]) }},
	"claimof":                 {1, func(a []string) sqlfence.Rule { return sqlfence.ClaimOf(a[0]) }},
	"sealed":                  {0, func([]string) sqlfence.Rule { return sqlfence.Sealed() }},
	"single-use":              {0, func([]string) sqlfence.Rule { return sqlfence.SingleUse() }},
	"optional":                {0, func([]string) sqlfence.Rule { return sqlfence.Optional() }},
	"exempt":                  {0, func([]string) sqlfence.Rule { return sqlfence.Exempt() }},
	"serial":                  {1, func(a []string) sqlfence.Rule { return sqlfence.Serial(a[0]) }},
	"sealed-from-transaction": {0, func([]string) sqlfence.Rule { return sqlfence.Sealed(sqlfence.FromTransaction()) }},
	"unfenced-inserts":        {0, func([]string) sqlfence.Rule { return sqlfence.UnfencedInserts() }},
	"required-serial":         {1, func(a []string) sqlfence.Rule { return sqlfence.Serial(a[0], sqlfence.Required()) }},
	"edit-lock":               {3, func(a []string) sqlfence.Rule { return sqlfence.EditLock(a[0], a[1], a[2]) }},
	"observe":                 {0, func([]string) sqlfence.Rule { return sqlfence.InMode(sqlfence.Observe) }},
}

func (a *app) tableFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.tables, "table", nil, "a registered table and its rules, as NAME=RULE,RULE…; may "+
		"be repeated")
	cmd.Flags().StringArrayVar(&a.tableFiles, "tables", nil, "a file of schema.Registration with the tables of a "+
		"program; may be repeated")
	cmd.Long += "\n\n" + tableHelp
}

// registered returns the tables of --tables and --table as options. If create is set, a missing database file is
// created. If files register a table differently, that is an error, or, if compared is set, a finding in *compared.
func (a *app) registered(create bool, compared *[]verify.Finding) (options []sqlfence.Option, err error) {
	all, err := a.registrations()
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		source, err := a.text(create)
		if err != nil {
			return nil, err
		}
		tables, err := shared(source.Dialect, all)
		if err != nil {
			return nil, err
		}
		if options, err = merged(tables, compared != nil); err != nil {
			return nil, err
		}
		if compared != nil {
			*compared = compare(tables, all)
		}
	}
	for _, text := range a.tables {
		option, err := parseTable(text)
		if err != nil {
			return nil, usage(fmt.Errorf("--table %s: %w", text, err))
		}
		options = append(options, option)
	}
	if len(options) == 0 {
		return nil, usage(errNoTables)
	}
	return options, nil
}

func parseTable(text string) (sqlfence.Option, error) {
	parts := splitOutsideQuotes(text, '=')
	if len(parts) > 2 {
		return nil, errors.New("more than one =")
	}
	t := core.Registered{Table: strings.TrimSpace(parts[0])}
	if len(parts) == 2 {
		t.Rules = splitOutsideQuotes(parts[1], ',')
	}
	return option(t)
}

func parseRule(word string) (sqlfence.Rule, error) {
	parts := splitOutsideQuotes(word, ':')
	rule, ok := rules[parts[0]]
	if !ok {
		return nil, fmt.Errorf("unknown rule %q, want one of %s", parts[0],
			strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
	}
	args := parts[1:]
	if len(args) != rule.arguments || slices.Contains(args, "") {
		return nil, fmt.Errorf("the rule %s takes this many names after it, each after a colon: %d", parts[0],
			rule.arguments)
	}
	return rule.make(args), nil
}

// splitOutsideQuotes splits a text at each separator outside of double quotes.
func splitOutsideQuotes(text string, separator byte) (parts []string) {
	quoted, from := false, 0
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// unquoted removes the double quotes from a name that isn't a SQL identifier.
func unquoted(name string) string {
	if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return name
}
