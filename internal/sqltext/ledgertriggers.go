package sqltext

import (
	"fmt"
	"io/fs"
	"strings"
)

// A Trigger keeps the ledger's tokens from decreasing and its names from being deleted, by any client. docs/adr/0030
// has the reasons.
type Trigger struct {
	Name string

	// Create creates the trigger unless its name exists. Body is the end of Create, as the catalogue shows an existing
	// trigger.
	Create, Body string
}

// LedgerTriggerPrefix begins the triggers' names.
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

// Statements returns a migration file's statements between the comments StatementBegin and StatementEnd.
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

// ServedToken is the triggers' error for a name's first token if it isn't above the tokens of deleted names. It has the
// SQLSTATE of a serialization failure, because a repeated Issue sees the lower bound that these tokens have set.
const ServedToken = "sqlfence: the first token of a name has to be above those of names that were deleted"

// Differs reports whether a trigger of the name has another body than t. found has the
// catalogue's texts by the names.
func (t Trigger) Differs(found map[string]string) bool {
	text, ok := found[t.Name]
	return ok && !strings.HasSuffix(strings.TrimSpace(text), t.Body)
}

// WithoutRowID returns the triggers for a ledger without row IDs (WITHOUT ROWID).
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
