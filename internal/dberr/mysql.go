package dberr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// mysqlStates has the errors of MySQL and MariaDB that sqlfence depends on, with PostgreSQL's SQLSTATE. MySQL's
// SQLSTATEs, in the comments, are less specific. Source:
// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-code-reference/
var mysqlStates = map[uint16]string{
	// HY000: a record has changed since the transaction read it (innodb_snapshot_isolation)
	1020: SerializationFailure,
	1213: SerializationFailure, // 40001: a deadlock; the transaction was rolled back
	1206: SerializationFailure, // HY000: no room for more locks; the transaction was rolled back
	3101: SerializationFailure, // 40000: another node of Group Replication came first; the transaction was rolled back
	1205: lockNotAvailable,     // HY000: waited too long for a lock; only the statement was rolled back
	3572: lockNotAvailable,     // HY000: NOWAIT

	9007: SerializationFailure, // HY000: TiDB: another has written the row; the transaction was rolled back
	8005: SerializationFailure, // HY000: the same, found later
	8002: SerializationFailure, // HY000: the same, of a row that was read by FOR UPDATE
	8022: SerializationFailure, // HY000: TiDB: an error of its storage at COMMIT, which was undone
	8028: SerializationFailure, // HY000: TiDB: a table was altered since the transaction began
	// HY000: TiDB: an error of a delayed uniqueness check (tidb_constraint_check_in_place_pessimistic = OFF); the
	// transaction was rolled back
	8147: SerializationFailure,

	1040: "53300",                                              // 08004: too many connections
	1203: "53300",                                              // 42000: of this user
	1226: "53300",                                              // 42000: of this user, or another limit of his
	1047: "57P03",                                              // 08S01: a Galera node that isn't ready
	1053: "57P01",                                              // 08S01: the server shuts down
	1927: "57P01",                                              // 70100: the connection was killed
	3169: "57P01",                                              // HY000: the same, by MySQL
	1158: "08006", 1159: "08006", 1160: "08006", 1161: "08006", // 08S01: the network
	1153: "54000", // 08S01: a packet that is too large: nothing of it was executed; the server ends the session
	// HY000: an error during COMMIT; a part of the server, such as Galera or the binary log, may have committed
	1180: CompletionUnknown,
	3100: CompletionUnknown, // HY000: the same, of Group Replication: the node left the group while it waited for it
	2006: CompletionUnknown, // HY000: Vitess: a shard's server is lost; other shards may have committed
	2013: CompletionUnknown, // HY000: the same
	1317: "57014",           // 70100: the statement was interrupted
	1969: "57014",           // 70100: it took longer than max_statement_time
	3024: "57014",           // HY000: longer than max_execution_time
	1290: "25006",           // HY000: the server is read-only, mostly
	1792: "25006",           // 25006: the transaction is
	1836: "25006",           // HY000: the server is

	1050: DuplicateTable,        // 42S01
	1061: DuplicateObject,       // 42000: an index of this name
	1062: UniqueViolation,       // 23000
	1586: UniqueViolation,       // 23000: the same, with the index's name
	3819: "23514",               // HY000: a CHECK, by MySQL; MariaDB's 4025 has 23000
	1264: OutOfRange,            // 22003
	1690: OutOfRange,            // 22003: of an expression
	1054: UndefinedColumn,       // 42S22
	1146: UndefinedTable,        // 42S02
	1305: UndefinedFunction,     // 42000
	1049: UndefinedSchema,       // 42000
	1044: InsufficientPrivilege, // 42000: on a database
	1142: InsufficientPrivilege, // 42000: on a table
	1143: InsufficientPrivilege, // 42000: on a column
	1227: InsufficientPrivilege, // 42000: one that isn't a table's
	1370: InsufficientPrivilege, // 42000: on a function
}

const (
	lockWaitTimeout = 1205
	nodeNotReady    = 1047
	unknownVariable = 1193

	errorDuringCommit = 1180
	// deadlock is in the message of an error during COMMIT if InnoDB has rolled the transaction back, because a change
	// from another node of Group Replication took its locks.
	deadlock = "error 149 "
)

// IsMySQLBusy reports whether another transaction held a lock for longer than innodb_lock_wait_timeout, or whether a
// Galera node has no quorum. The statement was not executed, and its transaction may still be open.
func IsMySQLBusy(err error) bool {
	number, ok := MySQLNumber(err)
	return ok && (number == lockWaitTimeout || number == nodeNotReady)
}

// IsUnknownVariable reports whether a statement names a variable that the MySQL or MariaDB server doesn't have.
func IsUnknownVariable(err error) bool {
	number, ok := MySQLNumber(err)
	return ok && number == unknownVariable
}

// generalError is MySQL's SQLSTATE of an error without a specific one.
const generalError = "HY000"

// MySQLNumber returns the number of a MySQL or MariaDB error in err's chain; ok is false if there is none.
func MySQLNumber(err error) (number uint16, ok bool) {
	number, ok, _ = MySQLError(err)
	return number, ok
}

// MySQLError returns the first error of MySQL or MariaDB in err's chain, and its number.
func MySQLError(err error) (number uint16, ok bool, own error) {
	for _, e := range chain(err, nil) {
		if number, _, ok := basedriver.MySQLCode(e); ok {
			return number, true, e
		}
	}
	return 0, false, nil
}

// IsMySQLInvalidConn reports whether err's chain has ErrInvalidConn of github.com/go-sql-driver/mysql, with which the
// driver reports a connection that broke after a statement was sent. ErrInvalidConn has no type, so the text is
// compared.
func IsMySQLInvalidConn(err error) bool {
	return slices.ContainsFunc(chain(err, nil), func(e error) bool { return e.Error() == "invalid connection" })
}

// IsAssignedTwice reports whether err is MariaDB's error for a SET list that assigns a column twice, under sql_mode
// SIMULTANEOUS_ASSIGNMENT.
func IsAssignedTwice(err error, column string) bool {
	number, ok := MySQLNumber(err)
	return ok && number == 4140 && strings.Contains(strings.ToLower(err.Error()), "`"+column+"`")
}

// mysqlState returns the SQLSTATE of a MySQL error from its number and its own SQLSTATE.
func mysqlState(number uint16, own string, err error) string {
	if number == errorDuringCommit && strings.Contains(err.Error(), deadlock) {
		return SerializationFailure
	}
	if (number == 1105 || number == 1317) && isTargets(err.Error()) {
		return CompletionUnknown
	}
	if state, known := mysqlStates[number]; known {
		return state
	}
	return cmp.Or(own, generalError)
}

// isTargets reports whether an error about a shard is Vitess's own and not the shard's server's, which has the server's
// number. It may be a timeout of a COMMIT that the shard has executed.
func isTargets(text string) bool {
	return strings.Contains(text, "target: ") && !strings.Contains(text, "(errno ")
}
