package catalogue

// missingLedger is the code of a ledger that isn't there: package tokens makes it.
const missingLedger = "missing-ledger"

// DifferentRegistration is the code of programs that register a table differently: the command line compares them.
const DifferentRegistration = "different-registration"

// Remedies has what to do for each code, unless the finding has a remedy of its own. Findings with the same remedy have
// the same code, and their problems say which case it is. docs/verify.md says what each code means.
var Remedies = map[string]string{
	"missing-table":   "Register the table by the name that it has, or create it.",
	"missing-column":  "Register the column that the table has.",
	"wrong-column":    "Register a column of its own, or change its type or default.",
	"storage":         "Register the tables behind it, or change how it is kept.",
	missingLedger:     "Call tokens.Store.Setup, or run sqlfence init --apply.",
	"several-ledgers": "Name one schema in all processes: sqlfence.WithSchema, sqlfence --schema.",
	"wrong-ledger": "Call tokens.Store.Setup, or run sqlfence init --apply, as a role that may create its " +
		"triggers and function.",
	"tokens-run-out": "Find out what has raised them, and replace the name: tokens.Store.Rotate, sqlfence " +
		"tokens rotate.",
	"wrong-mark": "Raise the ledger to the mark: tokens.Store.Repair, sqlfence tokens repair.",
	"wrong-server": "Use a server that docs/servers.md has as tested; with several, RowFence alone; of a " +
		"cluster the primary.",
	DifferentRegistration: "Register the table with the same rules in all programs that write to it.",
	"missing-privilege":   "Grant them; until then such writes fail.",
	"other-name": "Register what is written by that name as well, with the same Resource, a view under " +
		"Ledger alone, or seal the table, or take away the privileges to write there.",
	"side-effect":   "Let the application write in its place, or seal the table.",
	"other-writers": "Take the privileges away from who doesn't need them, or seal the table.",
	"wrong-seal":    "Call schema.Seal again, or run sqlfence seal --apply.",
	"setting":       "Change the setting.",
	"unseen":        "Verify with a role that can, such as the tables' owner.",
}
