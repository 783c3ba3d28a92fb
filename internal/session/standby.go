package session

// A standby answers by what it has replayed so far, without an error. Behind a proxy each statement may be another
// server's. So what reads in order to decide asks in the same statement who answers.

// Deciding returns a query with two columns in front: whether the server that has answered may be behind the one that
// takes writes, and whether the query has a row; without one the others are NULL.
func (d *Dialect) Deciding(query string) string {
	return "SELECT " + d.Standby + ", d.found IS NOT NULL, d.* FROM (SELECT 1 AS one) AS s " +
		"LEFT JOIN (SELECT 1 AS found, q.* FROM (" + query + ") AS q) AS d ON 1 = 1"
}
