package sqltext

import "strings"

// Issuers has optional columns of a ledger, and the triggers that fill them. In the columns the database records which
// role last issued the name's token, from any client, and when. docs/adr/0045 has the reasons.
type Issuers struct {
	Columns  []IssuerColumn
	Triggers []Trigger

	// Whole is a statement that adds or updates all columns and triggers; empty if each is added by a separate
	// statement.
	Whole string

	// Read has the expressions of the role, a text, and of the time, in microseconds since 1970, in a ledger with the
	// columns.
	Read string
}

// An IssuerColumn is a column to be added, which is NULL in existing rows.
//
// Type is the type's name in the catalogue, or a prefix of the name.
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
