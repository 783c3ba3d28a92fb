package mysql

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/session"
)

// Vitess is a proxy, vtgate, in front of vttablets, each with the MySQL of one shard. vtgate parses a statement and
// sends it to the shards. There MySQL evaluates the guard for each row that it writes, so a comparison with the written
// row holds. The ledger may be in another shard than the row, so a guard can't lock the ledger. A DELETE with a LIMIT
// over several shards becomes a query for keys, with the guard, and a DELETE of these keys, without the guard.
const vitessName = "Vitess"

// directive begins a comment for vtgate. With MULTI_SHARD_AUTOCOMMIT each shard commits its part of a statement, even
// if another shard refuses its own part.
const directive = "vt+"

// onShard is the condition under which a lock of another row, such as the ledger's, holds.
const onShard = "one server executes a whole statement, and vtgate divides it among the servers of the shards"

// knowVitess stores the facts about Vitess if its name is in the version string, which vtgate itself returns.
func knowVitess(f *session.Capabilities) {
	if strings.HasSuffix(f.Front, "-Vitess") {
		f.Known, f.Apart, f.Text, f.LimitsByKey = vitessName, onShard, vitess{}, true
		f.Hides = "vttablet's --queryserver-config-terse-errors must be off"
	}
}

// unfitVitess returns why a variable's value prevents guards; empty if guards work.
func unfitVitess(f *session.Capabilities, variable, value string) string {
	if f.Known == vitessName && variable == sqlMode &&
		(strings.Contains(value, "ANSI_QUOTES") || strings.Contains(value, "NO_BACKSLASH_ESCAPES")) {
		return "vtgate reads quotes and backslashes in another way than the servers of the shards; leave ANSI_QUOTES " +
			"and NO_BACKSLASH_ESCAPES out of their sql_mode"
	}
	return ""
}

// vitess builds SQL for vtgate, which has no IS_FREE_LOCK in a statement with tables.
type vitess struct{ text }

// Throwing passes the text to UUID_TO_BIN, as no UUID: error 1411.
func (vitess) Throwing() (before, between, behind string) {
	return throwsFirst + "LENGTH(UUID_TO_BIN(" + throwsText, ", ", throwsLast + "))))"
}

// The text of UUID_TO_BIN's error 1411 before and after its value, and how many bytes of the value the text has at most.
const (
	beforeValue = "Incorrect string value: '"
	afterValue  = "' for function uuid_to_bin (errno "
	valueSize   = 128
)

// tabletError returns MySQL's text in a vttablet's error, up to the value, and whether UUID_TO_BIN threw the error.
// vtgate takes the first text like a number for the error's number, even in the value, which may be a user's. So the
// number neither proves a guard's error nor disproves it. The first quote must be the one before the value, and the
// text ends with the value, because the statement follows with its arguments.
func tabletError(text string) (own string, ok bool) {
	value := strings.IndexByte(text, '\'') + 1
	if !strings.HasSuffix(text[:value], beforeValue) {
		return "", false
	}
	end := strings.LastIndex(text[value:min(len(text), value+valueSize+len(afterValue))], afterValue)
	return text[:value+end+1], end >= 0
}

// EndTx sends a COMMIT that begins no transaction, whatever completion_type is. vtgate has no such clauses, and no
// completion_type.
func EndTx(send func(text string) error) error {
	err := send("COMMIT AND NO CHAIN NO RELEASE")
	if number, ok := dberr.MySQLNumber(err); ok && number == 1105 && strings.Contains(err.Error(), "syntax error") {
		err = send("COMMIT")
	}
	return err
}

// IsUnsupported reports whether vtgate has refused a statement that MySQL would execute.
func IsUnsupported(err error) bool {
	number, ok := dberr.MySQLNumber(err)
	return ok && number == 1235
}
