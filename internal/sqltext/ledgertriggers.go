package sqltext

import (
	"fmt"
	"io/fs"
	"strings"
)

// A Trigger is one that keeps the ledger's tokens from falling and its names from being lost,
// whatever client writes. docs/adr/0030 has the reasons.
type Trigger struct {
	Name string

	// Create creates it if there is none of its name, and Body is the end of that text, which
	// the catalogue shows of a trigger that is there.
	Create, Body string
}

// LedgerTriggerPrefix begins their names.
const LedgerTriggerPrefix = "sqlfence_ledger_"

// Triggers returns the triggers that migration files create, in the order of the files.
func Triggers(files fs.FS, names string) (all []Trigger) {
	found, err := fs.Glob(files, names)
	if err != nil {
		panic(fmt.Sprintf("sqlfence: %v", err)) // it is a part of the program
	}
	for _, file := range found {
		for _, statement := range Statements(files, file) {
			if name, ok := strings.CutPrefix(statement, "CREATE TRIGGER IF NOT EXISTS "); ok {
				name, _, _ = strings.Cut(name, " ")
				_, body, _ := strings.Cut(statement, "\n")
				all = append(all, Trigger{Name: name, Create: statement, Body: body})
			}
		}
	}
	return all
}

// Statements returns the statements of a migration file, those that its comments say are whole.
func Statements(files fs.FS, name string) (statements []string) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		panic(fmt.Sprintf("sqlfence: %v", err)) // it is a part of the program
	}
	for _, begun := range strings.Split(string(text), "-- +goose StatementBegin\n")[1:] {
		statement, _, _ := strings.Cut(begun, ";\n-- +goose StatementEnd\n")
		statements = append(statements, statement)
	}
	return statements
}

// ServedToken is what the triggers say of a first token that a name without a row may have had before. As the state of
// a serialization failure says, what is sent again sees the floor.
const ServedToken = "sqlfence: the first token of a name has to be above those of names that were deleted"

// Differs reports whether a trigger of the name has another body than t. found has the
// catalogue's texts by the names.
func (t Trigger) Differs(found map[string]string) bool {
	text, ok := found[t.Name]
	return ok && !strings.HasSuffix(strings.TrimSpace(text), t.Body)
}

// WithoutRowID are the triggers for a ledger that has no numbers of rows.
func WithoutRowID(triggers []Trigger) (all []Trigger) {
	for _, t := range triggers {
		if strings.Contains(t.Body, "t.rowid = NEW.rowid") {
			continue
		}
		without := func(s string) string { return strings.ReplaceAll(s, " OR NEW.rowid <> OLD.rowid", "") }
		all = append(all, Trigger{Name: t.Name, Create: without(t.Create), Body: without(t.Body)})
	}
	return all
}
