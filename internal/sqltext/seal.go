package sqltext

import (
	"fmt"
	"strings"
)

// Names of a sealed table's triggers. The triggers refuse every write that presents no valid token. docs/adr/0025 has
// the reasons.
const (
	// SealedPrefix begins the name of the constraint that keeps PostgreSQL from storing a negative token, while the
	// table is sealed and afterwards.
	SealedPrefix = "sqlfence_mark"

	// SealTrigger is the name of PostgreSQL's trigger of written rows. PostgreSQL fires triggers in the order of their
	// names.
	SealTrigger = "~sqlfence_write"

	// FiredAfterSeal is a condition of PostgreSQL for a row g of pg_trigger: the trigger is fired after SealTrigger,
	// and may change the new row.
	FiredAfterSeal = "g.tgname > '" + SealTrigger + "' AND pg_catalog.int4and(g.tgtype, 3) = 3 AND " +
		"pg_catalog.int4and(g.tgtype, 20) <> 0"

	// SealPrefix begins the names of MySQL's three triggers.
	SealPrefix = "sqlfence-seal:"

	// OpenPrefix begins the names of MySQL's triggers that refuse negative tokens after a seal was removed, and of
	// those that exist only while a table is sealed or unsealed.
	OpenPrefix = "sqlfence-open:"

	// SealBusy begins the names of the triggers that refuse all writes while a seal is replaced.
	SealBusy = OpenPrefix + "busy-"

	// DeleteTokenVariable is the variable of MySQL in which a DELETE presents its tokens, as table:time:token. Several
	// tokens are separated by commas, the highest first.
	DeleteTokenVariable = "sqlfence_delete"
)

// DeleteSetting is the setting of PostgreSQL in which a DELETE from a table presents its tokens. Several tokens are
// separated by commas, the highest first. Each table has a separate setting, because a statement may find and delete
// rows of two tables in any order.
func DeleteSetting(table string) string { return "sqlfence.delete_" + settingName(table) }

// MoveSetting is the setting with the compared token of an UPDATE that moves a row to another partition: from:42 until
// the old row is deleted, then to:42.
func MoveSetting(table string) string { return "sqlfence.move_" + settingName(table) }

// TransactionSetting is the setting in which a table's seal stores the last token that it took from the transaction's
// setting sqlfence.tokens: the token's name, the transaction's number and that setting's value. TokenSetting is the
// setting with the token's value.
func TransactionSetting(table string) string { return "sqlfence.proof_" + settingName(table) }

// TokenSetting: see [TransactionSetting].
func TokenSetting(table string) string { return "sqlfence.token_" + settingName(table) }

// settingName returns a table's name for the name of a setting. Bytes that setting names can't have or distinguish are
// written as $ff.
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
	return strings.Contains(query, SealTrigger) || strings.Contains(query, SealPrefix)
}
