package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// ownSchema has generated columns, views and functions through which a statement may read the books.
const ownSchema = `ALTER TABLE books ADD dearer int AS (price * 2 + grp) VIRTUAL, ADD twice int AS (grp * 2) STORED, ADD KEY (dearer), ADD KEY (twice, price);
CREATE VIEW mine AS SELECT id, grp, price FROM books;
CREATE VIEW cheap AS SELECT grp, MIN(price) AS price, MAX(id) AS id FROM books GROUP BY grp;
CREATE FUNCTION dearest(x int) RETURNS int READS SQL DATA RETURN (SELECT MAX(price) + x FROM books);
CREATE FUNCTION rank_of(x int) RETURNS int READS SQL DATA RETURN (SELECT COUNT(*) FROM mine WHERE price > x)`

// ownTriggers read the books for each written row.
const ownTriggers = `CREATE TRIGGER looks BEFORE UPDATE ON books FOR EACH ROW SET @seen = (SELECT MAX(fence_token) FROM books);
CREATE TRIGGER looks_first BEFORE INSERT ON books FOR EACH ROW SET @seen = (SELECT MIN(fence_token) FROM books);
CREATE TRIGGER changes BEFORE UPDATE ON books FOR EACH ROW SET NEW.grp = NEW.grp % 4;
CREATE TRIGGER looks_last AFTER DELETE ON books FOR EACH ROW SET @seen = (SELECT COUNT(*) FROM mine)`

// switches are the optimizer's strategies for statements that read a table twice.
var switches = []string{"derived_merge", "derived_with_keys", "firstmatch", "loosescan", "semijoin", "semijoin_with_cache",
	"subquery_cache", "table_elimination", "join_cache_incremental", "join_cache_hashed", "join_cache_bka", "optimize_join_buffer_size", "mrr", "mrr_sort_keys",
	"outer_join_with_cache", "exists_to_in", "condition_pushdown_for_derived", "split_materialized", "condition_pushdown_for_subquery", "rowid_filter",
	"condition_pushdown_from_having", "index_merge", "extended_keys", "partial_match_rowid_merge", "partial_match_table_scan"}

// session returns a data source name with random settings of the optimizer.
func (r random) session(t testing.TB, dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	on := []string{r.pick("materialization=on", "in_to_exists=on", "materialization=on,in_to_exists=on")} // one is required
	for _, s := range switches {
		if r.IntN(3) > 0 {
			on = append(on, s+"="+r.pick("on", "off"))
		}
	}
	cfg.Params = map[string]string{
		"optimizer_switch":    "'" + strings.Join(on, ",") + "'",
		"join_cache_level":    r.pick("0", "2", "4", "8"),
		"sql_buffer_result":   r.pick("0", "1"),
		"max_heap_table_size": r.pick("16384", "16777216"),
	}
	cfg.InterpolateParams = r.IntN(2) == 0
	return cfg.FormatDSN()
}

// rows returns a FROM clause from which a subquery reads rows, as z.
func (r random) rows(outer string) string {
	return strings.ReplaceAll(r.pick("books z", "books z", "books z", "mine z", "cheap z", "pens z", "(SELECT * FROM books) z", "books z JOIN pens p ON p.grp = z.grp",
		"books z LEFT JOIN books y ON y.grp = z.grp", "(SELECT id, grp, price FROM books ORDER BY price DESC, id LIMIT 3) z",
		"(SELECT MAX(id) AS id, grp, MIN(price) AS price FROM books GROUP BY grp) z", "(SELECT DISTINCT grp AS id, grp, price FROM mine) z",
		"(SELECT id, grp, price FROM books UNION SELECT id, grp, price FROM pens) z", "books z USE INDEX (grp)"), "@", outer)
}

// sub returns a query of one column of z. outer qualifies the columns of the written row.
func (r random) sub(outer string, aggregate bool) string {
	column := r.pick("z.id", "z.grp", "z.price", "z.id + 1")
	if aggregate {
		column = r.pick("MAX(", "MIN(", "COUNT(") + column + ")"
	} else if r.IntN(5) == 0 {
		column = "DISTINCT " + column
	}
	where := r.pick("", "", " WHERE z.price > ?", " WHERE z.grp = @grp", " WHERE z.id <> @id", " WHERE z.id IN (SELECT id FROM pens)", " WHERE z.price >= @price", " WHERE z.grp < 2")
	tail := ""
	if !aggregate {
		tail = r.pick("", "", "", " ORDER BY z.id", " GROUP BY z.id, z.grp, z.price HAVING COUNT(*) > 0", " UNION SELECT id FROM mine", " UNION ALL SELECT price FROM pens")
	}
	query := "SELECT " + column + " FROM " + r.rows(outer) + where + tail
	if r.IntN(8) == 0 {
		query = "WITH z AS (SELECT id, grp, price FROM " + r.pick("books", "mine") + ") SELECT " + column + " FROM z" + where
	}
	return strings.ReplaceAll(query, "@", outer)
}

// ownCondition returns a condition that mostly has a subquery on the books.
func (r random) ownCondition(outer string) string {
	c := func() string {
		not := r.pick("", "", "", "NOT ")
		return strings.ReplaceAll(r.pick("@id "+not+"IN ("+r.sub(outer, false)+")", "@grp "+not+"IN ("+r.sub(outer, false)+")", "@price > ("+r.sub(outer, true)+")",
			not+"EXISTS ("+r.sub(outer, false)+")", "@price >= ALL ("+r.sub(outer, false)+")", "@price = ANY ("+r.sub(outer, false)+")", "(@id, @grp) IN (SELECT z.id, z.grp FROM "+r.rows(outer)+")",
			"@price < dearest(0)", "@dearer > ?", "@twice = ?", "@twice IN ("+r.sub(outer, false)+")", "rank_of(@price) < ?", "@id > ?", "@grp = ?", "@id IN (SELECT id FROM mine)", "(@price, @grp) = (SELECT MAX(z.price), z.grp FROM books z WHERE z.id = @id)"), "@", outer)
	}
	if r.IntN(3) > 0 {
		return c()
	}
	return "(" + c() + ") " + r.pick("AND", "AND", "OR") + " (" + c() + ")"
}

func (r random) ownSet(outer string) string {
	var items []string
	for range 1 + r.IntN(2) {
		items = append(items, outer+strings.ReplaceAll(r.pick("price = ?", "price = 5", "price = @price + 1", "title = CONCAT('t', @id)", "title = 'u'", "price = ("+r.sub(outer, true)+")",
			"grp = ("+r.sub(outer, true)+")", "price = dearest(1)", "title = CONCAT(COALESCE(@fence_token, 0), '-', @id)", "grp = @grp + 1", "price = @dearer", "title = CONCAT('d', @twice)"), "@", outer))
	}
	return strings.Join(items, ", ")
}

func (r random) ownTail(outer string) string {
	s := ""
	if r.IntN(2) == 0 {
		s = " ORDER BY " + strings.ReplaceAll(r.pick("RAND()", "UUID()", "@price, @id", "@id DESC", "("+r.sub(outer, true)+"), @id", "dearest(@id), @id", "@grp, RAND()", "rank_of(@price), @id", "@price + RAND()", "@dearer DESC, @id", "@twice, RAND()", "@twice + @dearer"), "@", outer)
	}
	if r.IntN(2) == 0 {
		s += " LIMIT " + r.pick("1", "2", "3", "?")
	}
	return s
}

// ownStatement returns a random write of books that mostly has a subquery on them.
func (r random) ownStatement() string {
	alias, as := "books.", ""
	if r.IntN(3) == 0 {
		alias, as = "b.", " b"
	}
	where := ""
	if r.IntN(6) > 0 {
		where = " WHERE " + r.ownCondition(alias)
	}
	index := r.pick("", "", "", " FORCE INDEX (grp)", " IGNORE INDEX (PRIMARY)")
	returning := r.pick("", "", "", " RETURNING id, fence_token", " RETURNING id, price + ?")
	switch r.IntN(13) {
	case 0, 1, 2, 3, 4:
		return r.pick("UPDATE ", "UPDATE ", "UPDATE LOW_PRIORITY ", "UPDATE IGNORE ") + "books" + as + index + " SET " + r.ownSet(alias) + where + r.ownTail(alias)
	case 5, 6, 7:
		return r.pick("DELETE", "DELETE", "DELETE QUICK") + " FROM books" + strings.ReplaceAll(where, "b.", "books.") + r.ownTail("books.") + returning
	case 8, 9:
		from := r.ownJoin()
		return r.pick("UPDATE ", "UPDATE ", "UPDATE IGNORE ") + from + " SET " + r.ownSet("b.") + r.pick("", " WHERE "+r.ownCondition("b."), " WHERE z.price > ?", " WHERE z.id = b.id") + r.pick("", "", "", " ORDER BY RAND()")
	case 10:
		from := r.ownJoin()
		return r.pick("DELETE b FROM ", "DELETE FROM b USING ", "DELETE b.* FROM ") + from + r.pick("", " WHERE "+r.ownCondition("b."), " WHERE z.price > ?")
	}
	query := "SELECT z.id" + r.pick("", " + 3", " + ?") + ", z.price FROM " + r.rows("books.") + r.pick("", " WHERE z.price > ?", " WHERE z.grp = 1", " GROUP BY z.id, z.price") + r.pick("", " ORDER BY RAND()", " ORDER BY z.price, z.id LIMIT 2")
	if r.IntN(3) == 0 {
		return r.pick("REPLACE INTO", "REPLACE INTO", "INSERT INTO") + " books (id, price) " + r.pick(query, query, "VALUES (?, 5)", "VALUES (?, dearest(1)), (8, 9)") + returning
	}
	return r.pick("INSERT INTO", "INSERT IGNORE INTO") + " books (id, price) " + query + " ON DUPLICATE KEY UPDATE " + r.pick("books.price = 5", "books.title = CONCAT('t', books.id)", "books.price = VALUES(price) + 1", "books.price = (SELECT COUNT(*) FROM pens)", "books.grp = books.grp + 1", "books.price = books.dearer") + returning
}

// ownJoin returns joined tables, with the written books as b.
func (r random) ownJoin() string {
	z := r.rows("b.")
	if strings.Contains(z, " JOIN ") {
		z = "(" + z + ")"
	}
	from := "books b " + r.pick("JOIN ", "JOIN ", "STRAIGHT_JOIN ", "LEFT JOIN ") + z + " ON " + r.pick("z.grp = b.grp", "z.id = b.id", "z.price > b.price", "z.id = b.id + 1", "b.id IN (SELECT id FROM mine)")
	if r.IntN(4) == 0 {
		from = z + " JOIN books b ON " + r.pick("z.grp = b.grp", "z.id = b.id", "b.price < z.price")
	}
	return from
}

// TestRandomWritesOfWhatTheyRead runs random writes that read the table they write, under random plans. No write may
// change a row with a newer token, a row of another key, or a row whose serial isn't the caller's. Under the newest
// token each write has the same effect as on the bare driver.
func TestRandomWritesOfWhatTheyRead(t *testing.T) {
	seed, count := harness.Seed(t), harness.Rounds(t, 200)
	for i, name := range []string{"row", "key", "serial", "version", "both"} {
		t.Run(name, func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, uint64(i)))}
			dsn := setup(t)
			own := ownSchema
			if i%2 == 0 {
				own += ";" + ownTriggers
			}
			db := open(t, dsn)
			for _, s := range strings.Split(own, ";") {
				exec(t, db, s)
			}
			rules := rulesets[name]
			if name == "version" {
				rules = rulesets["serial"]
			}
			tally := map[string]int{}
			var plain, guarded *sql.DB
			for n := range count {
				if n%20 == 0 {
					if n > 0 {
						_, _ = plain.Close(), guarded.Close()
					}
					session := r.session(t, dsn)
					plain, guarded = open(t, session), fence(t, session, rules...)
				}
				ownRows(t, r, name, plain, guarded, tally)
			}
			t.Logf("seed %d: %v", seed, tally)
			if name != "version" && tally["fresh"] < count/20 || tally["stale"] < count/40 {
				t.Errorf("too few of a kind: %v", tally)
			}
		})
	}
}

func ownRows(t *testing.T, r random, name string, plain, guarded *sql.DB, tally map[string]int) {
	t.Helper()
	var rows []string
	var args []any
	for id := 1; id <= 6; id++ {
		rows = append(rows, "(?, ?, ?, ?, ?, ?)")
		args = append(args, id, fmt.Sprint("i", id), r.IntN(3), r.IntN(5)*10, r.IntN(5), 1+r.IntN(2))
	}
	exec(t, plain, "DELETE FROM books")
	exec(t, plain, "INSERT INTO books (id, isbn, grp, price, fence_token, serial) VALUES "+strings.Join(rows, ", "), args...)
	const newest = 5
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', ?)", newest)
	query := r.ownStatement()
	args = r.args(query)
	token, ctx := int64(1+r.IntN(4)), context.Background()
	if r.IntN(3) == 0 {
		token = newest
	}
	held := int64(9)
	switch {
	case name == "key" && token < newest:
		held = 3
		for id := range held {
			ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: fmt.Sprint("books/", id+1), Value: token})
		}
	default:
		ctx = holding(token)
	}
	if name == "version" {
		ctx = sqlfence.WithSerial(ctx, 1)
	}
	before := state(t, plain)
	want := run(t, context.Background(), plain, query, args...)
	got := run(t, ctx, guarded, query, args...)
	fail := func(format string, a ...any) {
		t.Helper()
		t.Errorf("%s\n%s %v, token %d\nbefore %v\nbare   %v %v, %d\nfenced %v %v, %d", fmt.Sprintf(format, a...), query, args, token, before, want.err, want.left, want.affected, got.err, got.left, got.affected)
	}
	for id, b := range before {
		g, left := got.left[id]
		if left && g == b {
			continue
		}
		switch {
		case b.fence > token:
			fail("LANDED on row %d", id)
			return
		case left && g.fence != token && !(g.rest == b.rest && g.serial == b.serial):
			fail("row %d has the mark %d", id, g.fence)
			return
		case id > held:
			fail("LANDED on row %d of another key", id)
			return
		case name == "version" && b.serial != 1:
			fail("LANDED on row %d of another serial", id)
			return
		case left && strings.HasPrefix(query, "UPDATE") && (name == "serial" || name == "version") && g.serial != b.serial+1:
			fail("row %d has the serial %d", id, g.serial)
			return
		}
	}
	random := strings.Contains(query, "RAND") || strings.Contains(query, "UUID") || strings.Contains(query, "dearest") || strings.Contains(query, "rank_of") // may see updated rows
	switch {
	case errors.Is(got.err, sqlfence.ErrUnguardable):
		tally["refused"]++
	case errors.Is(got.err, sqlfence.ErrStale), errors.Is(got.err, sqlfence.ErrOutOfScope), errors.Is(got.err, sqlfence.ErrConflict), errors.Is(got.err, sqlfence.ErrGone):
		tally["stale"]++
		if token == newest && name != "version" {
			fail("not stale")
		}
	case want.err != nil:
		tally["error"]++
		var null *mysql.MySQLError
		if got.err == nil && !(errors.As(want.err, &null) && null.Number == 1048) { // a joined UPDATE with triggers stores NULL as 0, as a guard does
			fail("no error")
		}
	case got.err != nil:
		fail("an error")
	case random || name == "version":
		tally["fresh, random"]++
	default:
		tally["fresh"]++
		sameRest(fail, query, want, got)
	}
	if got.err != nil && fmt.Sprint(got.left) != fmt.Sprint(before) {
		fail("refused, and changed")
	}
}

// sameRest compares the application's columns after two executions.
func sameRest(fail func(format string, a ...any), query string, want, got outcome) {
	rest := func(of map[int64]book) (all []string) {
		for id, b := range of {
			all = append(all, fmt.Sprint(id, " ", b.rest))
		}
		slices.Sort(all)
		return all
	}
	if strings.Contains(query, "LIMIT") && !strings.Contains(query, "ORDER BY") {
		if len(want.left) != len(got.left) {
			fail("another number of rows")
		}
		return
	}
	if strings.Contains(query, "fence_token") { // an earlier statement has changed its value
		return
	}
	if w, g := rest(want.left), rest(got.left); !slices.Equal(w, g) || want.pens != got.pens {
		fail("other rows")
	}
}
