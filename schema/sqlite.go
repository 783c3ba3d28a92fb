package schema

import (
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
)

// sqlite is the dialect of SQLite. A new column has the type integer and not bigint, which a STRICT table refuses. Any
// column with INT in its type stores integers of 8 bytes.
var sqlite = dialect{
	Dialect: lite.Text,
	names:   sqlfence.SQLite,

	find: findSQLite,
	scan: scanText,
	fits: func(typ string) bool {
		return strings.Contains(strings.ToUpper(typ), "INT") && !strings.HasSuffix(typ, " GENERATED")
	},
	typ: "integer",
	steps: func(f fence, _ int) steps {
		return steps{add: "ALTER TABLE " + f.table + " ADD COLUMN " + f.column + " integer NOT NULL DEFAULT 0"}
	},
	backoff: 10 * time.Millisecond,
}

// findSQLite returns a query for the type of a column. The pragma's column hidden is 2 or 3 for a generated column.
func findSQLite(f fence) string {
	text := lite.Text.Text
	table := text(f.name)
	if f.schema != "" {
		table += ", " + text(f.schema)
	}
	return "SELECT type || CASE WHEN hidden > 1 THEN ' GENERATED' ELSE '' END FROM pragma_table_xinfo(" + table +
		") WHERE name = " + text(f.stored) + " COLLATE NOCASE"
}
