package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// TiDB speaks MySQL's protocol. It reads a row that it writes in its newest version, with a lock, or finds at COMMIT
// that another has written it since; either way the whole statement is evaluated on what it writes over, so that what
// a guard compares in the row holds. A subquery without columns of the row it executes when it plans the statement,
// and not again when that has waited. It has no triggers, and no locks for reading.
const (
	tidbName = "TiDB"

	// tidb is a variable that all versions of it have, and no other server.
	tidb = "tidb_txn_mode"
)

// Variables of a session that may take a statement apart, or change its error.
const (
	tidbLazily = "tidb_constraint_check_in_place_pessimistic"
	tidbBulk   = "tidb_dml_type"
)

var (
	tidbBatches   = []string{"tidb_batch_insert", "tidb_batch_delete", "tidb_batch_commit"}
	tidbVariables = append([]string{tidb, tidbLazily, tidbBulk}, tidbBatches...)
)

// unfitTiDB returns why nothing is guarded where the variable has this value; empty where it may be.
func unfitTiDB(variable, value string) string {
	on := value == "ON" || value == "1"
	switch {
	case variable == tidbLazily && !on:
		return variable + " is OFF, so that an error ends the whole transaction, and another one hides it; " +
			"set it to ON"
	case variable == tidbBulk && !strings.EqualFold(value, "standard"):
		return variable + " is " + strconv.Quote(value) + ", and guards were not tested with that; set it to standard"
	case slices.Contains(tidbBatches, variable) && on:
		return variable + " is ON, so that a statement may be applied in part; set it to OFF"
	}
	return ""
}

// replans is where alone the lock of another row holds.
const replans = "a statement that has waited asks for other rows again, and TiDB asks once, before it waits"

// IsTiDB is an expression that is true on TiDB alone, on a server that a pooler may have chosen.
const IsTiDB = "@@version_comment LIKE _utf8mb4'TiDB%'"

// ShareLock sends a query with a clause behind it that locks the rows: for those who write, or on TiDB, which
// has no such lock, for all who lock them.
func ShareLock(send func(clause string) error) error {
	const notSupported = 1235
	err := send(" LOCK IN SHARE MODE")
	if number, ok := dberr.MySQLNumber(err); ok && number == notSupported {
		err = send(" FOR UPDATE")
	}
	return err
}
