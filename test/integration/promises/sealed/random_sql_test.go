package sealed_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A script is an SQL string, with the possible effects of each of its statements.
type script struct {
	text       string
	statements [][]effect
}

// An effect sets the price of these rows to its tag, with a token, or with 0 if it presents none.
type effect struct {
	verb  byte // of INSERT, UPDATE, DELETE
	tag   int64
	token int64
	ids   []int
}

// A sqlWriter writes random SQL.
type sqlWriter struct {
	r       *rand.Rand
	shape   string
	version int   // the server's version
	newest  int64 // the newest token; most writes present a token near it
	tag     int64 // identifies the last write
	steady  bool  // all writes of the script present the newest token
	keys    bool  // each row has its own token
	third   int   // the rows that the script writes
}

// eachToken stands for a DELETE that presents each row's newest token.
const eachToken = -1

// newestOf returns the newest token of a row.
func (q *sqlWriter) newestOf(id int) int64 {
	if !q.keys {
		return q.newest
	}
	return q.newest + int64(id%3)
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (q *sqlWriter) statement() script {
	q.steady, q.third = q.r.IntN(2) == 0, q.r.IntN(3)
	switch q.r.IntN(12) {
	case 0, 1, 2:
		return one(q.write(""))
	case 3:
		text, writes := q.write("")
		return one("EXPLAIN (ANALYZE, COSTS OFF) "+text, writes)
	case 4:
		return q.authors()
	case 5:
		text, writes := q.write("")
		return one("PREPARE p AS "+text+"; EXECUTE p; DEALLOCATE p", writes)
	case 6:
		return q.copied()
	case 7, 8:
		return q.block()
	}
	return one(q.with())
}

func one(text string, writes []effect) script { return script{text, [][]effect{writes}} }

// with returns a statement with several writes.
func (q *sqlWriter) with() (string, []effect) {
	var items []string
	var all []effect
	from := ""
	for _, name := range []string{"a", "b", "c"}[:1+q.r.IntN(3)] {
		text, writes := q.write(from)
		if !strings.HasPrefix(text, "MERGE") {
			text += " RETURNING 1 AS one"
			from = name
		} else if q.version >= 170000 {
			text += " RETURNING 1 AS one"
		}
		items, all = append(items, name+pick(q.r, "", " (one)", "")+" AS ("+text+")"), append(all, writes...)
	}
	if q.version < 170000 {
		for i := range items {
			if strings.Contains(items[i], "(MERGE") {
				return q.with()
			}
		}
	}
	text, writes := "SELECT count(*) FROM "+from, []effect(nil)
	if q.r.IntN(3) > 0 {
		text, writes = q.write(from)
	}
	return "WITH " + strings.Join(items, ", ") + " " + text, append(all, writes...)
}

// block returns several statements. The errors of some are caught.
func (q *sqlWriter) block() script {
	var b strings.Builder
	var s script
	b.WriteString("DO $$BEGIN ")
	for range 1 + q.r.IntN(3) {
		text, writes := q.write("")
		s.statements = append(s.statements, writes)
		if q.r.IntN(2) == 0 {
			text = "BEGIN " + text + "; EXCEPTION WHEN OTHERS THEN NULL; END"
		}
		b.WriteString(text + "; ")
	}
	b.WriteString("END$$")
	s.text = b.String()
	return s
}

// authors returns a script that cascades to the books, alone or with a write to the books.
func (q *sqlWriter) authors() script {
	author := 1 + q.r.IntN(3)
	w := effect{verb: 'D', tag: -1}
	for id := 1; id <= 12; id++ {
		if 1+id%3 == author {
			w.ids = append(w.ids, id)
		}
	}
	text := pick(q.r, "DELETE FROM authors", "UPDATE authors SET id = id + 10") + fmt.Sprintf(" WHERE id = %d", author)
	if q.r.IntN(2) == 0 {
		return one(text, []effect{w})
	}
	beside, writes := q.write("")
	if strings.HasPrefix(beside, "MERGE") {
		return one(text, []effect{w})
	}
	return one("WITH a AS ("+beside+") "+text, append(writes, w))
}

func (q *sqlWriter) copied() script {
	id, token, mark := 1+q.r.IntN(12), int64(0), int64(0)
	if text, t := q.mark(); t > 0 {
		token, mark = t, -t
	} else if text != "" {
		mark = q.newest
	}
	q.tag++
	return one(fmt.Sprintf("COPY books (id, price, fence_token) FROM PROGRAM 'echo %d,%d,%d' WITH (FORMAT csv)", id, q.tag, mark), []effect{{'I', q.tag, token, []int{id}}})
}

// write returns a write that may read an item of a WITH.
func (q *sqlWriter) write(from string) (string, []effect) {
	switch q.r.IntN(8) {
	case 0, 1, 2:
		return q.update(from)
	case 3, 4:
		return q.deletes(from)
	case 5, 6:
		return q.insert(from)
	}
	return q.merge()
}

// target returns a name of the table, and the name for its columns' qualifiers.
func (q *sqlWriter) target() (table, alias string) {
	names := []string{"books", "books AS t", "v", "books"}
	switch q.shape {
	case "partitions":
		names = append(names, "books_a", "books_b")
	case "a child":
		names = append(names, "rare", "rare AS t")
	}
	table = pick(q.r, names...)
	alias, _, _ = strings.Cut(table, " AS ")
	if strings.HasSuffix(table, " AS t") {
		alias = "t"
	}
	return table, alias
}

// mark returns the value that a write assigns to the fence column, "" for none, and the token that the write presents.
func (q *sqlWriter) mark() (string, int64) {
	token := q.newestOf(q.third)
	if q.steady {
		return fmt.Sprint(-token), token
	}
	token += pick[int64](q.r, 0, 0, 0, 0, -1, -2, -3, 1)
	if token < 1 {
		token = 1
	}
	switch q.r.IntN(10) {
	case 0, 1:
		return "", 0
	case 2:
		return pick(q.r, "0", "NULL", "DEFAULT"), 0
	case 3:
		return fmt.Sprint(token), 0
	}
	return fmt.Sprint(-token), token
}

func (q *sqlWriter) ids() []int {
	var ids []int
	for len(ids) == 0 || q.r.IntN(2) == 0 {
		id := 1 + q.r.IntN(12)
		if !q.keys || id%3 == q.third || q.r.IntN(8) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// sets returns the SET list of a write.
func (q *sqlWriter) sets(ids []int, moves bool) (string, effect) {
	q.tag++
	mark, token := q.mark()
	text := fmt.Sprintf("price = %d", q.tag)
	if mark != "" {
		text += ", fence_token = " + mark
	}
	if moves && q.r.IntN(3) == 0 {
		text += ", region = " + pick(q.r, "'a'", "'b'")
	}
	return text, effect{'U', q.tag, token, ids}
}

func in(column string, ids []int) string {
	return column + " IN (" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ", "), "[]") + ")"
}

// also returns a condition that is always true. It may write without a token, or read from an item.
func (q *sqlWriter) also(from string) string {
	if from != "" && q.r.IntN(2) == 0 {
		return " AND (SELECT count(*) FROM " + from + ") >= 0"
	}
	if q.r.IntN(8) == 0 {
		return fmt.Sprintf(" AND touch(%d)", q.r.IntN(5))
	}
	return ""
}

func (q *sqlWriter) update(from string) (string, []effect) {
	table, alias := q.target()
	ids := q.ids()
	sets, w := q.sets(ids, true)
	text := "UPDATE " + table + " SET " + sets
	if from != "" && q.r.IntN(2) == 0 {
		text += " FROM " + from
	}
	return text + " WHERE " + in(alias+".id", ids) + q.also(from), []effect{w}
}

// proof returns a condition with which a DELETE presents a token, and the token.
func (q *sqlWriter) proof() (string, int64) {
	mark, token := q.mark()
	switch {
	case mark == "":
		return "true", 0
	case q.keys && q.r.IntN(2) == 0:
		return fmt.Sprintf("set_config('sqlfence.delete_books', '%d,%d,%d', true) IS NOT NULL", q.newest+2, q.newest+1, q.newest), eachToken
	case token == 0:
		return pick(q.r, "set_config('sqlfence.delete_authors', '999', true) IS NOT NULL", "set_config('sqlfence.delete', 'books:999', true) IS NOT NULL", "set_config('sqlfence.move_books', '', true) IS NOT NULL"), 0
	}
	call := fmt.Sprintf("set_config('sqlfence.delete_books', '%d', true)", token)
	if q.steady { // another form may be evaluated too early
		return call + " IS NOT NULL", token
	}
	return pick(q.r, call+" IS NOT NULL", "length("+call+") > 0", "(SELECT "+call+") IS NOT NULL"), token
}

func (q *sqlWriter) deletes(from string) (string, []effect) {
	table, alias := q.target()
	ids := q.ids()
	proof, token := q.proof()
	text := "DELETE FROM " + table
	switch {
	case from != "" && q.r.IntN(2) == 0:
		text += " USING " + from
	case q.r.IntN(3) == 0:
		text += " USING generate_series(1, 3) AS n"
	}
	where := in(alias+".id", ids)
	if q.r.IntN(2) == 0 {
		where = "CASE WHEN " + where + " THEN " + proof + " ELSE false END"
	} else {
		where += " AND " + proof
	}
	return text + " WHERE " + where + q.also(from), []effect{{'D', -1, token, ids}}
}

func (q *sqlWriter) insert(from string) (string, []effect) {
	table, alias := q.target()
	var writes []effect
	columns, values, ids := "id, price", []string(nil), q.ids()
	mark, token := q.mark()
	if mark != "" {
		columns += ", fence_token"
	}
	for _, id := range ids {
		q.tag++
		value := fmt.Sprintf("(%d, %d", id, q.tag)
		if mark != "" {
			value += ", " + mark
		}
		values = append(values, value+")")
		writes = append(writes, effect{'I', q.tag, token, []int{id}})
	}
	text := "INSERT INTO " + table + " (" + columns + ") VALUES " + strings.Join(values, ", ")
	if from != "" && q.r.IntN(2) == 0 && mark != "DEFAULT" {
		text = "INSERT INTO " + table + " (" + columns + ") SELECT x.* FROM " + from + ", (VALUES " + strings.Join(values, ", ") + ") AS x"
	}
	switch key := map[bool]string{true: " (id, region)", false: " (id)"}[q.shape == "partitions"]; q.r.IntN(4) {
	case 0:
		text += " ON CONFLICT DO NOTHING"
	case 1, 2:
		sets, w := q.sets(ids, false)
		text += " ON CONFLICT" + key + " DO UPDATE SET " + sets + " WHERE " + alias + ".id > 0" + q.also("")
		writes = append(writes, w)
	}
	return text, writes
}

func (q *sqlWriter) merge() (string, []effect) {
	table, _ := q.target()
	table, _, _ = strings.Cut(table, " AS ")
	low := 1 + q.r.IntN(12)
	high := min(12, low+q.r.IntN(4))
	var ids []int
	for id := low; id <= high; id++ {
		ids = append(ids, id)
	}
	text := fmt.Sprintf("MERGE INTO %s AS t USING generate_series(%d, %d) AS n ON t.id = n", table, low, high)
	var writes []effect
	if q.r.IntN(2) == 0 {
		proof, token := q.proof()
		text += " WHEN MATCHED AND t.id % 2 = 0 AND " + proof + " THEN DELETE"
		writes = append(writes, effect{'D', -1, token, ids})
	}
	if q.r.IntN(4) > 0 {
		sets, w := q.sets(ids, true)
		text += " WHEN MATCHED AND t.id % 3 > 0" + q.also("") + " THEN UPDATE SET " + sets
		writes = append(writes, w)
	}
	text += " WHEN MATCHED THEN DO NOTHING"
	if q.r.IntN(2) == 0 {
		q.tag++
		if mark, token := q.mark(); mark == "" {
			text += fmt.Sprintf(" WHEN NOT MATCHED THEN INSERT (id, price) VALUES (n, %d)", q.tag)
			writes = append(writes, effect{'I', q.tag, 0, ids})
		} else {
			text += fmt.Sprintf(" WHEN NOT MATCHED THEN INSERT (id, price, fence_token) VALUES (n, %d, %s)", q.tag, mark)
			writes = append(writes, effect{'I', q.tag, token, ids})
		}
	}
	return text, writes
}
