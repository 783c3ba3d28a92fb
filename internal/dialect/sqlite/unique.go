package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// unique reads the definitions of a table and its indexes from sqlite_schema, and their meaning from pragmas. No other
// connection can change a definition between lock and the end of the transaction. Names are compared as SQLite does.
var unique = &session.Unique{
	Shape: shape, Detail: func(schema, table string) string {
		return "json_array(" + shape(schema, table) + " || '', " + kinds(schema, table) + " || '', " +
			keyColumns(schema, table) + " || '')"
	},
	Read: readUnique, Lock: lock, DefaultSchema: "main", SearchedFirst: "temp",
}

// lock returns a PRAGMA that takes the file's write lock. It writes at most what a COMMIT would write with auto_vacuum,
// and doesn't change the result of changes().
func lock(schema string) string { return "PRAGMA " + Text.Quote(schema) + ".incremental_vacuum(1)" }

func shape(schema, table string) string {
	rows := " WHERE tbl_name = " + table + " COLLATE NOCASE"
	return "(SELECT json_group_array(sql) FROM (SELECT sql FROM temp.sqlite_schema" + rows +
		" UNION ALL SELECT sql FROM " + Text.Quote(schema) + ".sqlite_schema" + rows + "))"
}

// kinds returns the types of the tables that the name may mean, each after its schema.
func kinds(schema, table string) string {
	return "(SELECT json_group_array(schema || ' ' || type) FROM pragma_table_list(" + table + ") " +
		"WHERE schema IN ('temp', " + Text.Text(schema) + "))"
}

// keyColumns returns the columns of the unique keys, each with the number of its key; an INTEGER PRIMARY KEY, which has
// no index, has the number -1. A column is odd if the schema temp has an object of the index's name, which
// pragma_index_xinfo may find instead of the index.
func keyColumns(schema, table string) string {
	of := ", " + Text.Text(schema) + ")"
	indexes, columns := "pragma_index_list("+table+of+" AS i", "pragma_table_xinfo("+table+of+" AS c"
	return `(SELECT json_group_array(json_array(seq, name, coll, type, "notnull", dflt, odd)) FROM (` +
		`SELECT i.seq, x.name, x.coll, c.type, c."notnull", c.dflt_value AS dflt, i.partial OR c.name IS NULL OR ` +
		`c.hidden OR EXISTS (SELECT 1 FROM temp.sqlite_schema AS t WHERE t.name = i.name COLLATE NOCASE) AS odd FROM ` +
		indexes + " JOIN pragma_index_xinfo(i.name" + of + " AS x LEFT JOIN " + columns + " ON c.cid = x.cid " +
		`WHERE i."unique" AND x."key" UNION ALL SELECT -1, c.name, '', c.type, 0, NULL, 0 FROM ` + columns +
		" WHERE c.pk AND NOT EXISTS (SELECT 1 FROM " + indexes + " WHERE i.origin = 'pk')))"
}

func readUnique(detail string) (*session.UniqueKeys, error) {
	var parts [3]string
	var definitions []*string
	var kinds []string
	var columns []keyColumn
	err := json.Unmarshal([]byte(detail), &parts)
	err = errors.Join(err, json.Unmarshal([]byte(parts[0]), &definitions))
	err = errors.Join(err, json.Unmarshal([]byte(parts[1]), &kinds), json.Unmarshal([]byte(parts[2]), &columns))
	if err != nil {
		return nil, fmt.Errorf("unique keys can't be read: %w", err)
	}
	u := &session.UniqueKeys{Shape: parts[0]}
	if len(kinds) != 1 || !strings.HasSuffix(kinds[0], " table") || strings.HasPrefix(kinds[0], "temp ") {
		u.Unusable = fmt.Sprintf("the name stands for %q, and not for one table of a file", kinds)
	}
	writes := func(text *string) bool { return text != nil && writing.MatchString(*text) && !own.MatchString(*text) }
	if u.Unusable == "" && slices.ContainsFunc(definitions, writes) {
		u.Unusable = "it has a trigger, and what that writes would replace rows, too"
	}
	for i := range columns {
		c := &columns[i]
		if slices.ContainsFunc(columns, func(other keyColumn) bool { return other.key < 0 && other.Name == c.Name }) {
			c.Default = "" // the number is chosen
		}
		if i == 0 || c.key != columns[i-1].key {
			u.Keys = append(u.Keys, nil)
		}
		last := len(u.Keys) - 1
		u.Keys[last] = append(u.Keys[last], c.KeyColumn)
		if u.Unusable == "" {
			u.Unusable = c.unusable()
		}
	}
	return u, nil
}

// writing matches triggers that write: SQLite applies the conflict clause of the application's statement to the writes
// of its triggers and of nested triggers. own matches sqlfence's triggers, which are allowed to write.
//
// Source: https://sqlite.org/lang_createtrigger.html.
var (
	writing = regexp.MustCompile(`(?is)^CREATE\s+TRIGGER\b.*\bbegin\b.*\b(insert|update|delete|replace)\b`)
	own     = regexp.MustCompile(`(?i)^CREATE\s+TRIGGER\s+"?sqlfence_`)
)

// A keyColumn is a row of keyColumns.
type keyColumn struct {
	session.KeyColumn
	key    int
	kind   string // the column's declared type
	hidden bool   // the entry of the index isn't a plain column
}

func (c *keyColumn) UnmarshalJSON(text []byte) error {
	var name, collation, kind, fallback *string
	var notNull, hidden int
	err := json.Unmarshal(text, &[]any{&c.key, &name, &collation, &kind, &notNull, &fallback, &hidden})
	given := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	c.Name, c.Collation, c.kind, c.Default = given(name), given(collation), given(kind), given(fallback)
	if strings.EqualFold(c.Default, "NULL") {
		c.Default = ""
	}
	c.NotNull, c.hidden = notNull != 0, hidden != 0
	return err
}

// unusable returns why the column can't find a conflicting row; empty if it can.
func (c *keyColumn) unusable() string {
	switch {
	case c.hidden || c.Name == "":
		return "it has a unique index that is partial, or has an expression or a generated column"
	case isReal(c.kind):
		return fmt.Sprintf("the unique column %q of the type %s may store another number than it is given", c.Name,
			c.kind)
	case c.Default != "" && !literal.MatchString(c.Default):
		return fmt.Sprintf("the unique column %q has the default %s", c.Name, c.Default)
	}
	return ""
}

// literal is a default that is the same for each row.
var literal = regexp.MustCompile(`^([+-]?[0-9.]+|'([^']|'')*')$`)

// isReal reports whether a column of a declared type stores integers as floating-point numbers, which may round them.
// SQLite ignores the case of ASCII letters alone.
//
// Source: https://sqlite.org/datatype3.html, 3.1.
func isReal(declared string) bool {
	declared = lex.Fold(declared)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(declared, w) })
	}
	return has("real", "floa", "doub") && !has("int", "char", "clob", "text", "blob")
}
