package catalogue

// missingLedger is the code of a ledger that isn't there: package tokens makes it.
const missingLedger = "missing-ledger"

// DifferentRegistration is the code of programs that register a table differently: the command line compares them.
const DifferentRegistration = "different-registration"

// A Code is what a finding is called. Findings with the same remedy have the same code, and their
// problems say which case it is.
type Code struct {
	Name     string
	Severity string // as the page has it
	Means    string
	Remedy   string // unless the finding has its own
}

// Codes are all of them, as docs/verify.md has them.
var Codes = []Code{
	{"missing-table", "fault", "a registered table doesn't exist, or the role can't see it: its " +
		"registration guards nothing",
		"Register the table by the name that it has, or create it."},
	{"missing-column", "fault", "a registered table lacks a column that a rule names, or the role can't see it",
		"Register the column that the table has."},
	{"wrong-column", "fault; warning; note", "a column doesn't suit its rule: its type refuses, rounds or cuts " +
		"what is stored, the database computes it, a key or an index reads the mark, new rows without a token get " +
		"no mark or a wrong one, or no index finds a claim by its key",
		"Register a column of its own, or change its type or default."},
	{"storage", "fault; warning", "the rows aren't kept as guards need it: a view, a foreign or virtual table, a " +
		"temporary or `UNLOGGED` one, another engine than InnoDB, a constraint with ON CONFLICT",
		"Register the tables behind it, or change how it is kept."},
	{missingLedger, "fault", "there is no `fencing_tokens` for a table with `Ledger`; in SQLite, in that table's file",
		"Call tokens.Store.Setup, or run sqlfence init --apply."},
	{"several-ledgers", "warning", "another schema has a ledger, too, so that processes with another search path " +
		"may find another one",
		"Name one schema in all processes: sqlfence.WithSchema, sqlfence --schema."},
	{"wrong-ledger", "fault; warning", "the ledger isn't as Setup creates it: its columns and key, how it is kept, " +
		"the triggers that keep tokens from falling and names from being lost, a cascade that fires none, the " +
		"function that guards ask, the record of who takes tokens where it has one",
		"Call tokens.Store.Setup, or run sqlfence init --apply, as a role that may create its triggers and function."},
	{"tokens-run-out", "fault; warning", "names in the ledger, or the number that new ones begin above, are above " +
		"a tenth of the highest token",
		"Find out what has raised them, and replace the name: tokens.Store.Rotate, sqlfence tokens rotate."},
	{"wrong-mark", "fault; warning", "a row's mark is below 0, or above the newest token of its name. `verify.Check` " +
		"only",
		"Raise the ledger to the mark: tokens.Store.Repair, sqlfence tokens repair."},
	{"wrong-server", "fault; warning", "guards don't hold on the server: it doesn't raise their error, it isn't known, " +
		"or other servers write to the database (Galera, Group Replication) and a table has `Ledger`; or a standby " +
		"or read-only server was asked",
		"Use a server that docs/servers.md has as tested; with several, RowFence alone; of a cluster the primary."},
	{DifferentRegistration, "warning; note", "two programs register a table differently, or only one of them does, " +
		"or their tokens are in different schemas. `sqlfence verify` with several `--tables` only",
		"Register the table with the same rules in all programs that write to it."},
	{"missing-privilege", "fault; warning", "the role may write, and lacks what guards need besides: a fault where " +
		"every write fails",
		"Grant them; until then such writes fail."},
	{"other-name", "warning; note", "the rows can be written by another name that isn't registered: a view, also one " +
		"with the table's name in another schema, a partition, a child or parent table, a file that is attached twice",
		"Register what is written by that name as well, with the same Resource, a view under Ledger alone, or seal " +
			"the table, or take away the privileges to write there."},
	{"side-effect", "warning; note", "the database writes the rows while something else is executed: a trigger, a " +
		"function, a rule, a cascade, a subscription; or a trigger or rule changes what a guarded write does. A " +
		"note where only its name stands in the code",
		"Let the application write in its place, or seal the table."},
	{"other-writers", "note", "other roles may write to a table that isn't sealed, or past its seal; " +
		"superusers aren't counted",
		"Take the privileges away from who doesn't need them, or seal the table."},
	{"wrong-seal", "fault; warning", "the seal isn't what is registered: not there, not whole, that of other " +
		"rules, followed by another trigger, or there and not registered",
		"Call schema.Seal again, or run sqlfence seal --apply."},
	{"setting", "warning; note", "a setting loses commits or keys, switches seals off, gives other nodes what " +
		"was rolled back, or lets a transaction idle for ever",
		"Change the setting."},
	{"unseen", "note", "the role can't see something that verify.Check asks for",
		"Verify with a role that can, such as the tables' owner."},
}

// remedies has the codes' remedies by their names.
var remedies = func() map[string]string {
	found := make(map[string]string, len(Codes))
	for _, c := range Codes {
		found[c.Name] = c.Remedy
	}
	return found
}()
