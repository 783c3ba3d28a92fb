package sqltext

import (
	"fmt"
	"strings"
)

// What a sealed table has besides its columns: triggers that refuse every write which
// doesn't prove its token. docs/adr/0025 has the reasons.
const (
	// SealedMark begins the name of the constraint that keeps PostgreSQL from storing a negative
	// mark, whether the table is sealed or was.
	SealedMark = "sqlfence_mark"

	// SealTrigger is the name of PostgreSQL's trigger of rows that are written. Of several
	// triggers the last one by its name is fired last.
	SealTrigger = "~sqlfence_write"

	// FiredBehindSeal is a condition of PostgreSQL for a row g of pg_trigger: of a trigger that is
	// fired after that one, and may change the new row.
	FiredBehindSeal = "g.tgname > '" + SealTrigger + "' AND pg_catalog.int4and(g.tgtype, 3) = 3 AND " +
		"pg_catalog.int4and(g.tgtype, 20) <> 0"

	// SealPrefix begins the names of MySQL's three triggers.
	SealPrefix = "sqlfence-seal:"

	// OpenPrefix begins those of the triggers that a table has in MySQL beside a seal, or has left of one.
	OpenPrefix = "sqlfence-open:"

	// SealBusy begins those of the triggers that refuse all writes while a seal is made anew.
	SealBusy = OpenPrefix + "busy-"

	// DeleteProofVariable is the variable of MySQL in which a DELETE proves its tokens, as
	// table:time:token. Several tokens have commas between them, behind the highest.
	DeleteProofVariable = "sqlfence_delete"
)

// DeleteSetting is the setting of PostgreSQL in which a DELETE from a table proves its token.
// Several tokens have commas between them, behind the highest. Each table has its own, as the rows of two
// may be found and deleted in any order.
func DeleteSetting(table string) string { return "sqlfence.delete_" + settingName(table) }

// MoveSetting is that in which an UPDATE which moves a row to another partition says which
// token it has compared: from:42 as long as the row is to be deleted, then to:42.
func MoveSetting(table string) string { return "sqlfence.move_" + settingName(table) }

// ProofSetting is that in which the seal of a table notes what it has taken of a transaction last:
// the token's name, the transaction's number and its tokens. TokenSetting has the token.
func ProofSetting(table string) string { return "sqlfence.proof_" + settingName(table) }

// TokenSetting: see [ProofSetting].
func TokenSetting(table string) string { return "sqlfence.token_" + settingName(table) }

// settingName returns a table's name with all bytes as $ff that the name of a setting may not have, or
// that it doesn't tell apart.
func settingName(table string) string {
	var b strings.Builder
	for i := range len(table) {
		if c := table[i]; c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "$%02x", c)
		}
	}
	return b.String()
}

// ChangesSeal reports whether a statement of sqlfence's own may seal or unseal a table.
func ChangesSeal(query string) bool {
	for _, name := range []string{SealTrigger, SealPrefix} {
		if strings.Contains(query, name) {
			return true
		}
	}
	return false
}
