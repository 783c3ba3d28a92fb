package parsers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	pg "github.com/wasilibs/go-pgquery"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// postgres parses statements with PostgreSQL's own parser. A tree is the parser's JSON as encoding/json decodes it.
type postgres struct{}

type (
	object = map[string]any
	list   = []any
)

func (postgres) dialect() dialect.Dialect { return dialect.Postgres }

func (postgres) parse(text string) (any, error) {
	out, err := pg.ParseToJSON(text)
	if err != nil {
		return nil, err
	}
	var tree object
	if err := json.Unmarshal([]byte(out), &tree); err != nil {
		return nil, err
	}
	return withoutPlaces(tree["stmts"]), nil
}

// withoutPlaces removes the nodes' positions in the SQL.
func withoutPlaces(n any) any {
	switch n := n.(type) {
	case object:
		for k, v := range n {
			switch k {
			case "location", "stmt_location", "stmt_len", "list_start", "list_end", "rexpr_list_start", "rexpr_list_end":
				delete(n, k)
			default:
				withoutPlaces(v)
			}
		}
	case list:
		for _, v := range n {
			withoutPlaces(v)
		}
	}
	return n
}

// get returns the value under a path of keys, or nil if a key is missing.
func get(n any, keys ...string) any {
	for _, k := range keys {
		o, _ := n.(object)
		n = o[k]
	}
	return n
}

func items(n any, keys ...string) list {
	l, _ := get(n, keys...).(list)
	return l
}

func str(n any, keys ...string) string {
	s, _ := get(n, keys...).(string)
	return s
}

func (postgres) writes(tree any) writes {
	var w writes
	w.collect(tree)
	w.nested = w.all > 1 || w.all == 1 && !w.outermost(tree)
	return w
}

// outermost reports whether an outermost statement is a write.
func (w *writes) outermost(tree any) bool {
	for _, s := range tree.(list) {
		stmt := get(s, "stmt")
		if query := get(stmt, "ExplainStmt", "query"); query != nil {
			stmt = query
		}
		for kind := range stmt.(object) {
			if slices.Contains([]string{"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"}, kind) {
				return true
			}
		}
	}
	return false
}

func (w *writes) collect(n any) {
	switch n := n.(type) {
	case list:
		for _, v := range n {
			w.collect(v)
		}
	case object:
		for kind, v := range n {
			if w.node(kind, v) {
				w.collect(v)
			}
		}
	}
}

// node records a node's writes, and reports whether the nodes below may also write.
func (w *writes) node(kind string, n any) bool {
	switch kind {
	case "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt":
		w.all++
		w.row(str(n, "relation", "relname"))
	case "CopyStmt":
		if get(n, "is_from") == true {
			w.whole(str(n, "relation", "relname"))
		}
	case "TruncateStmt":
		for _, r := range items(n, "relations") {
			w.whole(str(r, "RangeVar", "relname"))
		}
	case "DropStmt":
		if t := str(n, "removeType"); t != "OBJECT_TABLE" && t != "OBJECT_FOREIGN_TABLE" {
			return true
		}
		for _, o := range items(n, "objects") {
			if parts := items(o, "List", "items"); len(parts) > 0 {
				w.whole(str(parts[len(parts)-1], "String", "sval"))
			}
		}
	case "AlterTableStmt":
		w.whole(str(n, "relation", "relname"))
	case "RenameStmt":
		if t := str(n, "renameType"); t == "OBJECT_TABLE" || t == "OBJECT_COLUMN" {
			w.whole(str(n, "relation", "relname"))
		}
	case "ExplainStmt":
		runs, asked := analyzes(n)
		w.idle = w.idle || asked && !runs
		return runs
	case "PrepareStmt", "RuleStmt", "CreateFunctionStmt":
		return false // the statement inside runs later or never
	}
	return true
}

// analyzes reports whether EXPLAIN executes its statement, and whether an ANALYZE option is present. The last such
// option decides.
func analyzes(explain any) (on, asked bool) {
	for _, o := range items(explain, "options") {
		if str(o, "DefElem", "defname") != "analyze" {
			continue
		}
		arg := get(o, "DefElem", "arg")
		off := slices.Contains([]string{"false", "off"}, str(arg, "String", "sval")) ||
			arg != nil && get(arg, "Integer") != nil && get(arg, "Integer", "ival") == nil
		on, asked = !off, true
	}
	return on, asked
}

func (postgres) difference(a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return firstDifference("", a, b)
}

func firstDifference(path string, a, b any) string {
	switch x := a.(type) {
	case object:
		y, _ := b.(object)
		for k := range x {
			if !reflect.DeepEqual(x[k], y[k]) {
				return firstDifference(path+"/"+k, x[k], y[k])
			}
		}
	case list:
		y, _ := b.(list)
		for i := range x {
			if i < len(y) && !reflect.DeepEqual(x[i], y[i]) {
				return firstDifference(fmt.Sprint(path, "/", i), x[i], y[i])
			}
		}
	}
	return fmt.Sprintf("%s: %.100v, %.100v", path, fmt.Sprint(a), fmt.Sprint(b))
}
