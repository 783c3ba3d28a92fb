package sqltext

import (
	"regexp"
	"strings"
)

// SQLiteWithin returns the condition of a partial index by its text, or nothing in doubt: what is in
// double quotes there may be a column or a text, and a comment may hide anything.
func SQLiteWithin(index string) string {
	found := partialSQLite.FindStringSubmatch(index)
	if found == nil || strings.Contains(index, "--") || strings.Contains(index, "/*") {
		return ""
	}
	return found[1]
}

var partialSQLite = regexp.MustCompile("(?is)^" + namedSQLite + "*\\(" + namedSQLite + "*\\)\\s*where\\b\\s*([^\"]+)$")

// namedSQLite is a part of what names an index, its table and its columns.
const namedSQLite = "(?:[^()'\"\x60\\[]|\x60[^\x60]*\x60|\"[^\"]*\"|\\[[^\\]]*\\])"
