package statements_test

import (
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func (k *keywords) maybe(percent int) bool { return k.r.IntN(100) < percent }

func (k *keywords) word(words []string) string { return words[k.r.IntN(len(words))] }

func (k *keywords) one(forms ...func() string) string { return forms[k.r.IntN(len(forms))]() }

// cased writes some words in upper case.
func (k *keywords) cased(s string) string {
	if k.maybe(30) {
		return strings.ToUpper(s)
	}
	return s
}

func (k *keywords) column() string { return k.cased(k.word(k.used)) }

func (k *keywords) arg() string {
	k.args = append(k.args, k.r.IntN(4))
	placeholder := harness.Write{Query: fmt.Sprintf("$%d", len(k.args))}.As(k.Dialect).Query
	if placeholder != "?" {
		placeholder += "::int"
	}
	return placeholder
}

// number writes an integer expression of columns, each with the prefix of.
func (k *keywords) number(of string, depth int) string {
	if depth == 0 || k.maybe(35) {
		return k.one(func() string { return of + k.column() }, func() string { return of + k.column() },
			func() string { return fmt.Sprint(k.r.IntN(4)) }, k.arg)
	}
	n := func() string { return k.number(of, depth-1) }
	c := func() string { return k.condition(of, depth-1) }
	forms := []func() string{
		func() string { return n() + k.word([]string{" + ", " - ", "*"}) + n() },
		func() string { return "CASE WHEN " + c() + " THEN " + n() + " ELSE " + n() + " END" },
		func() string { return "case when " + c() + " then " + n() + " when " + c() + " then " + n() + " end" },
		func() string { return "CASE " + n() + " WHEN " + n() + " THEN " + n() + " ELSE " + n() + " END" },
		func() string { return "coalesce(" + n() + ", " + n() + ")" },
		func() string { return "abs(" + n() + ")" },
		func() string { return "(" + n() + ")" },
		func() string { return "-" + of + k.column() },
		func() string { return "CAST(" + n() + " AS integer)" },
		func() string { return "(SELECT " + n() + " AS " + k.word(k.labels) + ")" },
	}
	if k.readsTarget {
		forms = append(forms, func() string { return "(SELECT max(" + k.column() + ") FROM books AS " + k.word(k.aliases) + ")" })
	}
	return k.one(forms...)
}

// condition writes an expression that is true or false.
func (k *keywords) condition(of string, depth int) string {
	n := func() string { return k.number(of, max(depth-1, 0)) }
	if depth == 0 || k.maybe(30) {
		return n() + k.word([]string{" < ", " = ", "<>", " >= "}) + n()
	}
	c := func() string { return k.condition(of, depth-1) }
	forms := []func() string{
		func() string { return c() + " AND " + c() }, func() string { return c() + " AND " + c() },
		func() string { return c() + " OR " + c() },
		func() string { return "NOT " + c() },
		func() string { return "(" + c() + ")" },
		func() string { return n() + k.word([]string{" BETWEEN ", " NOT BETWEEN "}) + n() + " AND " + n() },
		func() string { return n() + k.word([]string{" IN (", " NOT IN ("}) + n() + ", " + n() + ")" },
		func() string { return of + k.column() + k.word([]string{" IS NULL", " IS NOT NULL"}) },
		func() string { return "CASE WHEN " + c() + " THEN " + c() + " ELSE " + c() + " END" },
		func() string {
			return "CASE WHEN " + n() + " < 2 AND " + n() + " = 1 AND abs(" + n() + ") = 0 THEN " + c() + " ELSE " + c() + " END"
		},
		func() string { return "CAST(" + of + k.column() + " AS text) LIKE '%1%'" },
	}
	if k.isNull {
		forms = append(forms, func() string { return of + k.column() + k.word([]string{" ISNULL", " NOTNULL"}) })
	}
	if k.isDistinct {
		forms = append(forms, func() string {
			return "(" + n() + ")" + k.word([]string{" IS DISTINCT FROM ", " IS NOT DISTINCT FROM "}) + n()
		})
	}
	if k.readsTarget {
		forms = append(forms, func() string {
			return "EXISTS (SELECT 1 FROM books AS " + k.word(k.aliases) + " WHERE " + k.condition("", depth-1) + ")"
		})
	}
	return k.one(forms...)
}

func (k *keywords) assignments(of string) string {
	var sets []string
	for _, i := range k.r.Perm(len(k.used))[:1+k.r.IntN(2)] {
		sets = append(sets, k.cased(k.used[i])+" = "+k.number(of, 2))
	}
	return strings.Join(sets, ", ")
}

func (k *keywords) where(of string) string {
	if k.maybe(25) {
		return ""
	}
	return " WHERE " + k.condition(of, 3)
}

func (k *keywords) returning(of string) string {
	if !k.Returns() || k.maybe(50) {
		return ""
	}
	items := []string{of + "id"}
	for range k.r.IntN(3) {
		item := k.number(of, 2)
		switch k.r.IntN(3) {
		case 0:
			item += " AS " + k.cased(k.word(k.labels))
		case 1:
			item = "(" + item + ") " + k.cased(k.word(k.bare))
		}
		items = append(items, item)
	}
	return " RETURNING " + strings.Join(items, ", ")
}

// alias returns an alias of books, or none, and the qualifier of its columns.
func (k *keywords) alias(can bool) (as, of string) {
	if !can || k.maybe(40) {
		return "", k.word([]string{"", "books."})
	}
	a := k.word(k.aliases)
	for a == "excluded" {
		a = k.word(k.aliases)
	}
	return " AS " + k.cased(a), k.word([]string{"", a + "."})
}

func (k *keywords) statement() string {
	k.args = nil
	with := ""
	if k.withWrites && k.maybe(25) {
		name := k.word(k.withs)
		with = "WITH " + name + " AS (SELECT " + k.number("", 2) + " AS " + k.word(k.labels) + " FROM books WHERE " + k.condition("", 1) + ") "
	}
	forms := []func() string{k.update, k.update, k.delete, k.delete, k.insert, k.upsert}
	if k.Dialect == sqlfence.Postgres {
		forms = append(forms, k.merge)
	}
	return with + k.one(forms...)
}

func (k *keywords) update() string {
	as, of := k.alias(true)
	from := ""
	set := k.assignments(of)
	if k.updatesFrom && k.maybe(25) {
		from = " FROM (SELECT 1 AS one_) AS o_"
	}
	return "UPDATE books" + as + " SET " + set + from + k.where(of) + k.returning(of)
}

func (k *keywords) delete() string {
	as, of := k.alias(k.aliasOfDelete)
	return "DELETE FROM books" + as + k.where(of) + k.returning(of)
}

// rowsOf writes new rows, or a query of the table, if can is set.
func (k *keywords) rowsOf(columns int, can bool) string {
	values := func() string {
		v := fmt.Sprint(3 + k.r.IntN(4))
		for range columns {
			v += ", " + fmt.Sprint(k.r.IntN(4))
		}
		return v
	}
	if !can || k.maybe(50) {
		return " VALUES (" + values() + ")"
	}
	v := fmt.Sprint(3 + k.r.IntN(4))
	for range columns {
		v += ", " + k.number("", 2)
		if k.maybe(30) {
			v += " AS " + k.word(k.labels)
		}
	}
	return " SELECT " + v + " FROM books WHERE id = 1"
}

func (k *keywords) list() (names string, columns int) {
	columns = 1 + k.r.IntN(3)
	var list []string
	for _, i := range k.r.Perm(len(k.used))[:columns] {
		list = append(list, k.used[i])
	}
	return strings.Join(list, ", "), columns
}

func (k *keywords) insert() string {
	names, n := k.list()
	rows := k.rowsOf(n, k.readsTarget)
	if rest, ok := strings.CutPrefix(rows, " VALUES ("); ok && k.maybe(60) { // the key isn't the first value
		id, values, _ := strings.Cut(strings.TrimSuffix(rest, ")"), ", ")
		return "INSERT INTO books (" + names + ", id) VALUES (" + values + ", " + id + "+4)" + k.returning("")
	}
	return "INSERT INTO books (id, " + names + ")" + strings.Replace(rows, "(3", "(7", 1) + " ON CONFLICT DO NOTHING" + k.returning("")
}

func (k *keywords) upsert() string {
	names, n := k.list()
	as, of := k.alias(k.aliasOfInsert)
	if of == "" {
		of = "excluded."
	}
	where := ""
	if k.whereOfUpsert {
		where = k.where(of)
	}
	return "INSERT INTO books" + as + " (id, " + names + ")" + k.rowsOf(n, k.whereOfUpsert) + " ON CONFLICT (id) DO UPDATE SET " + k.assignments(of) + where + k.returning("")
}

func (k *keywords) merge() string {
	as, of := k.alias(true)
	if of == "" {
		of = strings.TrimPrefix(as, " AS ") + "."
		if as == "" {
			of = "books."
		}
	}
	first := ""
	if k.maybe(70) { // without a condition no other arm can follow
		first = " WHEN MATCHED AND " + k.condition(of, 2) + " THEN " + k.word([]string{"DELETE", "DO NOTHING", "UPDATE SET " + k.assignments(of)})
	}
	key := of + "id = s_.i_"
	return "MERGE INTO books" + as + " USING (SELECT 2 AS i_ UNION SELECT 9) AS s_ ON " + key + first +
		" WHEN MATCHED THEN UPDATE SET " + k.assignments(of) +
		" WHEN NOT MATCHED THEN INSERT (id, " + k.used[0] + ") VALUES (s_.i_, 1)"
}
