package conformance

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
)

// A dialect holds the SQL of the checks for one database.
type dialect struct {
	named       sqlfence.Dialect
	blob        string   // the type of a column of bytes
	numbered    bool     // placeholders are $1 rather than ?
	returning   bool     // a write may have RETURNING
	oneWriter   bool     // a transaction that has begun may keep all others from writing
	ownTypes    []string // queries with columns of types that only this database has
	name        string   // a query for the database's name, where errors contain it
	transaction string   // a query for a transaction's properties; empty if there is none
	slow        string   // an expression that takes much longer than the checks' deadlines, but ends: see deadline
	upsert      string   // the database's clause in place of upsert; empty for upsert itself
	unguardable []string // statements that can't be guarded, in addition to the statements for all databases
}

var dialects = []*dialect{&postgres, &sqlite, &mysql}

func dialectOf(d sqlfence.Dialect) *dialect {
	for _, known := range dialects {
		if known.named == d {
			return known
		}
	}
	return nil
}

var postgres = dialect{
	named:     sqlfence.Postgres,
	blob:      "bytea",
	numbered:  true,
	returning: true,
	ownTypes: []string{
		`SELECT 1::numeric(10,2), 'x'::varchar(7), now() < now(), '{1,2}'::int[], '\x00ff'::bytea, '2020-01-02'::date, '1 day'::interval, '{"a":1}'::jsonb, 'NaN'::float8, '00000000-0000-0000-0000-000000000001'::uuid FROM books`,
	},
	transaction: "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')",
	slow:        "(SELECT count(*) FROM pg_sleep(10))",
	unguardable: []string{
		"UPDATE books SET price = 30 /* unfinished",
		"DO $$ BEGIN EXECUTE 'UPDATE bo' || 'oks SET price = 30'; END $$",
		"TRUNCATE books",
		"DO $$ BEGIN UPDATE books SET price = 30; END $$",
		"PREPARE p AS UPDATE books SET price = 30",
		"COPY (DELETE FROM books RETURNING id) TO STDOUT",
	},
}

var sqlite = dialect{
	named:     sqlfence.SQLite,
	blob:      "blob",
	oneWriter: true,
	returning: true,
	slow:      "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000000) SELECT count(*) FROM c)",
	unguardable: []string{
		"REPLACE INTO books (id, price) SELECT 1, 30",
		"UPDATE OR REPLACE books SET price = 30",
		"CREATE TRIGGER r AFTER INSERT ON pens BEGIN UPDATE books SET price = 30; END",
	},
}

var mysql = dialect{
	named:  sqlfence.MySQL,
	blob:   "blob",
	upsert: "ON DUPLICATE KEY UPDATE price = VALUES(price)",
	name:   "SELECT DATABASE()",
	slow:   "(SELECT SLEEP(0.2))", // nothing interrupts it, and its locks stay as long
	unguardable: []string{
		"REPLACE INTO books (id, price) VALUES (1, 30)",
		"UPDATE books SET price = 30 /*! WHERE id = 2 */",
		"UPDATE books b JOIN pens p ON b.id = p.id SET price = 30",
		"TRUNCATE books",
		"LOAD DATA LOCAL INFILE 'books.csv' INTO TABLE books",
		"PREPARE p FROM 'UPDATE books SET price = 30'",
		"EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 30')",
		"BEGIN NOT ATOMIC UPDATE books SET price = 30; END",
		"SET STATEMENT sql_mode = '' FOR UPDATE books SET price = 30",
	},
}

// bind returns a check's query in the dialect: it replaces the constant upsert, an ON CONFLICT clause, and writes each
// placeholder ? as $1, $2 and so on if the dialect's placeholders are numbered.
func (d *dialect) bind(query string) string {
	if d.upsert != "" {
		query = strings.ReplaceAll(query, upsert, d.upsert)
	}
	if !d.numbered {
		return query
	}
	var b strings.Builder
	for i, part := range strings.Split(query, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}
