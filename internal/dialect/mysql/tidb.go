package mysql

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// TiDB speaks MySQL's protocol. A write reads the newest version of its rows with a lock, or COMMIT fails if another
// transaction has written the rows since. Either way a guard's comparison with the row holds. A check of the ledger
// holds only if an earlier query has locked the ledger's row: TiDB executes a subquery without columns of the row while
// planning the statement, and not again after a wait for a lock. TiDB has no triggers and no shared row locks.
const (
	tidbName = "TiDB"

	// tidb is a variable of all versions of TiDB, and of no other server.
	tidb = "tidb_txn_mode"
)

// Session variables that may split a statement into several transactions, or change its error.
const (
	tidbLazily = "tidb_constraint_check_in_place_pessimistic"
	tidbBulk   = "tidb_dml_type"
)

var (
	tidbBatches   = []string{"tidb_batch_insert", "tidb_batch_delete", "tidb_batch_commit"}
	tidbVariables = append([]string{tidb, tidbLazily, tidbBulk}, tidbBatches...)
)

// unfitTiDB returns why a variable's value prevents guards; empty if guards work.
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

// openTx: without autocommit each statement begins a transaction, if none is open.
const openTx = "SELECT CASE WHEN @@tidb_current_ts <> 0 OR @@autocommit = 0 THEN 1 ELSE 0 END"

// tidbText builds SQL for TiDB.
type tidbText struct{ text }

func (tidbText) Capabilities() *sqltext.Capabilities { return tidbCapabilities() }

var tidbCapabilities = sync.OnceValue(func() *sqltext.Capabilities {
	with := *capabilities()
	with.LocksFirst = fact.Yes

	// If WHERE compares a column with a constant, TiDB replaces the column by the constant in the rest of WHERE,
	// although the two may only be equal under a collation. TiDB doesn't do so in CONCAT here, because a replaced
	// CONVERT would lose its explicit collation, which no setting makes the default. See docs/adr/0050.
	with.KeyText = [2]string{"CAST(CONCAT(CONVERT(", " USING utf8mb4) COLLATE utf8mb4_unicode_ci) AS BINARY)"}
	return &with
})

// NotOnTiDB is the end of a condition that is false on TiDB, the only server for which the comment is code.
const NotOnTiDB = " /*T! AND FALSE */"

// ShareLock sends a query with a clause that locks the rows against writers, or on TiDB, which has no shared locks,
// against all other lockers.
func ShareLock(send func(clause string) error) error {
	const notSupported = 1235
	err := send(" LOCK IN SHARE MODE")
	if number, ok := dberr.MySQLNumber(err); ok && number == notSupported {
		err = send(" FOR UPDATE")
	}
	return err
}
