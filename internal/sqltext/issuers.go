package sqltext

import "strings"

// Issuers is what a ledger may have besides: columns in which the database records who has raised the token of a
// name last, and when, whatever client did, and the triggers that fill them in. docs/adr/0045 has the reasons.
type Issuers struct {
	Columns  []IssuerColumn
	Triggers []Trigger

	// Whole is one statement that adds all or brings it up to date, in place of single ones; empty for none.
	Whole string

	// Read are the expressions of who, a text, and of when, in microseconds since 1970, of a ledger with the columns.
	Read string
}

// An IssuerColumn is a column to be added, which is NULL in the rows that are there.
//
// Type is as the catalogue has it, or the beginning of that.
type IssuerColumn struct{ Name, Type string }

// The columns of [Issuers].
const (
	IssuedBy = "issued_by"
	IssuedAt = "issued_at"
)

// IssuersPrefix begins the names of the triggers of [Issuers], where there are several.
const IssuersPrefix = LedgerTriggerPrefix + "issued_"

// AddColumns adds columns to the ledger.
func AddColumns(columns []IssuerColumn) string {
	var add []string
	for _, c := range columns {
		add = append(add, "ADD COLUMN "+c.Name+" "+c.Type)
	}
	return "ALTER TABLE " + LedgerTable + " " + strings.Join(add, ", ")
}
