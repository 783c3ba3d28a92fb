package fakedb

import (
	"regexp"
	"strings"
)

// Plain returns a query without the schemas of PostgreSQL's operators and types, for handlers that compare queries.
func Plain(query string) string {
	return strings.NewReplacer("::pg_catalog.", "::", "AS pg_catalog.text", "AS text").Replace(
		qualified.ReplaceAllString(query, "$1"))
}

var qualified = regexp.MustCompile(`OPERATOR\((?:pg_catalog\.)?([^)]+)\)`)
