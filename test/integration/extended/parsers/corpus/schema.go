package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A table is a table's definition in a module's DDL.
type table struct {
	key    []string          // the columns of the primary key
	origin map[string]string // what gives a column a value where the statement doesn't; "" for nothing
}

// tables are a module's, by name.
type tables map[string]*table

var (
	creates = regexp.MustCompile(`(?i)create\s+(?:unlogged\s+)?table\s`)
	adds    = regexp.MustCompile(`(?i)alter\s+table\s+(?:only\s+)?(?:if\s+exists\s+)?(?:"?\w+"?\.)?"?(\w+)"?\s+add\s+(?:constraint\s+"?\w+"?\s+)?primary\s+key\s*\(([^)]*)\)`)
	own     = regexp.MustCompile(`(?i)alter\s+table\s+(?:only\s+)?(?:"?\w+"?\.)?"?(\w+)"?\s+alter\s+column\s+"?(\w+)"?\s+(?:set\s+default\s+nextval|add\s+generated)`)
)

// read adds the tables that a text creates, as parsed by one of the databases.
func (t tables) read(text string, o oracle) {
	for _, at := range creates.FindAllStringIndex(text, -1) {
		sql := statementAt(text[at[0]:])
		if sql == "" {
			continue
		}
		name, made := o.table(sql)
		if made == nil {
			name, made = o.table(strings.ReplaceAll(sql, "`", `"`))
		}
		if made != nil && (t[name] == nil || len(t[name].key) == 0) {
			t[name] = made
		}
	}
	for _, m := range adds.FindAllStringSubmatch(text, -1) {
		made := t.named(m[1])
		if len(made.key) > 0 {
			continue
		}
		for _, column := range strings.Split(m[2], ",") {
			made.key = append(made.key, strings.ToLower(strings.Trim(column, "\" \n\t")))
		}
	}
	for _, m := range own.FindAllStringSubmatch(text, -1) {
		t.named(m[1]).origin[strings.ToLower(m[2])] = "serial"
	}
}

func (t tables) named(name string) *table {
	name = strings.ToLower(name)
	if t[name] == nil {
		t[name] = &table{origin: map[string]string{}}
	}
	return t[name]
}

// statementAt returns the CREATE TABLE at the start of a text, until its bracket closes.
func statementAt(text string) string {
	depth := 0
	for i := 0; i < len(text); {
		n, kind := piece(text[i:])
		if kind == 0 {
			switch text[i] {
			case '(':
				depth++
			case ')':
				if depth--; depth == 0 {
					return text[:i+1]
				}
			case ';':
				return ""
			}
		}
		i += n
	}
	return ""
}

// keyOf returns the column that stands for a table's rows in Key: the primary key, or its
// first column, and how that is known.
func (t tables) keyOf(name string) (column, known string) {
	made := t[name]
	switch {
	case made == nil:
		return "id", "no DDL: id"
	case len(made.key) == 1:
		return made.key[0], "primary key"
	case len(made.key) > 1:
		return made.key[0], "first column of the primary key"
	}
	if _, has := made.origin["id"]; has {
		return "id", "no primary key: id"
	}
	return "", "no primary key and no id"
}

// defaultOf says how a column of a row gets its value if a statement doesn't name it.
func (t tables) defaultOf(name, column string) string {
	made := t[name]
	if made == nil {
		return "unknown (no DDL)"
	}
	origin, has := made.origin[column]
	switch {
	case !has && column != "":
		return "unknown (not in the DDL)"
	case origin == "":
		return "nothing (a trigger, or NULL)"
	case slices.Contains([]string{"serial", "identity", "rowid"}, origin), strings.HasPrefix(origin, "an integer"):
		return origin
	}
	return "default " + origin
}
