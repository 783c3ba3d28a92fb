package tokens

import "github.com/sqlfence/sqlfence/internal/sqltext"

// LedgerFunction is the SQL of the function that guards on PostgreSQL ask the ledger by, for a
// migration of the application's own. [Store.Setup] installs the same. Without it guards ask by
// queries of their own, and are as safe: with it PostgreSQL plans them in a third of the time, and
// many writers of one name don't lock the ledger's row, which costs it a multixact and twice the
// WAL a write. sqlfence uses the function where a connection finds it.
//
// It is one statement, of type DO, needs the language plpgsql, and can be run again. It
// installs in the schema of the table fencing_tokens that the search path leads to:
//
//   - the function sqlfence_newest_v2, which a guard calls;
//   - a trigger sqlfence_turn_v1 on the table, and its function, which has those who change
//     a token by other means than sqlfence wait for open guarded writes of the name. It is
//     on under every session_replication_role (ENABLE ALWAYS). While it is off, the function
//     locks the row instead.
//
// The role has to have the powers of the table's owner and CREATE on its schema. The table must be
// an ordinary one, with a unique column name of type text or varchar, with a deterministic
// collation, and a column token of type bigint or integer; else the statement fails and changes
// nothing. While it creates the trigger, no client can write to the table; it waits for that for
// the session's lock_timeout, or one second if there is none.
//
// Through a database that is fenced, run it under [sqlfence.Bypass].
const LedgerFunction = sqltext.CreateLedgerFunction
