package parsers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/format"
	"github.com/sqlc-dev/marino/parser"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/rewrite"
)

// mysql parses statements with a parser of MySQL's grammar that also accepts some of MariaDB's and TiDB's syntax. A
// mysql isn't safe for concurrent use.
type mysql struct{ parser *parser.Parser }

func newMySQL(testing.TB) *mysql { return &mysql{parser.New()} }

func (*mysql) dialect() dialect.Dialect { return dialect.MySQL }

// askingHaving finds a HAVING with the ledger's check. The parser doesn't accept HAVING without FROM or after FROM
// DUAL.
const askingHaving = "HAVING (SELECT newest"

func (db *mysql) parse(text string) (tree any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser panics: %v", r)
		}
	}()
	stmts, _, err := db.parser.Parse(text, "utf8mb4", "")
	if err != nil && strings.Contains(text, askingHaving) {
		return nil, fmt.Errorf("%w: %w", errLimit, err)
	}
	if err != nil {
		return nil, err
	}
	if len(stmts) == 0 {
		return nil, errors.New("empty")
	}
	var offsets []int
	for _, s := range stmts {
		if err := misread(s); err != nil {
			return nil, err
		}
		s.Accept(visitor(func(n ast.Node) ast.Node {
			if p, ok := n.(*ast.ParamMarkerExprBase); ok {
				offsets = append(offsets, p.Offset)
			}
			return n
		}))
	}
	slices.Sort(offsets)
	for _, s := range stmts {
		s.Accept(visitor(func(n ast.Node) ast.Node {
			if p, ok := n.(*ast.ParamMarkerExprBase); ok {
				return placeholder(slices.Index(offsets, p.Offset) + 1)
			}
			return n
		}))
	}
	return stmts, nil
}

// misread returns an error for a statement that the parser reads differently from the servers.
func misread(s ast.StmtNode) error {
	switch s := s.(type) {
	case *ast.InsertStmt: // servers refuse a row whose number of values differs from the number of columns
		misfits := func(row []ast.ExprNode) bool { return len(s.Columns) > 0 && len(row) != len(s.Columns) }
		rows := s.Lists
		if q, ok := s.Select.(*ast.SelectStmt); ok {
			for _, row := range q.Lists {
				rows = append(rows, row.Values)
			}
		}
		if slices.ContainsFunc(rows, misfits) {
			return errors.New("a row doesn't fit the columns")
		}
	case *ast.DeleteStmt: // servers accept a modifier any number of times, in any order
		if s.Tables != nil && slices.ContainsFunc(s.Tables.Tables, func(n *ast.TableName) bool { return n.Name.L == "quick" || n.Name.L == "low_priority" }) {
			return errors.New("a modifier is taken for a table")
		}
	}
	return nil
}

// A visitor replaces each node of a tree with its result for the node.
type visitor func(ast.Node) ast.Node

func (v visitor) Enter(n ast.Node) (ast.Node, bool) { return n, false }
func (v visitor) Leave(n ast.Node) (ast.Node, bool) { return v(n), true }

// placeholderText and a number replace each placeholder of a tree.
const placeholderText = "placeholder number "

func placeholder(number int) ast.Node {
	return ast.NewValueExpr(fmt.Sprint(placeholderText, number), "", "").(ast.Node)
}

// placeholderNumber returns a placeholder's number, or 0 for any other node.
func placeholderNumber(n ast.Node) (number int) {
	if v, ok := n.(*ast.ValueExprBase); ok {
		_, _ = fmt.Sscanf(v.GetString(), placeholderText+"%d", &number)
	}
	return number
}

func (*mysql) renumber(tree any, inputs int, added []rewrite.Arg) {
	was := numbersBefore(inputs, added)
	for _, s := range tree.([]ast.StmtNode) {
		s.Accept(visitor(func(n ast.Node) ast.Node {
			if number := placeholderNumber(n); number > 0 {
				return placeholder(was[number])
			}
			return n
		}))
	}
}

func (db *mysql) writes(tree any) (w writes) {
	for _, s := range tree.([]ast.StmtNode) {
		db.write(&w, s)
	}
	return w
}

func (db *mysql) write(w *writes, s ast.StmtNode) {
	switch s := s.(type) {
	case *ast.UpdateStmt:
		tables := tablesOf(s.TableRefs.TableRefs)
		for _, t := range tables {
			if slices.ContainsFunc(s.List, func(a *ast.Assignment) bool { return t.isAssigned(a.Column, tables) }) {
				w.all++
				w.row(t.name)
			}
		}
	case *ast.DeleteStmt:
		tables := tablesOf(s.TableRefs.TableRefs)
		for _, t := range tables {
			if s.Tables == nil || slices.ContainsFunc(s.Tables.Tables, func(n *ast.TableName) bool { return t.isCalled(n.Schema.L, n.Name.L) }) {
				w.all++
				w.row(t.name)
			}
		}
	case *ast.InsertStmt:
		w.all++
		w.row(tablesOf(s.Table.TableRefs)[0].name)
	case *ast.LoadDataStmt:
		w.all++
		w.whole(s.Table.Name.L)
	case *ast.ExplainStmt:
		if s.Analyze {
			db.write(w, s.Stmt)
		} else if slices.ContainsFunc(db.writes([]ast.StmtNode{s.Stmt}).rows, func(string) bool { return true }) {
			w.idle = true
		}
	case *ast.DropTableStmt:
		for _, t := range s.Tables {
			w.whole(t.Name.L)
		}
	case *ast.TruncateTableStmt:
		w.whole(s.Table.Name.L)
	case *ast.AlterTableStmt:
		w.whole(s.Table.Name.L)
	case *ast.RenameTableStmt:
		for _, t := range s.TableToTables {
			w.whole(t.OldTable.Name.L)
			w.whole(t.NewTable.Name.L)
		}
	}
}

// A mysqlTable is a table that a statement names.
type mysqlTable struct{ schema, name, alias string }

func (t mysqlTable) isCalled(schema, name string) bool {
	if t.alias != "" {
		return t.alias == name && schema == ""
	}
	return t.name == name && (schema == "" || t.schema == "" || schema == t.schema)
}

// isAssigned reports whether the assigned column may be this table's. An unqualified column may be a column of any
// table in all.
func (t mysqlTable) isAssigned(c *ast.ColumnName, all []mysqlTable) bool {
	if c.Table.L == "" {
		return true
	}
	return t.isCalled(c.Schema.L, c.Table.L) ||
		!slices.ContainsFunc(all, func(t mysqlTable) bool { return t.isCalled(c.Schema.L, c.Table.L) })
}

// tablesOf returns the tables of a FROM clause, a join or a list, without the tables of subqueries.
func tablesOf(n ast.ResultSetNode) []mysqlTable {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return nil
		}
		if n.Right == nil {
			return tablesOf(n.Left)
		}
		return append(tablesOf(n.Left), tablesOf(n.Right)...)
	case *ast.TableSource:
		if t, ok := n.Source.(*ast.TableName); ok {
			return []mysqlTable{{t.Schema.L, t.Name.L, n.AsName.L}}
		}
		return tablesOf(n.Source)
	case *ast.TableName:
		return []mysqlTable{{n.Schema.L, n.Name.L, ""}}
	}
	return nil
}

func (*mysql) difference(a, b any) string {
	noColumns := strings.NewReplacer(" () VALUES ()", " VALUES ()") // both mean the same
	before, after := noColumns.Replace(show(a.([]ast.StmtNode)...)), noColumns.Replace(show(b.([]ast.StmtNode)...))
	if before == after {
		return ""
	}
	return fmt.Sprintf("%q, %q", before, after)
}

// show formats trees in one uniform spelling.
func show[N ast.Node](nodes ...N) string {
	var b strings.Builder
	for _, n := range nodes {
		if err := n.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
			return err.Error()
		}
		b.WriteString("; ")
	}
	return b.String()
}
