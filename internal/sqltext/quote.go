package sqltext

import "strings"

// QuotePostgres writes a name so that PostgreSQL reads just that.
func QuotePostgres(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteSQLite writes a name so that SQLite reads just that. It would take one in
// double quotes that names no column for a text.
func QuoteSQLite(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
