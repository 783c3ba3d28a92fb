package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A book is a row. gone says that there is no such row.
type book struct {
	rest            string // the columns that a guard leaves alone
	touched         bool
	fence, serial   int64
	hasMark, hasSer bool
}

func state(t testing.TB, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) map[int64]book {
	t.Helper()
	rows, err := q.QueryContext(context.Background(), "SELECT id, CONCAT_WS('|', IFNULL(isbn, 'NULL'), grp, price, IFNULL(title, 'NULL')), touched > 0, fence_token, serial FROM books")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[int64]book{}
	for rows.Next() {
		var id int64
		var b book
		var fence, serial sql.NullInt64
		if err := rows.Scan(&id, &b.rest, &b.touched, &fence, &serial); err != nil {
			t.Fatal(err)
		}
		b.fence, b.hasMark, b.serial, b.hasSer = fence.Int64, fence.Valid, serial.Int64, serial.Valid
		all[id] = b
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return renumbered(all)
}

// renumbered renumbers the rows with an id that the database has generated, 10 or higher, because the database never
// generates an id twice.
func renumbered(all map[int64]book) map[int64]book {
	var chosen []int64
	for id := range all {
		if id >= 10 {
			chosen = append(chosen, id)
		}
	}
	slices.Sort(chosen)
	for i, id := range chosen {
		b := all[id]
		delete(all, id)
		all[int64(10+i)] = b
	}
	return all
}

// An outcome is a statement's result with the rows after it.
type outcome struct {
	err          error
	affected, id int64
	left         map[int64]book
	pens         string
}

// run runs a statement in a transaction that is rolled back.
func run(t testing.TB, ctx context.Context, db *sql.DB, query string, args ...any) (o outcome) {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var r sql.Result
	if r, o.err = tx.ExecContext(ctx, query, args...); o.err == nil {
		o.affected, _ = r.RowsAffected()
		o.id, _ = r.LastInsertId()
	}
	o.left = state(t, tx)
	if err := tx.QueryRow("SELECT COALESCE(GROUP_CONCAT(CONCAT_WS(',', id, grp, price) ORDER BY id SEPARATOR ';'), '') FROM pens").Scan(&o.pens); err != nil {
		t.Fatal(err)
	}
	return o
}

type random struct{ *rand.Rand }

func (r random) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r random) condition(alias string) string {
	c := func() string {
		return strings.ReplaceAll(r.pick("@id = ?", "@id IN (?, ?)", "@grp = ?", "@price > 50", "@id > ? AND @grp < 3", "@isbn LIKE 'i%'", "@title IS NULL",
			"@grp IN (SELECT grp FROM pens WHERE price > 11)", "EXISTS (SELECT 1 FROM pens WHERE pens.id = @id)", "@id BETWEEN ? AND 5", "NOT (@id = ?)",
			"@isbn = 'i3'", "@id = ? OR @grp = 2", "LENGTH(@title) > 2", "CASE WHEN @grp = 1 THEN @id > 2 ELSE 0 END", "@price = @grp XOR @id = 2", "@id"), "@", alias)
	}
	if r.IntN(3) > 0 {
		return c()
	}
	return "(" + c() + ") " + r.pick("AND", "OR") + " (" + c() + ")"
}

func (r random) set(alias string, n int) string {
	var items []string
	for range 1 + r.IntN(n) {
		items = append(items, alias+strings.ReplaceAll(r.pick("price = ?", "price = price + 1", "title = 'it''s ? \\\\'", "grp = grp + price", "price = grp", "title = NULL", "isbn = CONCAT('n', @id)",
			"price = (SELECT MAX(price) FROM pens)", "title = isbn", "grp = IF(price > 50, ?, grp)", "price = @price", "price = COALESCE(fence_token, 0)", "title = DEFAULT"), "@", alias))
	}
	return strings.Join(items, ", ")
}

func (r random) tail() string {
	s := ""
	if r.IntN(4) == 0 {
		s = " ORDER BY " + r.pick("id", "price DESC, id", "grp, id DESC")
		if r.IntN(2) == 0 {
			s += " LIMIT " + r.pick("1", "2", "?")
		}
	}
	return s
}

func (r random) row(columns []string) string {
	var vs []string
	for _, c := range columns {
		switch c {
		case "id":
			vs = append(vs, r.pick("?", "?", "2", "8", "9", "NULL", "DEFAULT"))
		case "isbn":
			vs = append(vs, r.pick("'i1'", "'i3'", "'n1'", "'n2'", "NULL", "CONCAT('i', 2)", "'i?'"))
		default:
			vs = append(vs, r.pick("?", "1", "DEFAULT", "2 + ?", "-3", "TRUE", "LENGTH(?)", "(SELECT MIN(grp) FROM pens)"))
		}
	}
	return strings.Join(vs, ", ")
}

var columnLists = [][]string{{"id", "price"}, {"isbn", "grp"}, {"id", "isbn", "price"}, {"grp", "id"}, {"price"}}

// statement returns a random write. touch is the same write with one more assignment, of the column touched in existing
// rows; "" for a DELETE.
func (r random) statement() (query, touch string) {
	alias, as := "", ""
	switch r.IntN(9) {
	case 0, 1, 2:
		alias, as = "b.", r.pick(" b", " AS b")
	case 3, 4:
		alias = "books."
	case 5:
		alias, as = "value.", r.pick(" value", " AS value")
	}
	where := ""
	if r.IntN(6) > 0 {
		where = " WHERE " + r.condition(alias)
	}
	switch r.IntN(9) {
	case 7, 8:
		return r.joined()
	case 0, 1:
		head := r.pick("UPDATE ", "UPDATE ", "UPDATE LOW_PRIORITY ", "UPDATE IGNORE ") + "books" + as + " SET " + r.set(alias, 3)
		tail := where + r.tail()
		return head + tail, head + ", " + alias + "touched = 1" + tail
	case 2:
		return r.pick("DELETE", "DELETE QUICK", "DELETE IGNORE") + " FROM books" + where0(where, alias) + r.tail(), ""
	}
	columns := columnLists[r.IntN(len(columnLists))]
	head := r.pick("INSERT ", "INSERT ", "INSERT IGNORE ", "REPLACE ") + r.pick("INTO ", "") + "books "
	switch r.IntN(4) {
	case 0:
		var items []string
		for i, v := range strings.Split(r.row([]string{"id", "grp"}), ", ") {
			items = append(items, []string{"id", "grp"}[i]+" = "+v)
		}
		head += "SET " + strings.Join(items, ", ") + r.pick("", "", " AS new")
	case 1:
		head += "(id, price) " + r.query()
	default:
		var rows []string
		for range 1 + r.IntN(3) {
			rows = append(rows, "("+r.row(columns)+")")
		}
		head += "(" + strings.Join(columns, ", ") + ") " + r.pick("VALUES ", "VALUE ") + strings.Join(rows, ", ")
		if r.IntN(12) == 0 {
			head = r.pick("INSERT books () VALUES ()", "INSERT IGNORE INTO books VALUES (), ()", "INSERT INTO books VALUES ()")
		}
	}
	if strings.HasPrefix(head, "REPLACE") || r.IntN(2) == 0 {
		return head, head
	}
	item := func() string {
		return r.pick("price = VALUES(price)", "price = books.price + VALUES(grp)", "price = ?", "title = 'u'", "grp = VALUES(price) + 1", "price = price", "title = books.isbn", "grp = LAST_INSERT_ID(books.id)")
	}
	head += " ON DUPLICATE KEY UPDATE " + item()
	if r.IntN(2) == 0 {
		head += ", " + item()
	}
	return head, head + ", books.touched = 1"
}

// query returns a query of rows to insert.
func (r random) query() string {
	query := "SELECT " + r.pick("id + ?, price", "id, grp", "id + 6, 1", "COUNT(*) + 7, 3", "MAX(id) + ?, SUM(price)", "(SELECT COUNT(*) FROM pens) + 7, ?", "COALESCE(id, 9), NULLIF(?, 2)") + " FROM pens" + r.pick("", " WHERE grp = 1", " GROUP BY id, price, grp HAVING id > 1", " WHERE 1 = 0", " WHERE id = 9", " WHERE id = 2 OR price > ?", " WHERE id > ? ORDER BY price LIMIT 2", " GROUP BY id, grp, price ORDER BY id")
	if r.IntN(3) == 0 {
		query = r.pick("SELECT ?, 3", "SELECT 8, ? LIMIT 1", "SELECT ?, 1 WHERE NOT EXISTS (SELECT 1 FROM pens WHERE grp > ?)", "SELECT 9, COUNT(*)", "SELECT ABS(?), 4 FROM DUAL",
			"SELECT grp + 7, COUNT(*) FROM pens GROUP BY grp", "SELECT grp + ?, MAX(price) FROM pens WHERE id > 1 GROUP BY 1 HAVING MAX(price) > 11", "SELECT 9, MIN(id) FROM pens WHERE 1 = 0 GROUP BY NULL",
			"SELECT COALESCE(MAX(id), 0) + 7, ? FROM pens WHERE grp = ? HAVING COUNT(*) < 2", "SELECT 8, 1 UNION SELECT id + 8, ? FROM pens", "SELECT id + 8, COUNT(*) OVER () FROM pens",
			"SELECT id + 7, grp FROM pens EXCEPT SELECT id + 7, 1 FROM pens WHERE id = ?", "SELECT id + 7, ? FROM pens FOR UPDATE")
	}
	if r.IntN(4) == 0 {
		return "(" + query + ")"
	}
	return query
}

// joined returns a random write of the books and other tables. touch is as in statement. The write assigns no column
// that a join's condition reads: with some plans MariaDB 10.11 joins by the newly assigned value, even without a guard.
func (r random) joined() (query, touch string) {
	deletes := r.IntN(2) == 0
	inner := []string{" JOIN pens p ON p.id = b.id", " JOIN pens p ON b.grp = p.grp", ", pens p", " CROSS JOIN pens p", " STRAIGHT_JOIN pens p ON p.grp = b.grp AND p.price > ?",
		" INNER JOIN (pens p JOIN books c ON c.id = p.id) ON b.grp = p.grp", " JOIN (SELECT id, MAX(price) AS price, MIN(grp) AS grp FROM pens GROUP BY id) p ON p.id = b.id",
		" JOIN books c ON c.grp = b.grp JOIN pens p ON p.id = c.id", " JOIN books c ON c.id = b.id + 1, pens p"}
	from := "books b" + r.pick(inner...)
	if r.IntN(4) == 0 {
		from = r.pick("pens p JOIN books b ON p.grp = b.grp", "pens p, books AS b", "pens p STRAIGHT_JOIN books b ON b.id = p.id OR b.price = p.price", "(pens p, books b)")
	}
	if !deletes && r.IntN(4) == 0 {
		from = r.pick("books b LEFT JOIN pens p ON p.id = b.id", "pens p LEFT JOIN books b ON p.grp = b.grp AND b.id > ?", "books b NATURAL JOIN pens p", "books b JOIN pens p USING (grp)", "books b RIGHT JOIN pens p ON p.id = b.id")
	}
	if !deletes && r.IntN(8) == 0 {
		from = "(" + from + ")"
	}
	where := ""
	if r.IntN(4) > 0 {
		where = " WHERE " + r.pick(r.condition("b."), "p.price > ?", "p.id = b.id", "b.id = ? AND p.grp = 1", "p.grp = b.grp AND "+r.condition("b."), "p.id IN (SELECT id FROM pens WHERE grp = ?)", "b.isbn = 'i2' AND p.id > 1", "p.id = 2")
	}
	if deletes {
		return r.pick("DELETE b FROM "+from, "DELETE FROM b USING "+from, "DELETE b.* FROM "+from, "DELETE QUICK b FROM "+from, "DELETE b, p FROM "+from, "DELETE FROM p, b USING "+from) + where, ""
	}
	item := func() string {
		return r.pick("b.price = ?", "b.price = p.price", "b.title = CONCAT('p', p.id)", "b.price = b.price + 1", "b.price = COALESCE(b.fence_token, 0)", "b.title = b.isbn",
			"p.price = b.price", "p.price = p.price + 1", "p.grp = ?", "b.title = DEFAULT", "b.isbn = CONCAT('n', b.id)")
	}
	list := r.pick("b.price = ?", "b.title = CONCAT('p', p.id)")
	for range r.IntN(3) {
		list += ", " + item()
	}
	if !deletes && r.IntN(8) == 0 { // only columns of the books can be assigned
		from = r.pick("books b, (SELECT id, MAX(price) AS cost FROM pens GROUP BY id) p", "books b JOIN (SELECT 2 AS id, ? AS cost) p ON p.id <= b.id", "(books b)")
		list, where = r.pick("price = ?", "title = CONCAT('p', b.id), price = price + 1", "price = b.price + ?"), " WHERE "+r.pick("b.id = ?", "b.grp = 1", "b.price > ?")
	}
	head := r.pick("UPDATE ", "UPDATE ", "UPDATE IGNORE ") + from + " SET " + list
	return head + where, head + ", b.touched = 1" + where
}

// where0 returns the condition of a DELETE, which can't have an alias in every version.
func where0(where, alias string) string {
	if alias != "" {
		return strings.ReplaceAll(where, alias, "books.")
	}
	return where
}

var literals = regexp.MustCompile(`'(?:[^']|'')*'`)

func (r random) args(query string) (args []any) {
	for range strings.Count(literals.ReplaceAllString(query, ""), "?") {
		args = append(args, int64(1+r.IntN(7)))
	}
	return args
}

// rulesets are the rules that guard the random statements.
var rulesets = map[string][]sqlfence.Rule{
	"row":    {sqlfence.RowFence("fence_token")},
	"ledger": {sqlfence.Ledger()},
	"serial": {sqlfence.RowFence("fence_token"), sqlfence.Serial("serial")},
	"key":    {sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
	"new":    {sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.UnfencedInserts()},
	"both":   {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
}

// TestRandomWrites compares random writes with the same writes on the bare driver, with tokens above and below the
// stored tokens of the reached rows.
func TestRandomWrites(t *testing.T) {
	dsn := setup(t)
	seed, count := harness.Seed(t), harness.Rounds(t, 40)
	for _, m := range modes {
		for name, rules := range rulesets {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				plain, guarded := open(t, m.with(t, dsn)), fence(t, m.with(t, dsn), rules...)
				r := random{rand.New(rand.NewPCG(seed, 1))}
				tally := map[string]int{}
				for range count {
					one(t, r, m, name, plain, guarded, tally)
				}
				t.Logf("seed %d: %v", seed, tally)
				if tally["fresh"] < count/10 || tally["stale"] < count/10 {
					t.Errorf("too few of a kind: %v", tally)
				}
			})
		}
	}
}

func one(t *testing.T, r random, m mode, rules string, plain, guarded *sql.DB, tally map[string]int) {
	t.Helper()
	exec(t, plain, "DELETE FROM books")
	for id := 1; id <= 6; id++ {
		var mark any = int64(r.IntN(4) + 1)
		if r.IntN(6) == 0 {
			mark = nil
		}
		exec(t, plain, "INSERT INTO books (id, isbn, grp, price, fence_token, serial) VALUES (?, ?, ?, ?, ?, 1)", id, fmt.Sprint("i", id), r.IntN(3), r.IntN(100), mark)
	}
	newest := int64(3)
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', ?)", newest)
	query, touch := r.statement()
	args := r.args(query)
	token := int64(1 + r.IntN(5))
	asks := rules == "ledger" || rules == "both"
	if asks {
		token = min(token, newest)
	}
	before := state(t, plain)
	want := run(t, context.Background(), plain, query, args...)
	stale := false
	if touch == "" { // a DELETE: compare the deleted rows
		for id, b := range before {
			_, left := want.left[id]
			stale = stale || !left && b.fence > token
		}
	} else {
		for id, b := range run(t, context.Background(), plain, touch, args...).left {
			stale = stale || b.touched && before[id].fence > token
		}
	}
	switch {
	case rules == "ledger":
		stale = token < newest
	case asks:
		stale = stale || token < newest
	}
	got := run(t, holding(token), guarded, query, args...)
	fail := func(format string, a ...any) {
		t.Helper()
		t.Errorf("%s\n%s %v, token %d\nbefore %v\nbare   %v %v, %d %d\nfenced %v %v, %d %d", fmt.Sprintf(format, a...), query, args, token, before, want.err, want.left, want.affected, want.id, got.err, got.left, got.affected, got.id)
	}
	if errors.Is(got.err, sqlfence.ErrUnguardable) || errors.Is(got.err, sqlfence.ErrOutOfScope) {
		tally["refused"]++
		if same := fmt.Sprint(got.left) == fmt.Sprint(before); !same {
			fail("refused, and changed")
		}
		return
	}
	switch {
	case errors.Is(got.err, sqlfence.ErrStale):
		tally["stale"]++
		if fmt.Sprint(got.left) != fmt.Sprint(before) {
			fail("stale, and changed")
		}
		ignored := strings.Contains(query, "IGNORE") || want.err != nil
		limited := strings.HasPrefix(query, "DELETE") && strings.Contains(query, "LIMIT") // checks rows beyond the limit
		if !stale && !ignored && !limited {
			fail("not stale")
		}
		var s *sqlfence.StaleError
		if errors.As(got.err, &s) && (s.Current <= token || s.Current > 4) {
			fail("it says %d", s.Current)
		}
	case want.err != nil:
		tally["error"]++
		if number(got.err) != number(want.err) {
			fail("another error")
		}
	case got.err != nil:
		fail("an error")
	case stale && fmt.Sprint(got.left) != fmt.Sprint(before):
		fail("LANDED")
	case stale && !asks:
		fail("nothing was written, in silence")
	case stale: // a write that meets no row may skip the ledger's check
	default:
		tally["fresh"]++
		same(t, fail, m, rules, query, before, want, got, token)
	}
}

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// same compares the rows that the bare and the guarded execution have left.
func same(t *testing.T, fail func(string, ...any), m mode, rules, query string, before map[int64]book, want, got outcome, token int64) {
	t.Helper()
	ids := func(of map[int64]book) (all []int64) {
		for id := range of {
			all = append(all, id)
		}
		slices.Sort(all)
		return all
	}
	if want.pens != got.pens {
		fail("other pens: %s, want %s", got.pens, want.pens)
	}
	if !slices.Equal(ids(want.left), ids(got.left)) {
		fail("other rows")
		return
	}
	marks := rules != "ledger"
	for id, w := range want.left {
		g, b := got.left[id], before[id]
		if w.rest != g.rest && !strings.Contains(query, "LAST_INSERT_ID") { // the database generates other ids
			fail("row %d is another", id)
			return
		}
		_, old := before[id]
		changed := !old || w.rest != b.rest
		if rules == "new" && !old && g.fence == 0 { // the statement doesn't show the row's key
			continue
		}
		switch {
		case !marks && g.fence != w.fence, marks && changed && g.fence != token, marks && !changed && g.fence != b.fence && g.fence != token:
			fail("row %d has the mark %d", id, g.fence)
			return
		case rules == "serial" && old && changed && g.serial <= b.serial, rules == "serial" && !old && g.serial < 1:
			fail("row %d has the serial %d", id, g.serial)
			return
		}
	}
	counts := m.found && !strings.Contains(query, "DUPLICATE") || !strings.Contains(query, "UPDATE")
	if counts && got.affected != want.affected {
		fail("other counts")
	}
	// An upsert that changes no other column still changes the stored token.
	if !strings.Contains(query, "DUPLICATE") && min(got.id, 10) != min(want.id, 10) {
		fail("another id")
	}
}
