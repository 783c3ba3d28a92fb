package session

import "github.com/sqlfence/sqlfence/internal/sqltext"

// A standby answers by what it has replayed so far, without an error. Behind a proxy each statement may be another
// server's. So what reads in order to decide asks in the same statement who answers.

// Front is how many columns Deciding puts in front.
const Front = 3

// Deciding returns a query with columns in front: whether the server that has answered may be behind the one that takes
// writes; whether the query has a row, without which all others are NULL; and one that isn't NULL if it has. Its own
// columns need different names. pgpool sends such a query to the primary, as what asks for a standby may change
// from one time to the next.
func (d *Dialect) Deciding(query string) string {
	return sqltext.Whole(d.Text, "SELECT "+d.Standby+", d.found IS NOT NULL, d.* FROM (SELECT 1 AS one) AS s "+
		"LEFT JOIN (SELECT 1 AS found, q.* FROM ("+query+") AS q) AS d ON 1 = 1")
}
