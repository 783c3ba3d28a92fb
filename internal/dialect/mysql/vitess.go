package mysql

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/session"
)

// Vitess is a proxy, vtgate, in front of vttablets, each with the MySQL of one shard. vtgate parses a statement and
// sends it to the shards. There MySQL evaluates the guard for each row that it writes, so a comparison with the written
// row holds. The ledger may be in another shard than the row, so a guard can't lock the ledger.
const vitessName = "Vitess"

// directive begins a comment for vtgate. With MULTI_SHARD_AUTOCOMMIT each shard commits its part of a statement, even
// if another shard refuses its own part.
const directive = "vt+"

// onShard is the condition under which a lock of another row, such as the ledger's, holds.
const onShard = "one server executes a whole statement, and vtgate divides it among the servers of the shards"

// knowVitess stores the facts about Vitess if its name is in the version string, which vtgate itself returns.
func knowVitess(f *session.Capabilities) {
	if strings.HasSuffix(f.Front, "-Vitess") {
		f.Known, f.Apart, f.Text = vitessName, onShard, vitess{}
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

// tabletError returns MySQL's text in a vttablet's error, and whether MySQL threw error 1411 for a string. The error's
// number follows, then the statement with its values. vtgate takes the first text like a number for the error's number,
// even in a value, so the number proves nothing: the first quote must be the one that this error puts before its value.
func tabletError(text string) (own string, ok bool) {
	own, _, ok = strings.Cut(text, " (errno ")
	before, _, _ := strings.Cut(own, "'")
	return own, ok && strings.HasSuffix(before, "Incorrect string value: ")
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
