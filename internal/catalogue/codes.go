package catalogue

// missingLedger is the code of a missing ledger, which package tokens creates.
const missingLedger = "missing-ledger"

// DifferentRegistration is the code of programs that register a table differently: the command line compares them.
const DifferentRegistration = "different-registration"

// Remedies has the default remedy of each code of findings; [Finding].Remedy may replace it. Findings with the same
// remedy share a code, and their Problem distinguishes the cases.
var Remedies = map[string]string{
	"missing-table":   "Register the table by the name that it has, or create it.",
	"missing-column":  "Register the column that the table has.",
	"wrong-column":    "Register a separate column, or change the column's type or default.",
	"storage":         "Register the underlying tables, or change the storage of the table.",
	missingLedger:     "Call tokens.Store.Setup, or run sqlfence init --apply.",
	"several-ledgers": "Name one schema in all processes: sqlfence.WithSchema, sqlfence --schema.",
	"wrong-ledger": "Call tokens.Store.Setup, or run sqlfence init --apply, as a role that may create its " +
		"triggers and function.",
	"tokens-run-out": "Find the cause of the high tokens, and replace the name: tokens.Store.Rotate, sqlfence tokens " +
		"rotate.",
	"wrong-mark": "Raise the ledger to the stored token: tokens.Store.Repair, sqlfence tokens repair.",
	"wrong-server": "Use a server that docs/servers.md lists as tested. With several writing servers use RowFence " +
		"alone. In a cluster of standbys connect to the primary.",
	DifferentRegistration: "Register the table with the same rules in all programs that write to it.",
	"missing-privilege":   "Grant the privileges. Until then such writes fail.",
	"other-name": "Register the other name with the same Resource (a view under Ledger alone), seal the table, or " +
		"revoke the privileges to write under the other name.",
	"side-effect":   "Move the write into the application, or seal the table.",
	"other-writers": "Revoke the privileges from roles that don't need them, or seal the table.",
	"wrong-seal":    "Call schema.Seal again, or run sqlfence seal --apply.",
	"setting":       "Change the setting.",
	"unseen":        "Verify with a role that sees everything, such as the owner of the tables.",
}
