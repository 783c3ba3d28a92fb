package catalogue

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// SQLite is SQLite, with the databases that the connection has attached as its schemas.
var SQLite = newDatabase(dialect.SQLite, Database{
	same:   lex.Fold,
	length: utf8.RuneCountInString,
	user:   "text",

	silentCascades: fact.No,
	refusesViews:   fact.No,

	relations:   relationsSQLite,
	queries:     queriesSQLite,
	tableNames:  tableNamesSQLite,
	fencedNames: fencedNamesSQLite,
	judge:       judgeSQLite,
	storage:     storageSQLite,
	session:     sessionSQLite,
})

// each joins a query for every attached database by UNION ALL. In query, {text} is the database's name as a constant,
// and {schema} its name quoted. fill holds further placeholders, each followed by its value.
func each(l *look, order, query string, fill ...string) string {
	parts := make([]string, len(l.schemas))
	for i, s := range l.schemas {
		parts[i] = strings.NewReplacer(append([]string{"{text}", l.db.Text(s), "{schema}", l.db.Quote(s)},
			fill...)...).Replace(query)
	}
	return strings.Join(parts, "\nUNION ALL ") + " ORDER BY " + order
}

// relationsSQLite returns the relations of all attached databases. The databases are in the order in which SQLite
// searches them for a name without a schema (temp first), so the first relation of a name is the visible one.
func relationsSQLite(l *look, names []string) (found []*relation) {
	l.schemas = slices.Concat(l.rows("the attached databases",
		`SELECT name FROM pragma_database_list ORDER BY CASE name WHEN 'temp' THEN -1 ELSE seq END`)...)
	if len(l.schemas) == 0 {
		return nil
	}
	rows := l.rows("the tables", each(l, "1, 2", `SELECT {text}, name, type, sql `+
		`FROM {schema}.sqlite_master WHERE type IN ('table', 'view') AND lower(name) IN ({names})`,
		"{names}", l.db.texts(names)))
	for _, s := range l.schemas {
		for _, r := range rows {
			if r[0] != s {
				continue
			}
			hides := func(other *relation) bool { return l.db.same(other.name) == l.db.same(r[1]) }
			rel := &relation{id: r[0] + "." + r[1], schema: r[0], name: r[1], kind: r[2], definition: l.db.text(r[3]),
				visible: !slices.ContainsFunc(found, hides), deletes: true}
			switch {
			case rel.definition.is(1, "virtual"):
				rel.kind = "virtual table"
			case s == "temp":
				rel.storage = "temporary"
			}
			found = append(found, rel)
		}
	}
	return found
}

// tableNamesSQLite omits the shadow tables in which virtual tables keep their rows.
func tableNamesSQLite(l *look) string {
	return each(l, "1", `SELECT name FROM {schema}.sqlite_master WHERE type = 'table' `+
		`AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT IN (SELECT t.name FROM pragma_table_list AS t `+
		`WHERE t.schema = {text} AND t.type = 'shadow')`)
}

func fencedNamesSQLite(l *look) string {
	return each(l, "1", `SELECT m.name FROM {schema}.sqlite_master AS m, pragma_table_info(m.name, {text}) AS c `+
		`WHERE m.type = 'table' AND lower(c.name) = '`+recognisedColumn+`'`)
}

func queriesSQLite(l *look) []query {
	if len(l.schemas) == 0 {
		return nil
	}
	words, _ := json.Marshal(append([]string{}, l.codeWords()...)) // texts always can be
	about := func(order, query string) string {
		return each(l, order, query, "{asked}", l.ids(l.queried()), "{of}", l.ids(l.guarded()),
			"{ledgers}", l.ids(l.ledgers), "{words}", l.db.Text(string(words)))
	}
	return []query{
		{"the columns", about("1, 13", sqliteColumns), hearColumn},
		{"the indexes", about("1, 2, 3, 6", sqliteKeys), hearKey},
		{"the foreign keys", about("2, 3, 4", sqliteCascades), readLink},
		{"the triggers", about("1, 2", sqliteCode), hearSQLiteCode},
		{"the ledger's triggers", about("1, 2", sqliteLedgerTriggers), hearTrigger},
		{"the ledger", about("1", sqliteLedger), hearLedger},
		{"the attached databases", "SELECT name, file FROM pragma_database_list WHERE file <> '' ORDER BY seq",
			hearSetting},
	}
}

// hearSQLiteCode adds a trigger, the only stored code of SQLite. The trigger's definition names its table.
func hearSQLiteCode(l *look, r []string) {
	body := r[3]
	if t := l.db.text(body); t.find("begin") >= 0 {
		body = body[t.toks[t.find("begin")].End:]
	}
	hearCode(l, []string{"trigger", l.quoteIfNeeded(r[1]), r[0] + "." + r[2], l.quoteIfNeeded(r[2]),
		body, r[1], "", ""})
}

// affinity is what SQLite makes of a declared type.
//
// Source: https://sqlite.org/datatype3.html#determination_of_column_affinity.
func affinity(declared string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(strings.ToUpper(declared), p) })
	}
	switch {
	case has("INT"):
		return "integer"
	case has("CHAR", "CLOB", "TEXT"):
		return "text"
	case has("BLOB") || declared == "":
		return "blob"
	case has("REAL", "FLOA", "DOUB"):
		return "real"
	}
	return "numeric"
}

// judgeSQLite judges the type of a column. The guard refuses a version or a claim that isn't stored as an integer.
func judgeSQLite(role string, c column) judgement {
	switch typ := affinity(c.typ); {
	case role == "fence" && (typ == "text" || typ == "blob" && c.shown != noType):
		return warning("tokens are stored as texts, which other programs compare as such; declare it as an " +
			"integer in a new table")
	case (role == "serial" || role == "claim") && (typ == "text" || typ == "real"):
		return defect("numbers aren't stored as integers, so that every write is refused")
	case role == "key" && (typ == "real" || typ == "numeric" && !strings.Contains(strings.ToUpper(c.shown), "UUID")):
		return warning("it may store a value in another way than the token's name has it; a key is " +
			"an integer or a text")
	case role == "time" && typ == "text":
		return defect("the time of a lock is an integer, of milliseconds since 1970")
	}
	return fine
}

func storageSQLite(_ *look, rel *relation) judgement {
	if rel.storage == "temporary" {
		return temporary
	}
	for _, action := range []string{"replace", "ignore", "rollback", "fail"} {
		if rel.definition.find("on", "conflict", action) >= 0 {
			return judgement{Warning, "has a constraint with ON CONFLICT " + strings.ToUpper(action) +
				": breaking it is " +
				"an error where a guard stands, and other programs lose rows by it",
				"Make a new table without it, and write ON CONFLICT in the statements that need it.", ""}
		}
	}
	return fine
}

// sessionSQLite looks for a file that is attached twice, because a table registered under one schema name isn't guarded
// under the second name. In SQLite, l.settings maps the name of each attached database to its file.
func sessionSQLite(l *look) {
	for i := range l.tables {
		t := &l.tables[i]
		mine := lex.Fold(t.Schema)
		for _, schema := range slices.Sorted(maps.Keys(l.settings)) {
			if file := l.settings[mine]; file != "" && file == l.settings[schema] && schema != mine {
				l.add(t, Finding{Level: Warning, Code: "other-name",
					Problem: "The file of table " + t.Registered + " is attached as " + l.quoteIfNeeded(schema) +
						", too: a write by that name carries no token.",
					Remedy: "Attach it once, or register the table without its schema."})
			}
		}
	}
}
