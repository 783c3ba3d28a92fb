package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/verify"
)

// A registration holds a program's registered tables, as schema.Registration writes them.
type registration struct {
	file string
	core.Registration
}

func readRegistration(file string) (registration, error) {
	r := registration{file: file}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // a rule that isn't read would be missing
	if err := d.Decode(&r.Registration); err != nil {
		return r, fmt.Errorf("%s isn't what schema.Registration writes: %w", file, err)
	}
	for _, t := range r.Tables {
		slices.Sort(t.Rules)
	}
	if len(r.Tables) == 0 {
		return r, fmt.Errorf("%s has no tables", file)
	}
	return r, nil
}

func option(t core.Registered) (sqlfence.Option, error) {
	var given []sqlfence.Rule
	for _, word := range t.Rules {
		rule, err := parseRule(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		given = append(given, rule)
	}
	return sqlfence.WithTable(t.Table, given...), nil
}

// A sharedTable is a table with the registrations of all programs.
type sharedTable struct {
	schema, name string
	by           []registered
}

type registered struct {
	file string
	core.Registered
}

// shared returns the tables of all programs' registrations, in the order of their first occurrence, each with all its
// registrations. A name without a schema counts as the same table as this name in any schema.
func shared(d sqlfence.Dialect, all []registration) (tables []*sharedTable, err error) {
	for _, r := range all {
		if r.Dialect != "" && r.Dialect != d.String() {
			return nil, usage(fmt.Errorf("--tables %s: it was written for %s, and the database is %v", r.file,
				r.Dialect, d))
		}
		for _, t := range r.Tables {
			schema, name, err := lang.ParseName(d, t.Table)
			if err != nil {
				return nil, usage(fmt.Errorf("--tables %s: %w", r.file, err))
			}
			one := registered{r.file, t}
			i := slices.IndexFunc(tables, func(s *sharedTable) bool {
				return s.name == name && (s.schema == schema || s.schema == "" || schema == "")
			})
			if i < 0 {
				tables = append(tables, &sharedTable{schema, name, []registered{one}})
				continue
			}
			tables[i].by = append(tables[i].by, one)
		}
	}
	return tables, nil
}

// differs returns two different registrations of the table.
func (s *sharedTable) differs() (a, b registered, differ bool) {
	for _, other := range s.by[1:] {
		if other.Table != s.by[0].Table || !slices.Equal(other.Rules, s.by[0].Rules) {
			return s.by[0], other, true
		}
	}
	return a, b, false
}

func compare(tables []*sharedTable, all []registration) (found []verify.Finding) {
	add := func(level slog.Level, table, problem, remedy string) {
		found = append(found, verify.Finding{Level: level, Code: catalogue.DifferentRegistration, Table: table,
			Problem: problem, Remedy: remedy})
	}
	for _, r := range all[1:] {
		if r.Schema != all[0].Schema {
			add(slog.LevelWarn, "", fmt.Sprintf("By %s the tokens are in %s, by %s in %s.", all[0].file,
				place(all[0].Schema), r.file, place(r.Schema)), "Give all programs the same WithSchema.")
		}
	}
	for _, s := range tables {
		if a, b, differ := s.differs(); differ {
			add(slog.LevelWarn, a.Table, fmt.Sprintf("It is registered in %s as %s, in %s as %s.", a.file, a.words(),
				b.file, b.words()), "Register the table with the same rules in all "+
				"programs that write to it.")
		}
		for _, r := range all {
			if !slices.ContainsFunc(s.by, func(by registered) bool { return by.file == r.file }) {
				add(slog.LevelInfo, s.by[0].Table,
					fmt.Sprintf("It is registered in %s, and not in %s.", s.by[0].file, r.file),
					"If that program writes to the table, register it there, too.")
			}
		}
	}
	return found
}

func place(schema string) string {
	if schema == "" {
		return "no named schema"
	}
	return "the schema " + schema
}

func (r registered) words() string { return r.Table + "=" + strings.Join(r.Rules, ",") }

// merged returns an option for each table, as the first program has registered it. If programs have registered a table
// differently, merged returns an error, unless compares is set because the command reports the differences.
func merged(tables []*sharedTable, compares bool) (options []sqlfence.Option, err error) {
	for _, s := range tables {
		if a, b, differ := s.differs(); differ && !compares {
			return nil, usage(fmt.Errorf("--tables: %s is registered in %s as %s, in %s as %s; give one file", a.Table,
				a.file, a.words(), b.file, b.words()))
		}
		o, err := option(s.by[0].Registered)
		if err != nil {
			return nil, usage(fmt.Errorf("--tables %s: %s: %w", s.by[0].file, s.by[0].Table, err))
		}
		options = append(options, o)
	}
	return options, nil
}

// registrations reads the files of --tables. Unless --schema is set, the command looks for sqlfence's tables in the
// schema that the first file has from the program's [sqlfence.WithSchema].
func (a *app) registrations() (all []registration, err error) {
	for _, file := range a.tableFiles {
		r, err := readRegistration(file)
		if err != nil {
			return nil, usage(fmt.Errorf("--tables: %w", err))
		}
		if slices.ContainsFunc(all, func(other registration) bool { return other.file == file }) {
			return nil, usage(fmt.Errorf("--tables: %s is given twice", file))
		}
		all = append(all, r)
	}
	if a.schema == "" && len(all) > 0 && all[0].Schema != "" {
		a.schema = `"` + strings.ReplaceAll(all[0].Schema, `"`, `""`) + `"`
	}
	return all, nil
}

// errNoTables explains how to register tables.
var errNoTables = errors.New(`no --table: which tables are registered? For example --table ` +
	`"books=row-fence:fence_token,ledger", or --tables with a file that schema.Registration has written`)
