package parsers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/opcode"

	"github.com/sqlfence/sqlfence/rewrite"
)

// numbersBefore maps the number of each placeholder in a guarded statement to its number in the user's statement. The
// guard's placeholders get the numbers after the user's.
func numbersBefore(inputs int, added []rewrite.Arg) []int {
	was := make([]int, inputs+len(added)+1)
	for i, a := range added {
		was[a.Number] = inputs + i + 1
		if a.Again > 0 {
			was[a.Number] = a.Again
		}
	}
	own := 0
	for n := 1; n < len(was); n++ {
		if was[n] == 0 {
			own++
			was[n] = own
		}
	}
	return was
}

func (db *mysql) unguard(tree any, rules ruleSet, _ int, _ bool) error {
	stmts := tree.([]ast.StmtNode)
	u := &mysqlUnguarder{}
	for _, s := range stmts {
		if e, ok := s.(*ast.ExplainStmt); ok {
			s = e.Stmt
		}
		rows := db.writes([]ast.StmtNode{s}).rows
		if len(rows) == 0 {
			continue
		}
		u.rules = rules.of(rows[0])
		switch s := s.(type) {
		case *ast.UpdateStmt:
			s.List = u.set(s.List)
			s.Where = u.where(s.Where, false, u.rules.Ledger)
		case *ast.DeleteStmt:
			u.joins = joinConditions(s.TableRefs.TableRefs)
			s.Where = u.where(s.Where, u.rules.FenceColumn != "" || u.rules.Key != "", u.rules.Ledger)
		case *ast.InsertStmt:
			u.insert(s)
		}
	}
	if u.err == nil && strings.Contains(show(stmts...), "sqlfence") {
		u.err = errors.New("a guard stands where no write is")
	}
	return u.err
}

type mysqlUnguarder struct {
	rules *rewrite.Table
	joins []string // the conditions of a DELETE's joins
	err   error
}

// joinConditions returns the join conditions of a statement's tables.
func joinConditions(n ast.ResultSetNode) (all []string) {
	if j, ok := n.(*ast.Join); ok {
		if j.On != nil {
			all = append(all, show(j.On.Expr))
			for _, term := range conjunction(j.On.Expr) { // a guard may repeat single terms
				all = append(all, show(term))
			}
		}
		all = append(all, joinConditions(j.Left)...)
		if j.Right != nil {
			all = append(all, joinConditions(j.Right)...)
		}
	}
	return all
}

func (u *mysqlUnguarder) need(ok bool, what string) bool {
	if !ok && u.err == nil {
		u.err = errors.New(what)
	}
	return ok && u.err == nil
}

func (u *mysqlUnguarder) checksRow() bool { return u.rules.FenceColumn != "" || u.rules.Key != "" }

func isMarked(n ast.Node) bool { return strings.Contains(show(n), "sqlfence:") }

// set removes the row's check, which is the first assignment, and the fence column's assignment, which is the last.
//
//	c = CASE WHEN check THEN c END, ..., fence_token = GREATEST(fence_token, token)
func (u *mysqlUnguarder) set(list []*ast.Assignment) []*ast.Assignment {
	if u.checksRow() {
		if !u.need(isSteady(list[0]), "SET has no check") {
			return list
		}
		list = list[1:]
	}
	if u.rules.FenceColumn != "" {
		last := list[len(list)-1]
		u.need(last.Column.Name.L == fenceColumn && u.isToken(last.Expr), "SET has no mark")
		list = list[:len(list)-1]
	}
	if last := list[len(list)-1]; u.rules.Key != "" && isSteady(last) { // the guard of an assigned key
		list = list[:len(list)-1]
	}
	return list
}

// isSteady reports whether a column is assigned its own value if a check passes.
func isSteady(a *ast.Assignment) bool {
	check, ok := a.Expr.(*ast.CaseExpr)
	return ok && isMarked(check.WhenClauses[0].Expr) && check.ElseClause == nil && show(check.WhenClauses[0].Result) == show(a.Column)
}

// where returns the user's condition, or nil.
//
//	[ledger AND] {CASE WHEN (user) THEN check ELSE FALSE END [AND (part of user)]... | check | (user)}
func (u *mysqlUnguarder) where(cond ast.ExprNode, check, ledger bool) ast.ExprNode {
	if !check && !ledger {
		return cond
	}
	terms := conjunction(cond)
	if ledger {
		if !u.need(isMySQLLedger(terms[0]), "WHERE lacks the ledger") {
			return nil
		}
		terms = terms[1:]
	}
	switch {
	case check && u.need(len(terms) > 0, "WHERE has no guard"):
		return u.checked(terms[0], terms[1:])
	case len(terms) == 0:
		return nil
	}
	u.need(len(terms) == 1, "the user's condition isn't in brackets")
	return u.bare(terms[0])
}

// conjunction returns the terms that AND joins.
func conjunction(cond ast.ExprNode) []ast.ExprNode {
	if b, ok := cond.(*ast.BinaryOperationExpr); ok && b.Op == opcode.LogicAnd {
		return append(conjunction(b.L), conjunction(b.R)...)
	}
	return []ast.ExprNode{cond}
}

// checked returns the user's condition within a guard, or nil.
func (u *mysqlUnguarder) checked(guard ast.ExprNode, parts []ast.ExprNode) ast.ExprNode {
	outer, ok := guard.(*ast.CaseExpr)
	if !u.need(ok && isMarked(guard) && outer.ElseClause != nil, "WHERE has no guard") {
		return nil
	}
	if isMarked(outer.ElseClause) { // the check alone: the user's statement has no condition
		u.need(len(parts) == 0, "parts of no condition")
		return nil
	}
	if !u.need(isMarked(outer.WhenClauses[0].Result) && show(outer.ElseClause) == "FALSE; ", "the guard isn't one") {
		return nil
	}
	user := u.condition(outer.WhenClauses[0].Expr)
	u.need(user != nil || len(parts) == 0, "parts of no condition")
	for _, p := range parts {
		for _, part := range conjunction(u.bare(p)) {
			u.need(slices.ContainsFunc(conjunction(user), func(own ast.ExprNode) bool { return show(own) == show(part) }), "a part was added that is none")
		}
	}
	return user
}

// condition returns the user's condition, or nil. In a DELETE of joined tables the guard moves the condition and the
// join conditions into a subquery, in which each table's columns can be named.
//
//	(user) | EXISTS (SELECT 1 FROM DUAL WHERE {(user) | TRUE} [AND (join)]...)
func (u *mysqlUnguarder) condition(e ast.ExprNode) (user ast.ExprNode) {
	exists, ok := e.(*ast.ExistsSubqueryExpr)
	if !ok {
		return u.bare(e)
	}
	terms := conjunction(exists.Sel.(*ast.SubqueryExpr).Query.(*ast.SelectStmt).Where)
	if show(terms[0]) != "TRUE; " {
		user = u.bare(terms[0])
	}
	for _, term := range terms[1:] {
		u.need(slices.Contains(u.joins, show(u.bare(term))), "a join's condition was added that is none")
	}
	return user
}

func isMySQLLedger(e ast.Node) bool {
	_, isSubquery := e.(*ast.SubqueryExpr)
	return isSubquery && isMarked(e)
}

// bare removes the guard's brackets.
func (u *mysqlUnguarder) bare(e ast.ExprNode) ast.ExprNode {
	p, ok := e.(*ast.ParenthesesExpr)
	if !u.need(ok, "the user's condition isn't in brackets") {
		return e
	}
	return p.Expr
}

// insert removes the checks of the ledger and of the key, which surround values, and the fence column's value of each
// row.
func (u *mysqlUnguarder) insert(s *ast.InsertStmt) {
	asked := 0
	upsert := s.OnDuplicate
	s.OnDuplicate = nil
	s.Accept(visitor(func(n ast.Node) ast.Node {
		c, ok := n.(*ast.CaseExpr)
		if ok && c.ElseClause == nil && c.Value == nil && isMarked(c.WhenClauses[0].Expr) {
			if isMySQLLedger(conjunction(c.WhenClauses[0].Expr)[0]) {
				asked++
			}
			return c.WhenClauses[0].Result
		}
		return n
	}))
	if s.Select != nil && u.rules.Ledger && asked == 0 {
		u.asks(s.Select)
		asked++
	}
	u.need((asked > 0) == u.rules.Ledger, fmt.Sprintf("the ledger is asked %d times", asked))
	if len(upsert) > 0 {
		s.OnDuplicate = u.set(upsert)
	}
	if u.rules.FenceColumn == "" {
		return
	}
	n := len(s.Columns) - 1
	if !u.need(n >= 0 && s.Columns[n].Name.L == fenceColumn, "the columns have no mark") {
		return
	}
	s.Columns = s.Columns[:n]
	if s.ColumnAliases != nil && u.need(len(s.ColumnAliases) == n+1, "the mark has no alias") {
		s.ColumnAliases = s.ColumnAliases[:n]
	}
	for i, row := range s.Lists {
		if u.need(len(row) > 0 && u.isToken(row[len(row)-1]), "a row has no mark") {
			s.Lists[i] = row[:len(row)-1]
		}
	}
	if s.Select != nil {
		u.query(s.Select)
	}
}

// asks removes the ledger's check from the WHERE or HAVING of each SELECT.
func (u *mysqlUnguarder) asks(n ast.Node) {
	switch n := n.(type) {
	case *ast.SetOprStmt:
		for _, arm := range n.SelectList.Selects {
			u.asks(arm)
		}
	case *ast.SetOprSelectList:
		for _, arm := range n.Selects {
			u.asks(arm)
		}
	case *ast.SelectStmt:
		if n.Having == nil || !isMySQLLedger(conjunction(n.Having.Expr)[0]) {
			u.need(n.Where != nil, "a SELECT doesn't ask the ledger")
			n.Where = u.where(n.Where, false, true)
		} else if rest := u.where(n.Having.Expr, false, true); rest != nil {
			n.Having.Expr = rest
		} else {
			n.Having = nil
		}
	default:
		u.need(false, fmt.Sprintf("rows of %T that don't ask the ledger", n))
	}
}

// query removes the fence column's value from each SELECT of a UNION and the like.
func (u *mysqlUnguarder) query(n ast.Node) {
	switch n := n.(type) {
	case *ast.SetOprStmt:
		for _, arm := range n.SelectList.Selects {
			u.query(arm)
		}
	case *ast.SetOprSelectList:
		for _, arm := range n.Selects {
			u.query(arm)
		}
	case *ast.SubqueryExpr:
		u.query(n.Query)
	case *ast.SelectStmt:
		for _, row := range n.Lists {
			u.need(u.isToken(row.Values[len(row.Values)-1]), "a row has no mark")
			row.Values = row.Values[:len(row.Values)-1]
		}
		if n.Fields == nil || n.Lists != nil {
			return
		}
		last := len(n.Fields.Fields) - 1
		u.need(n.Fields.Fields[last].Expr != nil && u.isToken(n.Fields.Fields[last].Expr), "a row has no mark")
		n.Fields.Fields = n.Fields.Fields[:last]
	default:
		u.need(false, fmt.Sprintf("rows of %T", n))
	}
}

// isToken reports whether e contains the token's value, as an argument or a constant.
func (u *mysqlUnguarder) isToken(e ast.Node) bool {
	s := show(e)
	return strings.Contains(s, placeholderText) || strings.Contains(s, fmt.Sprint(literalValue))
}
