package statements_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"strings"
)

// A writer writes random statements on books, from the forms in statementForms
// and expressionForms.
type writer struct {
	r         *rand.Rand
	alias     string // of books, with or without AS, or ""
	qualifier string // the qualifier of books' columns
}

// A production lists the ways to write one kind of SQL. {kind} stands for another kind, {books} for the qualifier of
// books' columns, $n for an argument. A way that should be more frequent is listed more often.
type production struct {
	plain  []string // written unchanged; at the full depth only these are written
	nested []string // each blank is written in one of many ways
}

var (
	kinds = func() map[string]production {
		all := maps.Clone(statementForms)
		maps.Copy(all, expressionForms)
		return all
	}()
	kindName = regexp.MustCompile(`\{\w+\}`)
)

// statement writes a statement of the kind, and the values of its arguments.
func (w *writer) statement(kind string) (query string, args []any) {
	w.alias, w.qualifier = "", "books"
	if w.r.IntN(2) == 0 {
		w.qualifier = w.one([]string{"bk", "z", `"set"`, `"Where"`})
		w.alias = w.one([]string{"AS ", ""}) + w.qualifier
	}
	query = w.write(kind, 6)
	for strings.Contains(query, "$n") {
		n := w.r.IntN(len(args)+2) + 1 // one of the existing arguments, or a new one
		if n > len(args) {
			args = append(args, w.r.IntN(4))
			n = len(args)
		}
		query = strings.Replace(query, "$n", fmt.Sprintf("$%d", n), 1)
	}
	return query, args
}

// write writes a text of this kind, with others nested in it to the depth.
func (w *writer) write(kind string, depth int) string {
	switch kind {
	case "books":
		return w.qualifier
	case "alias":
		return w.alias
	}
	f, ok := kinds[kind]
	if !ok {
		panic("no forms of " + kind)
	}
	if len(f.nested) == 0 || len(f.plain) > 0 && (depth <= 0 || w.r.IntN(6) == 0) {
		return w.fill(w.one(f.plain), depth)
	}
	words := strings.Split(w.one(f.nested), " ")
	for i, word := range words {
		words[i] = w.fill(word, depth-1)
		if i > 0 {
			words[i] = w.blank() + words[i]
		}
	}
	return strings.Join(words, "")
}

// fill replaces the names of kinds in a form.
func (w *writer) fill(form string, depth int) string {
	return kindName.ReplaceAllStringFunc(form, func(name string) string {
		return w.write(strings.Trim(name, "{}"), depth)
	})
}

// blank separates two words.
func (w *writer) blank() string {
	if w.r.IntN(12) > 0 {
		return " "
	}
	return w.one([]string{"\n", "\t", " /* from */ ", " -- from where\n"})
}

func (w *writer) one(of []string) string { return of[w.r.IntN(len(of))] }

// statementForms are the kinds of statements that write to books, and their clauses.
var statementForms = map[string]production{
	"statement": {nested: []string{"{update}", "{update}", "{update}", "{delete}", "{delete}", "{upsert}", "{insert}", "{merge}"}},

	// Statements that show the key of each written row.
	"keyed": {nested: []string{"{update}", "{update}", "{update}", "{delete}", "{delete}", "{upsert}"}},

	"update": {nested: []string{"{with} UPDATE {target} {alias} SET {sets} {from} {where} {returning}"}},
	"delete": {nested: []string{"{with} DELETE FROM {target} {alias} {using} {where} {returning}"}},
	"upsert": {nested: []string{"{with} INSERT INTO books {as} (id, price, a) VALUES ( {id} , {value} , {value} ) ON CONFLICT {conflict} DO UPDATE SET {sets} {where} {returning}"}},
	"insert": {nested: []string{"{with} INSERT INTO books {as} (id, price) {selected} {returned}", "{with} INSERT INTO books {as} (id, price) ( {selected} ) UNION {quantity} ( {others} ) {returned}"}},
	"merge": {nested: []string{
		"{reading} MERGE INTO {merged} {alias} USING {rows} ON {books}.id = sid AND {always} WHEN MATCHED AND {condition} THEN {matched} WHEN MATCHED THEN {matched}",
		"{reading} MERGE INTO {merged} {alias} USING {rows} ON {books}.id = sid WHEN MATCHED AND {condition} THEN {matched} WHEN NOT MATCHED {unmatched} THEN INSERT (id, price) VALUES (sid, {value} )",
	}},

	"with":    {plain: []string{"", "", "{reading}", "WITH w AS (INSERT INTO other (price) VALUES (7) RETURNING *)", "WITH recursive w(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM w WHERE n < 2) SEARCH DEPTH FIRST BY n SET ord"}},
	"reading": {plain: []string{"", "", "WITH w AS (SELECT 1 AS one)", "WITH w(where_) AS NOT MATERIALIZED (SELECT 1)"}},
	"target":  {plain: []string{"books", "ONLY books", "books *", `"books"`, "BOOKS", "only (books)"}},
	"merged":  {plain: []string{"books", "ONLY books", `"books"`}},
	"as":      {plain: []string{"AS {books}"}},
	"where":   {nested: []string{"", "WHERE {condition}", "WHERE {condition}", "WHERE {condition}", "WHERE {condition}"}},
	"from":    {plain: []string{"", "", "", "FROM (select 1 as one) k", "FROM generate_series(1,1) AS gs(n)", "FROM (values (1)) v(n) cross join (select 2) as u(m)", "FROM (select 1) k JOIN (select 2) l ON {always}"}},
	"using":   {plain: []string{"", "", "", "USING (select 1 as one) k", "USING generate_series(1,1) AS gs(n)", "USING rows from (generate_series(1,1)) as rf(n)"}},
	"always":  {plain: []string{"true", "CASE WHEN true THEN true END"}},

	"returning": {nested: []string{"", "", "RETURNING id", "RETURNING {books}.id, {integer} AS from", "RETURNING {integer} , t AS where", "RETURNING price AS set , {condition} x", "RETURNING id end_, {integer}"}},
	"returned":  {plain: []string{"", "", "RETURNING {books}.id", "RETURNING id AS returning, 1 AS from"}},

	"sets":  {nested: []string{"{price}", "{price}", "{a}", "{a} , {b}", "{b},{a},{price}", "{array} , {price}", "(price, a) = (SELECT {integer} , {integer} ) , {b}", "(a, b) = ROW( {integer} , {integer} )"}},
	"price": {nested: []string{"price = {integer}", "price = {integer}", "(price) = ROW( {integer} )", "price = DEFAULT"}},
	"a":     {nested: []string{"a = {integer}", `"a" = {integer}`, "(a) = ( SELECT {integer} )"}},
	"b":     {nested: []string{"b = {integer}", "B = {integer}", "b = DEFAULT"}},
	"array": {nested: []string{"arr[2] = {integer}", "arr[1] = {integer}, arr[2] = {integer}"}},

	"id":       {plain: []string{"1", "2", "20"}},
	"value":    {plain: []string{"1", "3", "DEFAULT", "1 + 2", "length('where')", "CASE WHEN true THEN 2 END"}},
	"conflict": {plain: []string{"(id)", "(id)", "ON CONSTRAINT books_pkey", "(id) WHERE true"}},

	"selected": {plain: []string{
		"SELECT {quantity} id + 100 AS id, CASE WHEN o.price > 0 THEN 1 ELSE 2 END {column} FROM other o WHERE o.price > 0 {last}",
		"SELECT DISTINCT ON (id) id + 100, o.price AS from FROM other AS o WHERE CASE WHEN o.price > 0 THEN true END ORDER BY id, 2",
		"SELECT o.id + 100, count(*) FROM other AS o GROUP BY 1 HAVING count(*) > 0",
	}},
	"others":   {plain: []string{"SELECT id + 200, 7 FROM other", "VALUES (201, 1), (202, 2)"}},
	"quantity": {plain: []string{"", "ALL", "DISTINCT"}},
	"column":   {plain: []string{"", "AS from", `"x"`}},
	"last":     {plain: []string{"", "ORDER BY 1", "ORDER BY 1 LIMIT 2", "ORDER BY 1 OFFSET 1", "ORDER BY 1 FETCH FIRST 1 ROW WITH TIES"}},

	"rows":      {plain: []string{"(VALUES (1, 'x'), (2, 'y'), (30, 'z')) AS src(sid, st)"}},
	"matched":   {nested: []string{"UPDATE SET {sets}", "UPDATE SET {sets}", "DELETE", "DO NOTHING"}},
	"unmatched": {plain: []string{"", "AND sid > 2"}},
}
