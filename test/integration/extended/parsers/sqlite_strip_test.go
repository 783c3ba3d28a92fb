package parsers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/sqlfence/sqlfence/rewrite"
)

func (*sqlite) renumber(tree any, inputs int, added []rewrite.Arg) {
	was := numbersBefore(inputs, added)
	eachParam(reflect.ValueOf(tree.(*reading).stmts), func(p *ast.BindParam) { p.Number = was[p.Number] })
}

// eachParam calls f for each unnamed placeholder of a tree.
func eachParam(v reflect.Value, f func(*ast.BindParam)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if p, ok := v.Interface().(*ast.BindParam); ok {
			if p.Kind <= ast.ParamNumber {
				f(p)
			}
			return
		}
		eachParam(v.Elem(), f)
	case reflect.Slice:
		for i := range v.Len() {
			eachParam(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachParam(v.Field(i), f)
		}
	}
}

func (*sqlite) unguard(tree any, rules ruleSet, _ int, late bool) error {
	stmts := tree.(*reading).stmts
	u := &sqliteUnguarder{late: late}
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.UpdateStmt:
			u.rules = rules.of(strings.ToLower(s.Table.Name.Name))
			u.abort(s.OrConflict)
			s.Set = u.set(s.Set)
			s.Where = u.where(s.Where, u.rules.FenceColumn == "" && u.rules.Key != "", u.rules.Ledger)
		case *ast.DeleteStmt:
			u.rules = rules.of(strings.ToLower(s.Table.Name.Name))
			s.Where = u.where(s.Where, u.rules.FenceColumn != "" || u.rules.Key != "", u.rules.Ledger)
		case *ast.InsertStmt:
			u.rules = rules.of(strings.ToLower(s.Table.Name.Name))
			if !s.Replace {
				u.abort(s.OrConflict)
			}
			u.insert(s)
		}
	}
	if u.err == nil && strings.Contains(dump(stmts), "sqlfence") {
		u.err = errors.New("a guard stands where no write is")
	}
	return u.err
}

type sqliteUnguarder struct {
	rules *rewrite.Table
	late  bool // the ledger's early check may be missing
	err   error
}

func (u *sqliteUnguarder) need(ok bool, what string) bool {
	if !ok && u.err == nil {
		u.err = errors.New(what)
	}
	return ok && u.err == nil
}

func marked(n ast.Node) bool { return strings.Contains(dump(n), "sqlfence:") }

// abort checks that the guarded statement has a conflict clause. Without one, the table's own clause could be ON
// CONFLICT REPLACE, which deletes rows.
func (u *sqliteUnguarder) abort(or ast.ConflictAction) {
	u.need(or != ast.ConflictDefault || u.rules.FenceColumn == "" && u.rules.Key == "", "a conflict may replace rows")
}

func (u *sqliteUnguarder) set(set []*ast.SetPair) []*ast.SetPair {
	if u.rules.FenceColumn == "" {
		return set
	}
	last := set[len(set)-1]
	_, isCase := last.Value.(*ast.CaseExpr)
	u.need(isCase && last.Columns[0].Name == fenceColumn && marked(last.Value), "SET has no guard")
	return set[:len(set)-1]
}

// where returns the user's condition, or nil.
//
//	[ledger AND] {CASE WHEN (user) THEN check ELSE 0 END [AND (part of user)]... | check | (user)}
func (u *sqliteUnguarder) where(cond ast.Expr, check, ledger bool) ast.Expr {
	if !check && !ledger {
		return cond
	}
	terms := andTerms(cond)
	if ledger {
		if !u.need(isLedger(terms[0]), "WHERE lacks the ledger") {
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
	last := len(terms) - 1
	user := u.unasked(u.bare(terms[last]))
	for _, key := range terms[:last] { // repeated comparisons of the key with a constant
		value := askedValue(key)
		if u.need(value != nil, "the user's condition isn't in brackets") {
			*value = sqliteAsking(*value)
			_, isConstant := (*value).(*ast.Literal)
			u.need(isConstant && isTerm(dump(key), user), "a part was added that is none")
		}
	}
	return user
}

// unasked removes the ledger's check from comparisons with a placeholder in the user's condition.
func (u *sqliteUnguarder) unasked(user ast.Expr) ast.Expr {
	for _, term := range andTerms(user) {
		if value := askedValue(term); value != nil {
			*value = sqliteAsking(*value)
			_, isParam := (*value).(*ast.BindParam)
			u.need(isParam, "the ledger is asked around what is no placeholder")
		}
	}
	return user
}

// askedValue returns a pointer to the right operand of a term "column = CASE WHEN ledger THEN value END", or nil.
func askedValue(term ast.Expr) *ast.Expr {
	b, ok := term.(*ast.BinaryExpr)
	if !ok || b.Op != ast.OpEq || marked(b.X) || sqliteAsking(b.Y) == nil {
		return nil
	}
	return &b.Y
}

// sqliteAsking returns the value in a CASE whose condition is the ledger's check, or nil.
func sqliteAsking(e ast.Expr) ast.Expr {
	c, ok := e.(*ast.CaseExpr)
	if !ok || c.Operand != nil || c.Else != nil || len(c.Whens) != 1 || !isLedger(c.Whens[0].When) {
		return nil
	}
	return c.Whens[0].Then
}

// isTerm reports whether the term is one of the terms that cond joins with AND.
func isTerm(term string, cond ast.Expr) bool {
	return slices.ContainsFunc(andTerms(cond), func(own ast.Expr) bool { return dump(own) == term })
}

// andTerms returns the terms that AND joins.
func andTerms(cond ast.Expr) []ast.Expr {
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op == ast.OpAnd {
		return append(andTerms(b.X), b.Y)
	}
	return []ast.Expr{cond}
}

// checked returns the user's condition within a guard, or nil.
func (u *sqliteUnguarder) checked(guard ast.Expr, parts []ast.Expr) ast.Expr {
	outer, ok := guard.(*ast.CaseExpr)
	if !u.need(ok && marked(guard), "WHERE has no guard") {
		return nil
	}
	if outer.Else != nil && marked(outer.Else) {
		u.need(len(parts) == 0, "parts of no condition")
		return nil
	}
	if !u.need(marked(outer.Whens[0].Then) && isZero(outer.Else), "the guard isn't one") {
		return nil
	}
	user := u.bare(outer.Whens[0].When)
	for _, p := range parts {
		u.need(isPart(dump(u.bare(p)), user), "a part was added that is none")
	}
	return user
}

func isLedger(e ast.Expr) bool {
	_, isSubquery := e.(*ast.SubqueryExpr)
	return isSubquery && marked(e)
}

func isZero(e ast.Expr) bool {
	return dump(e) == dump(&ast.Literal{Kind: ast.LitInteger, Value: "0"})
}

// isPart reports whether cond is part, or joins part with other conditions by AND.
func isPart(part string, cond ast.Expr) bool {
	if dump(cond) == part {
		return true
	}
	b, ok := cond.(*ast.BinaryExpr)
	return ok && b.Op == ast.OpAnd && (isPart(part, b.X) || isPart(part, b.Y))
}

// bare removes the guard's brackets.
func (u *sqliteUnguarder) bare(e ast.Expr) ast.Expr {
	p, ok := e.(*ast.ParenExpr)
	if !u.need(ok, "the user's condition isn't in brackets") {
		return nil
	}
	return p.X
}

func (u *sqliteUnguarder) insert(s *ast.InsertStmt) {
	if u.rules.Ledger {
		outer, ok := s.Select.Cores[0].(*ast.SelectQuery)
		if !u.need(ok && len(outer.From) == 1 && outer.From[0].Select != nil && u.where(outer.Where, false, true) == nil, "the rows lack the ledger") {
			return
		}
		s.Select = outer.From[0].Select
		u.tail(outer.Limit, s.Select.Cores[0])
	}
	defaults := len(s.Columns) == 1 && len(s.Select.Cores) == 1
	if defaults {
		v, isValues := s.Select.Cores[0].(*ast.ValuesClause)
		defaults = isValues && len(v.Rows) == 1 && len(v.Rows[0]) == 1 &&
			(s.Columns[0].Name == fenceColumn || s.Columns[0].Name == "_rowid_")
	}
	switch {
	case defaults:
		s.Columns, s.Select, s.DefaultValues = nil, nil, true
	case u.rules.FenceColumn != "":
		n := len(s.Columns) - 1
		if !u.need(n >= 0 && s.Columns[n].Name == fenceColumn, "the columns have no guard") {
			return
		}
		s.Columns = s.Columns[:n]
		replaces := s.Replace || s.OrConflict == ast.ConflictReplace
		for _, core := range s.Select.Cores {
			u.rows(core, replaces)
		}
	}
	for _, c := range s.Upserts {
		if !c.DoNothing {
			c.Set = u.set(c.Set)
			c.Where = u.where(c.Where, u.rules.FenceColumn == "" && u.rules.Key != "", false)
		}
	}
}

// tail checks that the LIMIT of the rows to insert has the ledger's early check. VALUES needs none.
//
//	LIMIT CASE WHEN ledger THEN -1 END
func (u *sqliteUnguarder) tail(limit *ast.Limit, first ast.SelectCore) {
	if limit == nil {
		_, isValues := first.(*ast.ValuesClause)
		u.need(isValues || u.late, "the ledger isn't asked first")
		return
	}
	none := &ast.UnaryExpr{Op: ast.OpMinus, X: &ast.Literal{Kind: ast.LitInteger, Value: "1"}}
	count := sqliteAsking(limit.Count)
	u.need(limit.Offset == nil && count != nil && dump(count) == dump(none), "the rows are limited")
}

// rows removes the fence column's value from each row. In a REPLACE this value also checks the rows to delete.
func (u *sqliteUnguarder) rows(core ast.SelectCore, replaces bool) {
	u.need(!replaces || u.isValues(core), "a query replaces rows")
	switch core := core.(type) {
	case *ast.ValuesClause:
		for i, row := range core.Rows {
			if last := row[len(row)-1]; replaces {
				u.replaced(last, i == 0)
			} else {
				u.value(last)
			}
			core.Rows[i] = row[:len(row)-1]
		}
	case *ast.SelectQuery:
		n := len(core.Columns) - 1
		u.value(core.Columns[n].Expr)
		core.Columns = core.Columns[:n]
	}
}

func (u *sqliteUnguarder) isValues(core ast.SelectCore) bool {
	_, ok := core.(*ast.ValuesClause)
	return ok
}

// replaced checks that e is the token's value inside a check of the rows to delete. In the first row, a comparison of
// the table's shape surrounds this check.
//
//	CASE WHEN shape = ?1 THEN CASE WHEN check THEN ?2 END ELSE raise END
func (u *sqliteUnguarder) replaced(e ast.Expr, first bool) {
	if first {
		shape, ok := e.(*ast.CaseExpr)
		ok = ok && shape.Operand == nil && len(shape.Whens) == 1 && marked(shape.Else) && !marked(shape.Whens[0].When) &&
			strings.Contains(dump(shape.Whens[0].When), "sqlite_schema")
		if !u.need(ok, "the shape isn't compared") {
			return
		}
		e = shape.Whens[0].Then
	}
	check, ok := e.(*ast.CaseExpr)
	if u.need(ok && check.Operand == nil && len(check.Whens) == 1 && check.Else == nil && marked(check.Whens[0].When),
		"what is deleted isn't checked") {
		u.value(check.Whens[0].Then)
	}
}

// value checks that e is the token's value.
func (u *sqliteUnguarder) value(e ast.Expr) {
	p, isParam := e.(*ast.BindParam)
	l, isLiteral := e.(*ast.Literal)
	u.need(isParam && p.Kind == ast.ParamNumber || isLiteral && l.Value == fmt.Sprint(literalValue), "a row has no guard")
}
