package mysql

// Global variables that show a cluster in which several servers write, each with separate row locks. No session can
// hide the cluster by setting them, as it could by wsrep_on: wsrep_provider can't be set while the server runs, the
// other variable not while the server is in a group. wsrep_provider names a provider even while Galera is off.
const (
	galera = "wsrep_provider"
	group  = "group_replication_single_primary_mode"
)

// peers is why a lock of another row, such as the ledger's, may not hold here: its condition, and that it isn't met.
const peers = "one server writes to the database, and this is one of several (Galera, or Group Replication with " +
	"several primaries)"

// FindGroup is a query for these variables, and TiDB's.
const FindGroup = sessionVariables + " WHERE variable_name IN ('" + galera + "', '" + group + "', '" + tidb +
	"') LIMIT 100"

// CountsNot returns why triggers can't count by connection if a variable of FindGroup has this value; empty if they
// can.
func CountsNot(variable, value string) string {
	switch {
	case hasOtherWriters(variable, value):
		return "several servers write"
	case variable == tidb:
		return "there are no triggers"
	}
	return ""
}

// hasOtherWriters reports whether a variable's value shows that several servers write.
func hasOtherWriters(variable, value string) bool {
	switch variable {
	case galera:
		return value != "" && value != "none"
	case group:
		return value == "OFF"
	}
	return false
}

// nodeNotReady is the error number of a Galera node outside of its group's majority. Such a node executes nothing, not
// even a ROLLBACK, and keeps its sessions, so that a transaction stays open.
const nodeNotReady = 1047
