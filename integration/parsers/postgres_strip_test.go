package parsers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite"
)

// renumber: they are behind them.
func (postgres) renumber(any, int, []rewrite.Arg) {}

// unguard removes the guards from a guarded statement's tree. That one is
// missing at a write to a registered table, or stands elsewhere, is an error.
func (postgres) unguard(tree any, rules ruleSet, ledgers int) error {
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
	u := unguarder{rules: rules}
	u.walk(tree)
	if u.err == nil && strings.Contains(fmt.Sprint(tree), "sqlfence") {
		u.err = errors.New("a guard stands where no write is")
	}
	return u.err
}

// ledgersOf returns how many of the tables have a ledger.
func ledgersOf(tables []string, rules ruleSet) (n int) {
	slices.Sort(tables)
	for _, name := range slices.Compact(tables) {
		if t := rules.of(name); t != nil && t.Ledger {
			n++
		}
	}
	return n
}

// dropLedger removes the ledger's statements from the head of the WITH, and
// returns how many there were.
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
				if table.FenceColumn == "" && table.Key != "" {
					u.where(body, "whereClause")
				}
			case "DeleteStmt":
				if table.FenceColumn != "" || table.Key != "" {
					u.where(body, "whereClause")
				}
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

// last takes the last item off a list and returns it.
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

// where puts the user's condition, or none, into the guarded one's place.
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
	if hasMarker(get(outer, "defresult")) { // the check itself: the user has no condition
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

// conjuncts returns what a condition is the conjunction of.
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
	if table.FenceColumn != "" {
		if str(u.last(n, "cols"), "ResTarget", "name") != fenceColumn {
			u.fail("the columns have no guard")
		}
		query, _ := get(n, "selectStmt", "SelectStmt").(object)
		if rows := items(query, "valuesLists"); n["cols"] == nil && len(rows) == 1 && len(items(rows[0], "List", "items")) == 1 {
			u.value(items(rows[0], "List", "items")[0])
			delete(n, "selectStmt") // was DEFAULT VALUES
		} else {
			u.rows(query)
		}
	}
	if checks := items(n, "returningList"); table.Key != "" && len(checks) == 1 && hasMarker(get(checks[0], "ResTarget", "val", "CaseExpr")) {
		delete(n, "returningList") // for keys that don't show
	}
	if on, _ := n["onConflictClause"].(object); on["action"] == "ONCONFLICT_UPDATE" {
		u.set(on, table)
		if table.FenceColumn == "" && table.Key != "" {
			u.where(on, "whereClause")
		}
	}
}

// rows takes the mark off each row, in every arm of a query.
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
		for _, row := range items(query, "valuesLists") {
			if l, _ := get(row, "List").(object); l != nil {
				u.value(u.last(l, "items"))
			}
		}
	default:
		u.value(get(u.last(query, "targetList"), "ResTarget", "val"))
	}
}

// value checks that n is the token's value.
func (u *unguarder) value(n any) {
	isParam := get(n, "TypeCast", "arg", "ParamRef") != nil
	isLiteral := str(n, "A_Const", "fval", "fval") == fmt.Sprint(literalValue)
	if !isParam && !isLiteral {
		u.fail("a row has no guard")
	}
}

func (u *unguarder) arm(n object, table *rewrite.Table) {
	switch n["commandType"] {
	case "CMD_UPDATE":
		u.set(n, table)
		if table.FenceColumn == "" && table.Key != "" {
			u.where(n, "condition")
		}
	case "CMD_DELETE":
		if table.FenceColumn != "" || table.Key != "" {
			u.where(n, "condition")
		}
	case "CMD_INSERT":
		if table.FenceColumn != "" {
			if str(u.last(n, "targetList"), "ResTarget", "name") != fenceColumn {
				u.fail("the columns have no guard")
			}
			u.value(u.last(n, "values"))
		}
	}
}
