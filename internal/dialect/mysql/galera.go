package mysql

// A server of a group writes beside others, each with locks of its own. These global variables say so; they can't be
// set while the server runs, or not while it is part of a group. wsrep_on is a session's, too, and may be set by a
// connection. Galera's provider is named also where it is switched off.
const (
	galera = "wsrep_provider"
	group  = "group_replication_single_primary_mode"
)

// FindGroup is a query for these variables.
const FindGroup = "SHOW GLOBAL VARIABLES WHERE variable_name IN ('" + galera + "', '" + group + "')"

// WritesBesideOthers reports whether the value of such a variable says so.
func WritesBesideOthers(variable, value string) bool {
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
