package mysql

// A server of a group writes beside others, each with locks of its own. These global variables say so; they can't be
// set while the server runs, or not while it is part of a group. wsrep_on is a session's, too, and may be set by a
// connection. Galera's provider is named also where it is switched off.
const (
	galera = "wsrep_provider"
	group  = "group_replication_single_primary_mode"
)

// peers is where alone the lock of another row holds.
const peers = "one server writes to the database, and this is one of several (Galera, or Group Replication with " +
	"several primaries)"

// FindGroup is a query for these variables, and TiDB's.
const FindGroup = "SHOW GLOBAL VARIABLES WHERE variable_name IN ('" + galera + "', '" + group + "', '" + tidb + "')"

// CountsNot returns why triggers can't count by connection where such a variable has this value; empty where they can.
func CountsNot(variable, value string) string {
	switch {
	case writesBesideOthers(variable, value):
		return "several servers write"
	case variable == tidb:
		return "there are no triggers"
	}
	return ""
}

// writesBesideOthers reports whether the value of such a variable says so.
func writesBesideOthers(variable, value string) bool {
	switch variable {
	case galera:
		return value != "" && value != "none"
	case group:
		return value == "OFF"
	}
	return false
}

// nodeNotReady: a Galera node outside of its group's majority executes nothing, not even a
// ROLLBACK, and keeps its sessions.
const nodeNotReady = 1047
