package parsers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite"
)

// renumber does nothing, because PostgreSQL's guards use numbers after the user's.
func (postgres) renumber(any, int, []rewrite.Arg) {}

// unguard removes the guards from a guarded statement's tree. It returns an error if a write to a registered table has
// no guard, or if a guard stands anywhere else.
func (postgres) unguard(tree any, rules ruleSet, ledgers int, late bool) error {
	stmts := tree.(list)
	for i := range stmts {
		stmt := stmts[i].(object)["stmt"]
		if query := get(stmt, "ExplainStmt", "query"); query != nil {
			stmt = query
		}
		if len(stmts) > 1 {
			ledgers = ledgersOf(postgres{}.writes(stmts[i:i+1]).rows, rules)
		}
		for _, body := range stmt.(object) {
			if n := dropLedger(body.(object)); n != ledgers {
				return fmt.Errorf("%d tables of the ledger, %d statements", ledgers, n)
			}
		}
	}
	u := unguarder{rules: rules, late: late}
	u.walk(tree)
	if u.err == nil && strings.Contains(fmt.Sprint(tree), "sqlfence") {
		u.err = errors.New("a guard stands where no write is")
	}
	return u.err
}

// ledgersOf returns how many of the tables are registered with Ledger.
func ledgersOf(tables []string, rules ruleSet) (n int) {
	slices.Sort(tables)
	for _, name := range slices.Compact(tables) {
		if t := rules.of(name); t != nil && t.Ledger {
			n++
		}
	}
	return n
}

// dropLedger removes the ledger's statements, which are first in the WITH clause, and returns their number.
func dropLedger(stmt object) int {
	with, _ := stmt["withClause"].(object)
	ctes := items(with, "ctes")
	n := 0
	for n < len(ctes) {
		cte := get(ctes[n], "CommonTableExpr")
		if !strings.HasPrefix(str(cte, "ctename"), "sqlfence_") ||
			str(cte, "ctequery", "UpdateStmt", "relation", "relname") != "fencing_tokens" {
			break
		}
		n++
	}
	if n == len(ctes) {
		delete(stmt, "withClause")
	} else {
		with["ctes"] = ctes[n:]
	}
	return n
}

type unguarder struct {
	rules ruleSet
	late  bool // the ledger's early check may be missing
	err   error
}

func (u *unguarder) fail(format string, args ...any) {
	if u.err == nil {
		u.err = fmt.Errorf(format, args...)
	}
}

func (u *unguarder) walk(n any) {
	switch n := n.(type) {
	case list:
		for _, v := range n {
			u.walk(v)
		}
	case object:
		for kind, v := range n {
			u.walk(v)
			body, _ := v.(object)
			table := u.rules.of(str(body, "relation", "relname"))
			if body == nil || table == nil {
				continue
			}
			switch kind {
			case "UpdateStmt":
				u.set(body, table)
				u.condition(body, "whereClause", table, table.FenceColumn == "" && table.Key != "")
			case "DeleteStmt":
				u.condition(body, "whereClause", table, table.FenceColumn != "" || table.Key != "")
			case "InsertStmt":
				u.insert(body, table)
			case "MergeStmt":
				for _, arm := range items(body, "mergeWhenClauses") {
					u.arm(get(arm, "MergeWhenClause").(object), table)
				}
			}
		}
	}
}

// last removes and returns the last item of a list.
func (u *unguarder) last(n object, key string) any {
	l := items(n, key)
	if len(l) == 0 {
		u.fail("%s has no guard", key)
		return nil
	}
	if len(l) == 1 {
		delete(n, key)
	} else {
		n[key] = l[:len(l)-1]
	}
	return l[len(l)-1]
}

func hasMarker(n any) bool { return strings.Contains(fmt.Sprint(n), "sqlfence:") }

func (u *unguarder) set(n object, table *rewrite.Table) {
	if table.FenceColumn == "" {
		return
	}
	item := get(u.last(n, "targetList"), "ResTarget")
	row := items(get(item, "val", "MultiAssignRef", "source", "RowExpr"), "args") // (column) = ROW(guard)
	if str(item, "name") != fenceColumn || len(row) != 1 || !hasMarker(get(row[0], "CaseExpr")) {
		u.fail("SET has no guard")
	}
}

// condition replaces a guarded condition with the user's condition, or removes it.
//
//	[early check] AND {check of the rows | (user)}
func (u *unguarder) condition(n object, key string, table *rewrite.Table, check bool) {
	if table.Ledger {
		args := list{n[key]}
		if str(n[key], "BoolExpr", "boolop") == "AND_EXPR" {
			args = items(n[key], "BoolExpr", "args")
		}
		switch asked := isQuestion(args[0]); {
		case !asked:
			u.unasked()
		case len(args) == 1:
			delete(n, key)
		case len(args) == 2:
			n[key] = args[1]
		case check: // also repeated terms of the user's condition
			n[key] = object{"BoolExpr": object{"boolop": "AND_EXPR", "args": args[1:]}}
		default:
			u.fail("the user's condition isn't in brackets")
		}
	}
	if check {
		u.where(n, key)
	}
}

// unasked fails, unless late is set, because a write has no early check of the ledger.
func (u *unguarder) unasked() {
	if !u.late {
		u.fail("the ledger isn't asked first")
	}
}

// isQuestion reports whether n is the condition that checks the ledger before the first row.
func isQuestion(n any) bool {
	return str(n, "NullTest", "nulltesttype") == "IS_NULL" && isNewer(get(n, "NullTest", "arg"))
}

// isNewer reports whether n is the query that throws an error if the ledger has a newer token:
//
//	(SELECT raise FROM fencing_tokens WHERE name = $1 AND NOT token <= $2)
func isNewer(n any) bool {
	query, _ := get(n, "SubLink", "subselect", "SelectStmt").(object)
	columns, from := items(query, "targetList"), items(query, "fromClause")
	where := items(query, "whereClause", "BoolExpr", "args")
	return str(n, "SubLink", "subLinkType") == "EXPR_SUBLINK" &&
		len(query) == 5 && query["op"] == "SETOP_NONE" && query["limitOption"] == "LIMIT_OPTION_DEFAULT" &&
		len(columns) == 1 && strings.Contains(fmt.Sprint(columns[0]), ":ledger:") &&
		len(from) == 1 && str(from[0], "RangeVar", "relname") == "fencing_tokens" &&
		str(query, "whereClause", "BoolExpr", "boolop") == "AND_EXPR" && len(where) == 2 &&
		str(where[0], "A_Expr", "kind") == "AEXPR_OP" &&
		str(where[1], "BoolExpr", "boolop") == "NOT_EXPR" && strings.Contains(fmt.Sprint(where[1]), "int8le")
}

// asking returns the value in a CASE whose condition is the ledger's early check, or nil.
func asking(n any) any {
	whens := items(n, "CaseExpr", "args")
	if len(whens) != 1 || get(n, "CaseExpr", "defresult") != nil || get(n, "CaseExpr", "arg") != nil ||
		!isQuestion(get(whens[0], "CaseWhen", "expr")) {
		return nil
	}
	return get(whens[0], "CaseWhen", "result")
}

// askedRows removes the ledger's early check from an INSERT. The check is the OFFSET of a query, the WHERE of the query
// that replaces a single bare row, or a CASE around a value of the first row. A check in the fence column's value
// stays.
func (u *unguarder) askedRows(n object) {
	query, _ := get(n, "selectStmt", "SelectStmt").(object)
	rows := items(query, "valuesLists")
	switch {
	case isNewer(query["limitOffset"]):
		delete(query, "limitOffset")
		if query["limitCount"] == nil {
			query["limitOption"] = "LIMIT_OPTION_DEFAULT"
		}
		return
	case isQuestion(query["whereClause"]) && query["fromClause"] == nil:
		var row list
		for _, column := range items(query, "targetList") {
			row = append(row, get(column, "ResTarget", "val"))
		}
		delete(query, "targetList")
		delete(query, "whereClause")
		query["valuesLists"] = list{object{"List": object{"items": row}}}
		return
	case len(rows) > 0:
		row := items(rows[0], "List", "items")
		for i := range row {
			if value := asking(row[i]); value != nil && !isMark(value) {
				row[i] = value
				return
			}
		}
	}
	if !anyAsks(query) {
		u.unasked()
	}
}

// anyAsks reports whether the fence column's value in any arm of a query has the ledger's early check.
func anyAsks(query object) bool {
	if query["op"] != "SETOP_NONE" && query != nil {
		left, _ := query["larg"].(object)
		right, _ := query["rarg"].(object)
		return anyAsks(left) || anyAsks(right)
	}
	rows := items(query, "valuesLists")
	if len(rows) == 0 {
		return false
	}
	row := items(rows[0], "List", "items")
	return len(row) > 0 && isMark(asking(row[len(row)-1]))
}

// where replaces a guarded condition with the user's condition, or removes it.
//
//	CASE WHEN (user) THEN check ELSE false END [AND (part of user)]...
func (u *unguarder) where(n object, key string) {
	cond, parts := n[key], list(nil)
	if get(cond, "BoolExpr", "boolop") == "AND_EXPR" {
		args := items(cond, "BoolExpr", "args")
		cond, parts = args[0], args[1:]
	}
	outer := get(cond, "CaseExpr")
	if !hasMarker(outer) {
		u.fail("%s has no guard", key)
		return
	}
	if hasMarker(get(outer, "defresult")) { // the check alone: the user's statement has no condition
		if delete(n, key); parts != nil {
			u.fail("%s: parts of no condition", key)
		}
		return
	}
	when := get(items(outer, "args")[0], "CaseWhen")
	n[key] = get(when, "expr")
	if !hasMarker(get(when, "result")) || !reflect.DeepEqual(get(outer, "defresult"), object{"A_Const": object{"boolval": object{}}}) {
		u.fail("%s: the guard isn't one", key)
	}
	for _, p := range parts {
		for _, q := range conjuncts(p) {
			if !slices.ContainsFunc(conjuncts(n[key]), func(own any) bool { return reflect.DeepEqual(own, q) }) {
				u.fail("%s: a part was added that is none: %v", key, q)
			}
		}
	}
}

// conjuncts returns the terms that a condition joins with AND.
func conjuncts(cond any) list {
	if str(cond, "BoolExpr", "boolop") != "AND_EXPR" {
		return list{cond}
	}
	var all list
	for _, arg := range items(cond, "BoolExpr", "args") {
		all = append(all, conjuncts(arg)...)
	}
	return all
}

func (u *unguarder) insert(n object, table *rewrite.Table) {
	if table.Ledger {
		u.askedRows(n)
	}
	if table.FenceColumn != "" {
		if str(u.last(n, "cols"), "ResTarget", "name") != fenceColumn {
			u.fail("the columns have no guard")
		}
		query, _ := get(n, "selectStmt", "SelectStmt").(object)
		if rows := items(query, "valuesLists"); n["cols"] == nil && len(rows) == 1 && len(items(rows[0], "List", "items")) == 1 {
			u.value(items(rows[0], "List", "items")[0])
			delete(n, "selectStmt") // the user's statement has DEFAULT VALUES
		} else {
			u.rows(query)
		}
	}
	if checks := items(n, "returningList"); table.Key != "" && len(checks) == 1 && hasMarker(get(checks[0], "ResTarget", "val", "CaseExpr")) {
		delete(n, "returningList") // checks keys that the statement doesn't show
	}
	if on, _ := n["onConflictClause"].(object); on["action"] == "ONCONFLICT_UPDATE" {
		u.set(on, table)
		if table.FenceColumn == "" && table.Key != "" {
			u.where(on, "whereClause")
		}
	}
}

// rows removes the fence column's value from each row, in every arm of a query.
func (u *unguarder) rows(query object) {
	switch {
	case query == nil:
		u.fail("no rows to guard")
	case query["op"] != "SETOP_NONE":
		left, _ := query["larg"].(object)
		right, _ := query["rarg"].(object)
		u.rows(left)
		u.rows(right)
	case query["valuesLists"] != nil:
		for i, row := range items(query, "valuesLists") {
			if l, _ := get(row, "List").(object); l != nil {
				u.mark(u.last(l, "items"), i == 0)
			}
		}
	default:
		u.mark(get(u.last(query, "targetList"), "ResTarget", "val"), true)
	}
}

// mark checks that n is the token's value. In the first row of an arm the ledger's early check may surround it.
func (u *unguarder) mark(n any, first bool) {
	if asked := asking(n); asked != nil && first {
		n = asked
	}
	u.value(n)
}

// value checks that n is the token's value.
func (u *unguarder) value(n any) {
	if !isMark(n) {
		u.fail("a row has no guard")
	}
}

// isMark reports whether n is the token's value.
func isMark(n any) bool {
	return get(n, "TypeCast", "arg", "ParamRef") != nil || str(n, "A_Const", "fval", "fval") == fmt.Sprint(literalValue)
}

func (u *unguarder) arm(n object, table *rewrite.Table) {
	switch n["commandType"] {
	case "CMD_UPDATE":
		u.set(n, table)
		u.condition(n, "condition", table, table.FenceColumn == "" && table.Key != "")
	case "CMD_DELETE":
		u.condition(n, "condition", table, table.FenceColumn != "" || table.Key != "")
	case "CMD_INSERT":
		u.condition(n, "condition", table, false)
		if table.FenceColumn != "" {
			if str(u.last(n, "targetList"), "ResTarget", "name") != fenceColumn {
				u.fail("the columns have no guard")
			}
			u.value(u.last(n, "values"))
		}
	}
}
