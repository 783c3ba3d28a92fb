// Package sqltext says once what several packages say in SQL. Its texts are
// expressions that stand in a statement of the package that uses them.
package sqltext

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// Turn is the lock of PostgreSQL's that orders those who raise the token of a name
// and, shared, those who write under the ledger's guard. name is an expression of
// type text.
func Turn(name string) string {
	return "pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', " + name + "), 0))"
}

// Raise is an expression of type bigint that raises 22P02 with a text, in parts that
// are expressions. Something in them has to depend on the row or the time, or it is
// evaluated by the planner. No cast of the database's own softens it.
func Raise(parts ...string) string {
	return "pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat(" + strings.Join(parts, ", ") + ")))"
}

// Seen is a condition for a statement that may add the name to the ledger, an
// expression of type text, above [Floor]. Above READ COMMITTED the statement's snapshot
// may be older than a Repair that it has waited for; a name that Repair has raised
// is a serialization failure then, but one that is new would begin too low. So it
// raises there, [IsUnseen], and the name has to be added first.
func Seen(name string) string {
	return "CASE WHEN pg_catalog.current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN true" +
		" WHEN EXISTS (SELECT FROM fencing_tokens WHERE name = " + name + ") THEN true" +
		" ELSE " + Raise("'"+unseen+"'", name) + " IS NOT NULL END"
}

const unseen = "sqlfence:unseen:"

// IsUnseen reports whether err is what [Seen] raises.
func IsUnseen(err error) bool {
	return dberr.SQLState(err) == dberr.InvalidText && strings.Contains(err.Error(), unseen)
}

// Durable is an expression that has the statement's transaction wait until its
// commit is on disk, also where synchronous_commit is off: a server that crashed
// would else give the same tokens again. It is volatile, so that it is evaluated
// though nobody uses its value, and holds for this transaction only.
const Durable = "CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off'" +
	" THEN pg_catalog.set_config('synchronous_commit', 'on', true) END"

// Start is what [Floor] is on the first timeline, in every dialect: 0 unless tokens'
// Repair has stored more, under the name that no token can have.
const Start = "COALESCE((SELECT token FROM fencing_tokens WHERE name = ''), 0)"

// Floor is the number that the tokens of PostgreSQL are all above. Each timeline of
// the server, which a promotion begins, or the end of a restore, has 10^10 of them.
const Floor = "(" + Start + " + " + epoch + ")"

// epoch reads the timeline from the first eight hexadecimal digits of the name of the
// WAL file that is being written. The bound keeps the product within a bigint; there it
// has reached the highest token.
const epoch = "LEAST(('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint - 1, 90000)" +
	" * 10000000000"
