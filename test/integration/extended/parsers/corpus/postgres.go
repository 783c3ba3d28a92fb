package main

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	pg "github.com/wasilibs/go-pgquery"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// postgres is PostgreSQL's own parser.
type postgres struct{}

type (
	object = map[string]any
	list   = []any
)

func (postgres) dialect() dialect.Dialect { return dialect.Postgres }

// warm runs the first parser alone, because it writes the runtime's version, which all parsers read, without a lock.
var warm sync.Once

func (postgres) parse(sql string) (list, bool) {
	warm.Do(func() { _, _ = pg.ParseToJSON("SELECT 1") })
	out, err := pg.ParseToJSON(sql)
	if err != nil {
		return nil, false
	}
	var tree object
	if err := json.Unmarshal([]byte(out), &tree); err != nil {
		return nil, false
	}
	stmts := items(tree, "stmts")
	return stmts, len(stmts) > 0
}

// accept numbers the placeholders if that makes a valid text: @id is valid without, too,
// as an operator and a column.
func (p postgres) accept(sql string) string {
	changed := numbered(sql)
	if _, ok := p.parse(changed); ok {
		return changed
	}
	return sql
}

func (p postgres) read(sql string) (r reading, ok bool) {
	stmts, ok := p.parse(sql)
	r.statements = len(stmts)
	for _, s := range stmts {
		stmt, _ := get(s, "stmt").(object)
		for kind := range stmt {
			r.defines = r.defines || isDDL(kind)
		}
		p.collect(stmt, &r)
	}
	return r, ok
}

func isDDL(kind string) bool {
	for _, start := range []string{"Create", "Alter", "Drop", "Rename", "Index", "Comment", "Grant", "View", "Define"} {
		if strings.HasPrefix(kind, start) {
			return true
		}
	}
	return false
}

func (p postgres) collect(n any, r *reading) {
	switch n := n.(type) {
	case list:
		for _, v := range n {
			p.collect(v, r)
		}
	case object:
		for kind, v := range n {
			p.node(kind, v, r)
			p.collect(v, r)
		}
	}
}

func (p postgres) node(kind string, n any, r *reading) {
	name := str(n, "relation", "relname")
	switch kind {
	case "InsertStmt":
		r.writes = append(r.writes, p.insert(n, name))
	case "UpdateStmt", "DeleteStmt", "MergeStmt":
		r.writes = append(r.writes, write{verb: strings.ToUpper(strings.TrimSuffix(kind, "Stmt")), table: name})
	case "CopyStmt":
		if get(n, "is_from") == true {
			r.whole = append(r.whole, name)
		}
	case "TruncateStmt":
		for _, t := range items(n, "relations") {
			r.whole = append(r.whole, str(t, "RangeVar", "relname"))
		}
	}
}

func (p postgres) insert(n any, name string) write {
	w := write{verb: "INSERT", table: name, rows: "SELECT"}
	for _, c := range items(n, "cols") {
		w.columns = append(w.columns, str(c, "ResTarget", "name"))
	}
	query := get(n, "selectStmt", "SelectStmt")
	values := items(query, "valuesLists")
	switch {
	case query == nil:
		w.rows = "DEFAULT VALUES"
	case len(values) > 0:
		w.rows = "VALUES"
		for _, e := range items(values[0], "List", "items") {
			w.items = append(w.items, p.kind(e))
		}
	default:
		for _, t := range items(query, "targetList") {
			w.items = append(w.items, p.kind(get(t, "ResTarget", "val")))
		}
	}
	return w
}

// kind returns the kind of an expression, as far as the kind matters for finding the value.
func (p postgres) kind(e any) string {
	o, _ := e.(object)
	for kind, n := range o {
		switch kind {
		case "ParamRef":
			return "argument"
		case "A_Const":
			if get(n, "boolval") != nil {
				return "a boolean"
			}
			return "constant"
		case "SetToDefault":
			return "DEFAULT"
		case "ColumnRef":
			if fields := items(n, "fields"); len(fields) > 0 && get(fields[len(fields)-1], "A_Star") != nil {
				return "*"
			}
			return "a column"
		case "SubLink":
			return "subquery"
		case "TypeCast":
			return "cast of " + p.kind(get(n, "arg"))
		case "FuncCall":
			names := items(n, "funcname")
			if len(names) == 0 {
				return "function"
			}
			name := str(names[len(names)-1], "String", "sval")
			for _, arg := range items(n, "args") {
				if k := p.kind(arg); strings.Contains(k, "argument") && name == "unnest" {
					return "unnest of an argument"
				}
			}
			return functionKind(name)
		}
	}
	return "expression"
}

func (p postgres) table(sql string) (string, *table) {
	stmts, ok := p.parse(sql)
	if !ok {
		return "", nil
	}
	create := get(stmts[0], "stmt", "CreateStmt")
	name := str(create, "relation", "relname")
	if name == "" {
		return "", nil
	}
	made := &table{origin: map[string]string{}}
	for _, e := range items(create, "tableElts") {
		if def := get(e, "ColumnDef"); def != nil {
			p.column(def, made)
		}
		if c := get(e, "Constraint"); str(c, "contype") == "CONSTR_PRIMARY" {
			for _, k := range items(c, "keys") {
				made.key = append(made.key, str(k, "String", "sval"))
			}
		}
	}
	return name, made
}

func (p postgres) column(def any, made *table) {
	column := str(def, "colname")
	made.origin[column] = ""
	if strings.Contains(p.typeName(def), "serial") {
		made.origin[column] = "serial"
	}
	for _, c := range items(def, "constraints") {
		switch str(c, "Constraint", "contype") {
		case "CONSTR_PRIMARY":
			made.key = append(made.key, column)
			if strings.HasPrefix(p.typeName(def), "int") && made.origin[column] == "" {
				made.origin[column] = "an integer key, as SQLite's DDL says it"
			}
		case "CONSTR_IDENTITY":
			made.origin[column] = "identity"
		case "CONSTR_GENERATED":
			made.origin[column] = "generated"
		case "CONSTR_DEFAULT":
			made.origin[column] = p.kind(get(c, "Constraint", "raw_expr"))
		}
	}
	if made.origin[column] == "function nextval()" {
		made.origin[column] = "serial"
	}
}

func (postgres) typeName(def any) string {
	names := items(def, "typeName", "names")
	if len(names) == 0 {
		return ""
	}
	return str(names[len(names)-1], "String", "sval")
}

// get follows keys down, and returns nil where there is nothing.
func get(n any, keys ...string) any {
	for _, k := range keys {
		o, _ := n.(object)
		n = o[k]
	}
	return n
}

func items(n any, keys ...string) list {
	l, _ := get(n, keys...).(list)
	return slices.Clip(l)
}

func str(n any, keys ...string) string {
	s, _ := get(n, keys...).(string)
	return s
}
