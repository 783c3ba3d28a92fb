package sqltext

import "strings"

// What a sealed table has besides its columns: triggers that refuse every write which
// doesn't prove its token. docs/adr/0025 has the reasons.
const (
	// SealedMark begins the name of the constraint by which PostgreSQL stores no
	// negative mark, whether the table is sealed or was.
	SealedMark = "sqlfence_mark"

	// SealTrigger is the name of PostgreSQL's trigger of rows that are written. Of several
	// triggers the last one by its name is fired last.
	SealTrigger = "~sqlfence_write"

	// SealPrefix begins the names of MySQL's three triggers.
	SealPrefix = "sqlfence-seal:"

	// DeleteProof is the setting of PostgreSQL in which a DELETE proves its tokens, as
	// table:token, and DeleteProofVariable the variable in MySQL, as table:time:token. Several
	// tokens have commas between them, behind the highest.
	DeleteProof         = "sqlfence.delete"
	DeleteProofVariable = "sqlfence_delete"
)

// The codes of a seal's refusals in PostgreSQL.
const (
	NotProven   = "FT001" // the write carries no token
	StaleProof  = "FT002" // a stale one
	NotIssuable = "FT003" // one that the ledger doesn't know
)

// ChangesSeal reports whether a statement of sqlfence's own may seal or unseal a table.
func ChangesSeal(query string) bool {
	for _, name := range []string{SealTrigger, SealPrefix, "sqlfence_seal_"} { // the last in SQLite
		if strings.Contains(query, name) {
			return true
		}
	}
	return false
}
