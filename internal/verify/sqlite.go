package verify

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// SQLite is SQLite, with the databases that the connection has attached as its schemas.
var SQLite Database = sqlite{sqltext.SQLite}

type sqlite struct{ sqltext.Dialect }

func (d sqlite) placed(schema, text string) string { return sqltext.Place(d.Dialect, schema, text) }

// same folds ASCII letters, as SQLite does.
func (sqlite) same(name string) string { return foldASCII(name) }

func (sqlite) word(s string) string { return unquoted(s) }

func (sqlite) keepsLedgers() bool             { return true }
func (sqlite) cascadesFire() bool             { return true }
func (sqlite) writesJoined() bool             { return false }
func (sqlite) setsDefaults() bool             { return false }
func (sqlite) length(s string) int            { return utf8.RuneCountInString(s) }
func (sqlite) lockTypes() (user, time string) { return "text", "integer" }

func (sqlite) alter(_, _, _ string) string { return "" }

func (sqlite) isRowNumber(rel *relation, column string) bool {
	return slices.Contains([]string{"rowid", "oid", "_rowid_"}, foldASCII(column)) && !withoutRowid.MatchString(rel.definition)
}

var withoutRowid = regexp.MustCompile(`(?is)\bwithout\s+rowid\b`)

// schemas returns the session's databases, those first in which a name without a schema is looked
// for first.
func (d sqlite) schemas(l *look) ([]string, error) {
	rows, err := l.rows("the attached databases", `SELECT name FROM pragma_database_list ORDER BY CASE name WHEN 'temp' THEN -1 ELSE seq END`)
	return first(rows), err
}

// eachSchema asks every database; query writes the question to one, by its name as a constant and
// as a name.
func (d sqlite) eachSchema(l *look, about, order string, query func(text, name string) string) ([][]string, error) {
	schemas, err := d.schemas(l)
	if err != nil || len(schemas) == 0 {
		return nil, err
	}
	parts := make([]string, len(schemas))
	for i, s := range schemas {
		parts[i] = query(d.Text(s), d.Quote(s))
	}
	return l.rows(about, strings.Join(parts, "\nUNION ALL ")+" ORDER BY "+order)
}

func (d sqlite) relations(l *look, names []string) ([]*relation, error) {
	schemas, err := d.schemas(l)
	if err != nil {
		return nil, err
	}
	rows, err := d.eachSchema(l, "the tables", "1, 2", func(text, name string) string {
		return `SELECT ` + text + `, name, type, sql FROM ` + name + `.sqlite_master WHERE type IN ('table', 'view') AND lower(name) IN (` + texts(d, names) + `)`
	})
	var found []*relation
	for _, s := range schemas {
		for _, r := range rows {
			if r[0] != s {
				continue
			}
			hides := func(other *relation) bool { return d.same(other.name) == d.same(r[1]) }
			rel := &relation{id: r[0] + "." + r[1], schema: r[0], name: r[1], kind: r[2], definition: r[3], visible: !slices.ContainsFunc(found, hides),
				writes: true, deletes: true, owned: true}
			switch {
			case virtual.MatchString(rel.definition):
				rel.kind = "virtual table"
			case s == "temp":
				rel.storage = "temporary"
			}
			found = append(found, rel)
		}
	}
	return found, err
}

var virtual = regexp.MustCompile(`(?i)^\s*create\s+virtual\b`)

// named is a condition for the relations, by the schema and the name of their table.
func (d sqlite) named(of []*relation, schema string) string {
	return schema + " || '.' || m.name IN (" + texts(d, ids(of)) + ")"
}

// Hidden are generated columns, 2 and 3, and those of virtual tables, 1.
func (d sqlite) columns(l *look, of []*relation) (map[string][]column, error) {
	rows, err := d.eachSchema(l, "the columns", "1, 7", func(text, name string) string {
		return `SELECT ` + text + ` || '.' || m.name, c.name, c.type, c."notnull", c.dflt_value, c.hidden, c.cid
FROM ` + name + `.sqlite_master AS m, pragma_table_xinfo(m.name, ` + text + `) AS c WHERE m.type IN ('table', 'view') AND ` + d.named(of, text)
	})
	found := make(map[string][]column)
	for _, r := range rows {
		found[r[0]] = append(found[r[0]], column{name: r[1], typ: affinity(r[2]), shown: cmp.Or(r[2], noType), nullable: r[3] == "0", fallback: r[4],
			generated: r[5] == "2" || r[5] == "3", computed: r[5] == "2" || r[5] == "3", reads: true, inserts: true, updates: true})
	}
	return found, err
}

// noType is shown where a column is declared without one.
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

func (d sqlite) similar(l *look) ([]string, error) {
	rows, err := d.eachSchema(l, "the tables", "1", func(_, name string) string {
		return `SELECT name FROM ` + name + `.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	})
	return first(rows), err
}

func (sqlite) mark(c column) judgement {
	if c.typ == "text" || c.typ == "blob" && c.shown != noType {
		return warning("tokens are stored as texts, which other programs compare as such; declare it as an integer in a new table")
	}
	return fine
}

// serial: the guard refuses a version that isn't stored as an integer.
func (sqlite) serial(c column) judgement {
	if c.typ == "text" || c.typ == "real" {
		return fault("versions aren't stored as integers, so that every write is refused")
	}
	return fine
}

func (sqlite) key(c column) judgement {
	if c.typ == "real" || c.typ == "numeric" && !strings.Contains(strings.ToUpper(c.shown), "UUID") {
		return warning("it may store a value in another way than the token's name has it; a key is an integer or a text")
	}
	return fine
}

func (sqlite) lock(c column, time bool) judgement {
	if time && c.typ == "text" {
		return fault("the time of a lock is an integer, of milliseconds since 1970")
	}
	return fine
}

func (sqlite) storage(l *look, rel *relation) judgement {
	if rel.storage == "temporary" {
		return judgement{Warning, "is a temporary one of this session: others have another table by the name", "Register it with its schema, or name the temporary table otherwise.", ""}
	}
	if match := declaresConflict.FindStringSubmatch(noTexts(rel.definition)); match != nil {
		return judgement{Warning, "has a constraint with ON CONFLICT " + strings.ToUpper(match[1]) + ": breaking it is an error where a guard stands, and other programs lose rows by it",
			"Make a new table without it, and write ON CONFLICT in the statements that need it.", ""}
	}
	return fine
}

var (
	declaresConflict = regexp.MustCompile(`(?is)\bon\s+conflict\s+(replace|ignore|rollback|fail)\b`)
	quotedTexts      = regexp.MustCompile("'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\\[[^\\]]*\\]")
)

// noTexts returns a definition without comments, constants and quoted names.
func noTexts(sql string) string {
	return comments.ReplaceAllString(quotedTexts.ReplaceAllString(sql, "x"), " ")
}

func (d sqlite) links(l *look, of []*relation) ([]link, error) {
	rows, err := d.eachSchema(l, "the foreign keys", "1, 3, 4", func(text, name string) string {
		return `SELECT DISTINCT ` + text + ` || '.' || m.name, ` + text + `, f."table",
	CASE WHEN f.on_update IN ('NO ACTION', 'RESTRICT') THEN '' ELSE ' ON UPDATE ' || f.on_update END || CASE WHEN f.on_delete IN ('NO ACTION', 'RESTRICT') THEN '' ELSE ' ON DELETE ' || f.on_delete END AS actions
FROM ` + name + `.sqlite_master AS m, pragma_foreign_key_list(m.name, ` + text + `) AS f
WHERE m.type = 'table' AND actions <> '' AND ` + d.named(of, text)
	})
	var links []link
	for _, r := range rows {
		links = append(links, link{"cascade", r[0], r[1], r[2], strings.TrimSpace(r[3])})
	}
	return links, err
}

// code: SQLite has triggers only. The head of one names its table.
func (d sqlite) code(l *look, words []string) ([]code, error) {
	some := "EXISTS (SELECT 1 FROM json_each(" + d.Text(list(words)) + ") AS w WHERE instr(lower(sql), w.value) > 0)"
	rows, err := d.eachSchema(l, "the triggers", "1, 2", func(text, name string) string {
		return `SELECT ` + text + `, name, tbl_name, sql FROM ` + name + `.sqlite_master WHERE type = 'trigger' AND ` + some
	})
	var found []code
	for _, r := range rows {
		at := beginning.FindStringIndex(r[3])
		if at == nil {
			continue
		}
		found = append(found, code{kind: "trigger", name: quoteIfNeeded(d, r[1]), bare: r[1], fires: []string{r[0] + "." + r[2]}, on: quoteIfNeeded(d, r[2]), body: r[3][at[1]:]})
	}
	return found, err
}

var beginning = regexp.MustCompile(`(?i)\bbegin\b`)

// settings are the files of the session's databases.
func (sqlite) settings(l *look) (map[string]string, error) {
	rows, err := l.rows("the attached databases", "SELECT name, file FROM pragma_database_list WHERE file <> '' ORDER BY seq")
	return pairs(rows), err
}

// checkSession looks for a file that is attached twice: a table that is registered with its
// schema isn't guarded by its other name.
func (sqlite) checkSession(l *look, files map[string]string) {
	for i := range l.tables {
		t := &l.tables[i]
		for _, schema := range slices.Sorted(maps.Keys(files)) {
			if file := files[foldASCII(t.Schema)]; file == files[schema] && schema != foldASCII(t.Schema) && file != "" {
				l.add(t, Finding{Severity: Warning, Code: "attached-twice",
					Problem: "The file of table " + t.Registered + " is attached as " + quoteIfNeeded(SQLite, schema) + ", too: a write by that name carries no token.",
					Remedy:  "Attach it once, or register the table without its schema."})
			}
		}
	}
}

func (sqlite) writers(*look, []*relation) (map[string][]string, error) { return nil, nil }

// seals: no table can be sealed.
func (sqlite) seals(*look, []target) (map[string]seals, error) { return nil, nil }

func (sqlite) unsealers(*look, []*relation) (map[string][]string, string, error) { return nil, "", nil }

func (sqlite) otherFunction(*look, *relation) (string, error) { return "", nil }

func (d sqlite) unkept(l *look, ledger *relation) (string, error) {
	rows, err := l.rows("the ledger's triggers", "SELECT name, sql FROM "+d.Quote(ledger.schema)+".sqlite_master WHERE type = 'trigger' AND tbl_name = "+d.Text(ledger.name)+" COLLATE NOCASE")
	if err != nil {
		return "", err
	}
	triggers := d.LedgerTriggers()
	if withoutRowid.MatchString(ledger.definition) {
		triggers = sqltext.WithoutRowID(triggers)
	}
	return wrongTriggers(triggers, rows), nil
}

// unfit: the ledger's guard takes the highest of several rows of a name, but Issue needs to find one.
func (d sqlite) unfit(l *look, ledger *relation) (string, error) {
	if ledger.kind != "table" {
		return "it is a " + ledger.kind, nil
	}
	schema, name := d.Text(ledger.schema), d.Text(ledger.name)
	rows, err := l.rows("the ledger", `SELECT '' FROM pragma_table_info(`+name+`, `+schema+`) GROUP BY 1 HAVING sum(pk > 0) = 1 AND sum(pk > 0 AND lower(name) = 'name') = 1
UNION ALL SELECT c.coll FROM pragma_index_list(`+name+`, `+schema+`) AS i, pragma_index_xinfo(i.name, `+schema+`) AS c WHERE i."unique" AND NOT i.partial
	AND c."key" AND lower(c.name) = 'name' AND (SELECT count(*) FROM pragma_index_info(i.name, `+schema+`)) = 1`)
	collations := first(rows)
	switch {
	case err != nil:
		return "", err
	case len(rows) == 0:
		return "its column name is not unique", nil
	case slices.ContainsFunc(collations, func(c string) bool { return c != "" && !strings.EqualFold(c, "BINARY") }):
		return "names in it that aren't the same count as equal", nil
	}
	return "", nil
}
