package main

import (
	"strings"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// sqlite is a parser made after SQLite's grammar.
type sqlite struct{}

func (sqlite) dialect() dialect.Dialect { return dialect.SQLite }

func (sqlite) parse(sql string) ([]ast.Stmt, bool) {
	stmts, err := parser.Options{}.ParseString(sql)
	return stmts, err == nil && len(stmts) > 0
}

func (sqlite) accept(sql string) string { return sql }

func (s sqlite) read(sql string) (r reading, ok bool) {
	stmts, ok := s.parse(sql)
	r.statements = len(stmts)
	for _, stmt := range stmts {
		switch stmt := stmt.(type) {
		case *ast.InsertStmt:
			r.writes = append(r.writes, s.insert(stmt))
		case *ast.UpdateStmt:
			r.writes = append(r.writes, write{verb: "UPDATE", table: lower(stmt.Table.Name)})
		case *ast.DeleteStmt:
			r.writes = append(r.writes, write{verb: "DELETE", table: lower(stmt.Table.Name)})
		case *ast.SelectStmt, *ast.BeginStmt, *ast.CommitStmt, *ast.RollbackStmt, *ast.SavepointStmt,
			*ast.ReleaseStmt, *ast.ExplainStmt, *ast.PragmaStmt:
		default:
			r.defines = true
		}
	}
	return r, ok
}

func lower(name *ast.Ident) string {
	if name == nil {
		return ""
	}
	return strings.ToLower(name.Name)
}

func (s sqlite) insert(stmt *ast.InsertStmt) write {
	w := write{verb: "INSERT", table: lower(stmt.Table.Name), rows: "SELECT"}
	if stmt.Replace || stmt.OrConflict == ast.ConflictReplace {
		w.verb = "REPLACE"
	}
	for _, c := range stmt.Columns {
		w.columns = append(w.columns, lower(c))
	}
	if stmt.DefaultValues || stmt.Select == nil {
		w.rows = "DEFAULT VALUES"
		return w
	}
	switch core := stmt.Select.Cores[0].(type) {
	case *ast.ValuesClause:
		w.rows = "VALUES"
		for _, e := range core.Rows[0] {
			w.items = append(w.items, s.kind(e))
		}
	case *ast.SelectQuery:
		for _, c := range core.Columns {
			w.items = append(w.items, s.kind(c.Expr))
		}
	}
	return w
}

// kind returns the kind of an expression, as far as the kind matters for finding the value.
func (s sqlite) kind(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BindParam:
		return "argument"
	case *ast.Literal:
		return "constant"
	case *ast.ParenExpr:
		return s.kind(e.X)
	case *ast.CastExpr:
		return "cast of " + s.kind(e.X)
	case *ast.FuncCall:
		return functionKind(lower(e.Name))
	case *ast.SubqueryExpr:
		return "subquery"
	case *ast.QualifiedRef, *ast.Ident:
		return "a column"
	}
	return "expression"
}

func (s sqlite) table(sql string) (string, *table) {
	stmts, ok := s.parse(sql)
	if !ok {
		return "", nil
	}
	create, ok := stmts[0].(*ast.CreateTableStmt)
	if !ok || len(create.Columns) == 0 {
		return "", nil
	}
	made := &table{origin: map[string]string{}}
	for _, c := range create.Columns {
		s.column(c, made)
	}
	for _, c := range create.Constraints {
		if c.Kind != ast.TablePrimaryKey {
			continue
		}
		for _, k := range c.Columns {
			if name, ok := k.Expr.(*ast.Ident); ok {
				made.key = append(made.key, lower(name))
			}
		}
	}
	s.rowid(create, made)
	return lower(create.Name.Name), made
}

func (s sqlite) column(c *ast.ColumnDef, made *table) {
	column := lower(c.Name)
	made.origin[column] = ""
	for _, con := range c.Constraints {
		switch con.Kind {
		case ast.ColumnPrimaryKey:
			made.key = append(made.key, column)
		case ast.ColumnDefault:
			made.origin[column] = s.kind(con.Expr)
		case ast.ColumnGenerated:
			made.origin[column] = "generated"
		}
	}
}

// rowid notes a key that is the row's number.
func (s sqlite) rowid(create *ast.CreateTableStmt, made *table) {
	if len(made.key) != 1 {
		return
	}
	for _, c := range create.Columns {
		if lower(c.Name) == made.key[0] && c.Type != nil && strings.EqualFold(c.Type.Name, "integer") {
			made.origin[made.key[0]] = "rowid"
		}
	}
}
