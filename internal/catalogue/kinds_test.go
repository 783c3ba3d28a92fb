package catalogue

// kinds are the kinds of findings, in the order of docs/data/verify.md, which is generated from kinds and Remedies.
var kinds = []struct {
	code    string
	levels  string // the levels that a finding may have, the worst first: fault, warning, note
	means   string // what is wrong
	details string // the cases, each with its level; may be empty
}{
	{"missing-table", "fault",
		"A registered table doesn't exist, or the role can't see the table. The registration guards nothing.",
		""},
	{"missing-column", "fault",
		"A registered table lacks a column that a rule names, or the role can't see the column.",
		""},
	{"wrong-column", "fault, warning, note",
		"A column doesn't suit its rule. Its type refuses, rounds or cuts stored tokens, the database computes the " +
			"column, a key or an index contains the fence column, the default isn't 0, or no index finds a claim by " +
			"its key.",
		"A fence column or a version that isn't a bigint is a fault if every write is refused or a token is cut, and " +
			"a warning for a narrower integer and for texts on SQLite. A key must have a type that neither rounds " +
			"nor pads. The columns of a lock must have the types that package rowlock writes."},
	{"storage", "fault, warning",
		"The rows aren't kept as a guard needs it: in a view, in a foreign, virtual, temporary or UNLOGGED table, in " +
			"another engine than InnoDB, or under a constraint with ON CONFLICT.",
		"A view or a foreign table under a rule with columns is a fault on PostgreSQL, MySQL and MariaDB, because " +
			"every guarded write is refused."},
	{missingLedger, "fault",
		"There is no fencing_tokens for a table with Ledger. On SQLite each file needs one.",
		"verify.OnConnect doesn't refuse the connection for that."},
	{"several-ledgers", "warning",
		"A second schema has a ledger, and processes with a different search path may use that ledger.",
		""},
	{"wrong-ledger", "fault, warning",
		"The ledger isn't as Setup creates it: its columns and key, its storage, the triggers that keep tokens and " +
			"names, a cascade that fires no trigger, the function that guards call, the procedures, or the record of " +
			"issuers.",
		"Keep the rows of the table in any repair: otherwise tokens begin at 1 again. On PostgreSQL no guarded write " +
			"lands while the function or the triggers are missing."},
	{"tokens-run-out", "fault, warning",
		"Names in the ledger, or the floor for new names, are above a tenth of the highest token.",
		""},
	{"wrong-mark", "fault, warning",
		"The stored token of a row is below 0, or above the newest token of its name. Only verify.Check reads rows.",
		"In a table with Key, the stored tokens are compared with all names of the table."},
	{"wrong-server", "fault, warning",
		"Guards don't hold on the server: it doesn't throw their error, it isn't known, or several servers write to " +
			"the database (Galera, Group Replication) and a table has Ledger. Or the server is a standby or read-only.",
		""},
	{DifferentRegistration, "warning, note",
		"Two programs register a table with different rules, only one of them registers it, or their tokens are in " +
			"different schemas. Only sqlfence verify with several --tables compares programs.",
		""},
	{"missing-privilege", "fault, warning",
		"The role may write to a table, and lacks a privilege that guards need. It is a fault if every write " +
			"fails.",
		""},
	{"other-name", "warning, note",
		"The rows can be written under another name that isn't registered: a view, a table of another schema with " +
			"the same name, a partition, a parent or child table, or a file that is attached twice.",
		"If the table is sealed, it is a note."},
	{"side-effect", "warning, note",
		"The database writes the rows while it executes something else: a trigger, a function, a rule, a cascade, a " +
			"subscription. Or a trigger or rule changes what a guarded write does.",
		"It is a note if the code only contains the table's name, and if the table is sealed, except for a " +
			"subscription and for cascades on MySQL. Code that the role can't read, and code that executes composed " +
			"SQL, is reported."},
	{"other-writers", "note",
		"Roles other than the application's may write to an unsealed table, or past a seal. Superusers aren't counted.",
		"A seal can be passed by the privilege TRIGGER or by the owner on PostgreSQL, and by DROP (TRUNCATE), ALTER " +
			"and TRIGGER on MySQL."},
	{"wrong-seal", "fault, warning",
		"The seal differs from the registration: it is missing, incomplete or made for different rules, a trigger " +
			"follows it, or a sealed table is registered without Sealed.",
		""},
	{"setting", "warning, note",
		"A setting loses commits or keys, disables seals, replicates rows that were rolled back, or lets a " +
			"transaction idle without limit.",
		"On PostgreSQL: synchronous_commit, fsync, session_replication_role (also of roles and functions), " +
			"idle_in_transaction_session_timeout. On MySQL and MariaDB: sql_mode under Key, binlog_format, " +
			"innodb_flush_log_at_trx_commit, idle_transaction_timeout."},
	{"unseen", "note",
		"The role can't see something that verify.Check queries, or no table is registered.",
		""},
}
