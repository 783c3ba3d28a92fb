package verify

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// SQLite is SQLite, with the databases that the connection has attached as its schemas.
var SQLite = Database{
	Dialect: lite.Text, catalogue: sqlite{}, rules: lite.Lex,
	same:   lex.Fold,
	length: utf8.RuneCountInString,
	user:   "text", time: "integer",
	rowNumbers: []string{"rowid", "oid", "_rowid_"},
	ownLedgers: true,
}

type sqlite struct{}

func (sqlite) alter(_, _, _ string) string { return "" }

// each writes a question to every database that is attached, by its name as a constant and as a
// name. What else is to be filled in comes in pairs.
func (sqlite) each(l *look, order, query string, fill ...string) string {
	parts := make([]string, len(l.schemas))
	for i, s := range l.schemas {
		parts[i] = strings.NewReplacer(append([]string{"{text}", l.db.Text(s), "{schema}", l.db.Quote(s)}, fill...)...).Replace(query)
	}
	return strings.Join(parts, "\nUNION ALL ") + " ORDER BY " + order
}

// relations: the first of the databases is the one in which a name without a schema is looked for
// first.
func (d sqlite) relations(l *look, names []string) (found []*relation, err error) {
	attached, err := l.rows("the attached databases", `SELECT name FROM pragma_database_list ORDER BY CASE name WHEN 'temp' THEN -1 ELSE seq END`)
	l.schemas = slices.Concat(attached...)
	if err != nil || len(l.schemas) == 0 {
		return nil, err
	}
	rows, err := l.rows("the tables", d.each(l, "1, 2", `SELECT {text}, name, type, sql FROM {schema}.sqlite_master WHERE type IN ('table', 'view') AND lower(name) IN ({names})`, "{names}", l.db.texts(names)))
	for _, s := range l.schemas {
		for _, r := range rows {
			if r[0] != s {
				continue
			}
			hides := func(other *relation) bool { return l.db.same(other.name) == l.db.same(r[1]) }
			rel := &relation{id: r[0] + "." + r[1], schema: r[0], name: r[1], kind: r[2], definition: l.db.text(r[3]), visible: !slices.ContainsFunc(found, hides), deletes: true}
			switch {
			case rel.definition.is(1, "virtual"):
				rel.kind = "virtual table"
			case s == "temp":
				rel.storage = "temporary"
			}
			found = append(found, rel)
		}
	}
	return found, err
}

func (d sqlite) tableNames(l *look) string {
	return d.each(l, "1", `SELECT name FROM {schema}.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
}

func (d sqlite) questions(l *look) []question {
	if len(l.schemas) == 0 {
		return nil
	}
	words, _ := json.Marshal(append([]string{}, l.codeWords()...)) // texts always can be
	about := func(order, query string) string {
		return d.each(l, order, query, "{asked}", l.ids(l.asked()), "{of}", l.ids(l.guarded()), "{ledgers}", l.ids(l.ledgers), "{words}", l.db.Text(string(words)))
	}
	return []question{
		{"the columns", about("1, 13", sqliteColumns), hearColumn},
		{"the indexes", about("1, 2, 3, 6", sqliteKeys), hearKey},
		{"the foreign keys", about("2, 3, 4", sqliteCascades), hearLink},
		{"the triggers", about("1, 2", sqliteCode), hearSQLiteCode},
		{"the ledger's triggers", about("1, 2", sqliteLedgerTriggers), hearTrigger},
		{"the ledger", about("1", sqliteLedger), func(l *look, r []string) { l.relation(r[0]).unfit = r[1] }},
		{"the attached databases", "SELECT name, file FROM pragma_database_list WHERE file <> '' ORDER BY seq", hearSetting},
	}
}

// Hidden are generated columns, 2 and 3, and those of virtual tables, 1.
const sqliteColumns = `SELECT {text} || '.' || m.name, c.name, c.type, CASE c.type WHEN '' THEN '` + noType + `' ELSE c.type END, c."notnull" = 0, c.dflt_value,
	CASE WHEN c.hidden > 1 THEN 'computed' ELSE '' END, 0, 1, 1, 1, 0, c.cid
FROM {schema}.sqlite_master AS m, pragma_table_xinfo(m.name, {text}) AS c WHERE m.type IN ('table', 'view') AND {text} || '.' || m.name IN ({asked})`

// An index that a constraint has made has no text.
const sqliteKeys = `SELECT {text} || '.' || m.name, CASE WHEN i.origin = 'pk' THEN 'primary key' WHEN i."unique" THEN 'unique index' ELSE 'index' END AS kind, CASE WHEN i.origin = 'pk' THEN '' ELSE i.name END, x.name,
	COALESCE((SELECT substr(s.sql, instr(s.sql, '(')) FROM {schema}.sqlite_master AS s WHERE s.type = 'index' AND s.name = i.name), ''), x.seqno
FROM {schema}.sqlite_master AS m, pragma_index_list(m.name, {text}) AS i, pragma_index_xinfo(i.name, {text}) AS x WHERE m.type = 'table' AND x."key" AND {text} || '.' || m.name IN ({of})
UNION ALL SELECT {text} || '.' || m.name, 'primary key', '', c.name, '', c.pk FROM {schema}.sqlite_master AS m, pragma_table_info(m.name, {text}) AS c
WHERE m.type = 'table' AND c.pk AND NOT EXISTS (SELECT 1 FROM pragma_index_list(m.name, {text}) AS i WHERE i.origin = 'pk') AND {text} || '.' || m.name IN ({of})
UNION ALL SELECT {text} || '.' || m.name, 'foreign key', 'to ' || f."table", f."from", '', f.seq FROM {schema}.sqlite_master AS m, pragma_foreign_key_list(m.name, {text}) AS f
WHERE m.type = 'table' AND {text} || '.' || m.name IN ({of})`

const sqliteCascades = `SELECT DISTINCT 'cascade', {text} || '.' || m.name, {text}, f."table",
	CASE WHEN f.on_update IN ('NO ACTION', 'RESTRICT') THEN '' ELSE ' ON UPDATE ' || f.on_update END || CASE WHEN f.on_delete IN ('NO ACTION', 'RESTRICT') THEN '' ELSE ' ON DELETE ' || f.on_delete END AS actions
FROM {schema}.sqlite_master AS m, pragma_foreign_key_list(m.name, {text}) AS f
WHERE m.type = 'table' AND actions <> '' AND {text} || '.' || m.name IN ({of})`

const sqliteCode = `SELECT {text}, name, tbl_name, sql FROM {schema}.sqlite_master
WHERE type = 'trigger' AND EXISTS (SELECT 1 FROM json_each({words}) AS w WHERE instr(lower(sql), w.value) > 0)`

const sqliteLedgerTriggers = `SELECT {text} || '.' || tbl_name, name, sql FROM {schema}.sqlite_master WHERE type = 'trigger' AND {text} || '.' || tbl_name IN ({ledgers})`

// The collations of the keys that are the ledger's name alone: of the primary key, and of unique
// indexes.
const sqliteNameKeys = `SELECT '' AS coll FROM pragma_table_info(m.name, {text}) GROUP BY 1 HAVING sum(pk > 0) = 1 AND sum(pk > 0 AND lower(name) = 'name') = 1
	UNION ALL SELECT c.coll FROM pragma_index_list(m.name, {text}) AS i, pragma_index_xinfo(i.name, {text}) AS c
	WHERE i."unique" AND NOT i.partial AND c."key" AND lower(c.name) = 'name' AND (SELECT count(*) FROM pragma_index_info(i.name, {text})) = 1`

// The ledger's guard takes the highest of several rows of a name, but Issue needs to find one.
const sqliteLedger = `SELECT {text} || '.' || m.name, CASE WHEN m.type <> 'table' THEN 'it is a ' || m.type
	WHEN NOT EXISTS (` + sqliteNameKeys + `) THEN 'its column name is not unique'
	WHEN EXISTS (SELECT 1 FROM (` + sqliteNameKeys + `) AS k WHERE k.coll <> '' AND upper(k.coll) <> 'BINARY') THEN 'names in it that aren''t the same count as equal' ELSE '' END
FROM {schema}.sqlite_master AS m WHERE m.type IN ('table', 'view') AND {text} || '.' || m.name IN ({ledgers})`

// hearSQLiteCode: SQLite has triggers only. The head of one names its table.
func hearSQLiteCode(l *look, r []string) {
	body := r[3]
	if t := l.db.text(body); t.find("begin") >= 0 {
		body = body[t.toks[t.find("begin")].End:]
	}
	hearCode(l, []string{"trigger", l.quoteIfNeeded(r[1]), r[0] + "." + r[2], l.quoteIfNeeded(r[2]), body, r[1], "", ""})
}

// noType is the type of a column that was declared without one.
const noType = "(none)"

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

// judge: the guard refuses a version, or a generation, that isn't stored as an integer.
func (sqlite) judge(role string, c column) judgement {
	switch typ := affinity(c.typ); {
	case role == "fence" && (typ == "text" || typ == "blob" && c.shown != noType):
		return warning("tokens are stored as texts, which other programs compare as such; declare it as an integer in a " +
			"new table")
	case (role == "serial" || role == "claim") && (typ == "text" || typ == "real"):
		return fault("numbers aren't stored as integers, so that every write is refused")
	case role == "key" && (typ == "real" || typ == "numeric" && !strings.Contains(strings.ToUpper(c.shown), "UUID")):
		return warning("it may store a value in another way than the token's name has it; a key is an integer or a text")
	case role == "time" && typ == "text":
		return fault("the time of a lock is an integer, of milliseconds since 1970")
	}
	return fine
}

func (sqlite) storage(_ *look, rel *relation) judgement {
	if rel.storage == "temporary" {
		return temporary
	}
	for _, action := range []string{"replace", "ignore", "rollback", "fail"} {
		if rel.definition.find("on", "conflict", action) >= 0 {
			return judgement{Warning, "has a constraint with ON CONFLICT " + strings.ToUpper(action) + ": breaking it is " +
				"an error where a guard stands, and other programs lose rows by it",
				"Make a new table without it, and write ON CONFLICT in the statements that need it.", ""}
		}
	}
	return fine
}

// session looks for a file that is attached twice: a table that is registered with its
// schema isn't guarded by its other name. The settings are the files of the session's databases.
func (sqlite) session(l *look) {
	for i := range l.tables {
		t := &l.tables[i]
		mine := lex.Fold(t.Schema)
		for _, schema := range slices.Sorted(maps.Keys(l.settings)) {
			if file := l.settings[mine]; file != "" && file == l.settings[schema] && schema != mine {
				l.add(t, Finding{Severity: Warning, Code: "other-name",
					Problem: "The file of table " + t.Registered + " is attached as " + l.quoteIfNeeded(schema) + ", too: a write by that name carries no token.",
					Remedy:  "Attach it once, or register the table without its schema."})
			}
		}
	}
}

// seal: no table can be sealed.
func (sqlite) seal(*look, target) (s seals, has bool) { return s, false }

func (sqlite) pastSeals() string { return "" }
