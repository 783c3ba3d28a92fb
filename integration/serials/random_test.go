package serials_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// Random writes that may assign the serial, each on the bare driver first, in a
// transaction that is rolled back. The serial of a row that is written rises,
// always. A statement is refused only where it wouldn't on the bare driver; any
// other does what it does there.
func TestSerialRandomAssignments(t *testing.T) {
	count := 400
	if harness.RaceEnabled {
		count = 150
	}
	seed := harness.Seed(t)
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		types := []string{"bigint", "integer"}
		if b.Dialect == sqlfence.Postgres {
			types = append(types, "smallint", "numeric")
		} else if b.Dialect == sqlfence.SQLite {
			types = append(types, "text", "")
		}
		for _, typ := range types {
			t.Run("as "+typ, func(t *testing.T) {
				l := newSerialLab(t, b, typ, seed)
				for range harness.Rounds(t, count) {
					l.step(t)
					if t.Failed() {
						return
					}
				}
				t.Logf("%d raised as on the bare driver, %d refused, %d failed, %d by other values, %d compared, %d conflicts",
					l.raised, l.refused, l.failed, l.others, l.compared, l.conflicts)
				// A text column holds no serial that could be counted on, but NULL.
				if typ != "text" && (l.raised < count/20 || l.refused < count/20 || l.compared == 0 || l.conflicts == 0) {
					t.Error("too few of a kind to prove anything")
				}
			})
		}
	})
}

type serialLab struct {
	*harness.Shop
	rand *rand.Rand
	typ  string
	args []any
	from string // the column of the joined table

	raised, refused, failed, others, compared, conflicts int
}

func newSerialLab(t *testing.T, b harness.Base, typ string, seed uint64) *serialLab {
	sh := harness.Setting{Base: b, Level: sql.LevelDefault}.Shop(t, sqlfence.Serial("serial"))
	sh.Exec(t, "ALTER TABLE books ADD COLUMN serial "+typ+" DEFAULT 1") // as sqlfence inserts it
	sh.Exec(t, "CREATE TABLE notes (book integer, n bigint)")
	sh.Exec(t, "INSERT INTO notes VALUES (1, 3), (2, 9), (3, NULL), (4, 12), (5, 7)")
	return &serialLab{Shop: sh, rand: rand.New(rand.NewPCG(seed, uint64(len(typ)))), typ: typ}
}

// A labRow is what a row holds; its price counts the writes.
type labRow struct {
	price  int64
	serial any
}

func (l *serialLab) rows(t *testing.T, db interface {
	Query(string, ...any) (*sql.Rows, error)
}) map[int64]labRow {
	t.Helper()
	rows, err := db.Query("SELECT id, price, serial FROM books")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := make(map[int64]labRow)
	for rows.Next() {
		var id int64
		var r labRow
		if err := rows.Scan(&id, &r.price, &r.serial); err != nil {
			t.Fatal(err)
		}
		if s, ok := r.serial.([]byte); ok {
			r.serial = string(s)
		}
		if s, ok := r.serial.(string); ok && l.typ == "numeric" {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil {
				r.serial = n
			}
		}
		all[id] = r
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// number returns a serial as a number, and whether it is a whole one.
func (l *serialLab) number(serial any) (int64, bool) {
	switch s := serial.(type) {
	case nil:
		return 0, true
	case int64:
		return s, true
	}
	return 0, false
}

func (l *serialLab) pick(of ...string) string { return of[l.rand.IntN(len(of))] }

// start puts serials into the rows around the fence.
func (l *serialLab) start(t *testing.T) {
	l.Exec(t, "DELETE FROM books")
	for id := 1; id <= 5; id++ {
		serial := l.pick("NULL", "0", "1", "3", "7", "7", "8", "12", "-4")
		if l.rand.IntN(40) == 0 && l.typ == "bigint" {
			serial = strconv.Itoa(math.MaxInt64 - l.rand.IntN(2))
		}
		if l.rand.IntN(20) == 0 && (l.typ == "text" || l.typ == "") {
			serial = l.pick("'abc'", "'7'", "7.5", "x'37'")
		}
		l.Exec(t, fmt.Sprintf("INSERT INTO books (id, isbn, price, serial) VALUES (%d, 'i%[1]d', 10, %s)", id, serial))
	}
}

func (l *serialLab) param(v any) string {
	l.args = append(l.args, v)
	if l.Dialect == sqlfence.SQLite {
		return "?"
	}
	return "$" + strconv.Itoa(len(l.args))
}

var castTypes = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {"integer", "bigint", "numeric", "text"},
	sqlfence.SQLite:   {"integer", "bigint", "numeric", "text"},
	sqlfence.MySQL:    {"signed", "unsigned", "decimal(30)", "char"},
}

// value writes an expression; of is what names the row, or nothing.
func (l *serialLab) value(of string, depth int) string {
	if depth > 0 && l.rand.IntN(2) == 0 {
		a, deeper := func() string { return l.value(of, depth-1) }, l.pick("+", "-", "case", "coalesce", "max", "brackets", "cast", "minus", "query")
		switch deeper {
		case "case":
			return "CASE WHEN " + of + "price > " + strconv.Itoa(l.rand.IntN(20)) + " THEN " + a() + " ELSE " + a() + " END"
		case "coalesce":
			return "COALESCE(" + a() + ", " + a() + ")"
		case "max":
			if l.Dialect != sqlfence.SQLite {
				return "GREATEST(" + a() + ", " + a() + ")"
			}
			return "max(" + a() + ", " + a() + ")"
		case "brackets":
			return "(" + a() + ")"
		case "cast":
			return "CAST(" + a() + " AS " + l.pick(castTypes[l.Dialect]...) + ")"
		case "minus":
			return "- " + a()
		case "query":
			return "(SELECT max(n) FROM notes WHERE n < " + a() + ")"
		}
		return a() + " " + deeper + " " + a()
	}
	switch l.rand.IntN(12) {
	case 0:
		return l.param(int64(l.rand.IntN(20) - 3))
	case 1:
		return l.param([]any{nil, int64(math.MaxInt64), "9", "abc", 9.0, 7.4, int64(1) << 40, "8"}[l.rand.IntN(8)])
	case 2:
		return l.pick("NULL", "'9'", "'abc'", "7.4", "8.5", "9e18", "1e19", "9007199254740993", "9223372036854775807", "-9223372036854775808", "true")
	case 3, 4:
		return strconv.Itoa(l.rand.IntN(20) - 3)
	case 5:
		if l.from != "" {
			return l.from
		}
	}
	return of + "serial + " + strconv.Itoa(l.rand.IntN(3))
}

// set writes a SET list that counts the write and may assign the serial.
func (l *serialLab) set(of, as string) (list string, assigns bool) {
	count := "price = " + of + "price + 1"
	name := l.pick("serial", "Serial", `"serial"`)
	row := func(x string) string {
		if l.Dialect == sqlfence.Postgres && l.rand.IntN(2) == 0 {
			return "ROW(" + x + ")"
		}
		return "(" + x + ")"
	}
	value := func() string { return l.value(as, 2) }
	nth := l.rand.IntN(8)
	if l.Dialect == sqlfence.MySQL && nth != 0 { // which has no lists of columns
		nth = 5 + l.rand.IntN(3)
	}
	switch nth {
	case 0:
		return count, false
	case 1:
		return "(price, " + name + ") = " + row(of+"price + 1, "+value()), true
	case 2:
		return "(" + name + ", price) = " + row(value()+", "+of+"price + 1"), true
	case 3:
		return count + ", (isbn, " + name + ", writer) = " + row("isbn, "+value()+", 1"), true
	case 4:
		if l.Dialect == sqlfence.SQLite {
			return "(" + name + ") = " + value() + ", " + count, true
		}
		return "(" + name + ") = ROW(" + value() + "), " + count, true
	case 5:
		equals := "="
		if l.Dialect == sqlfence.SQLite {
			equals = "=="
		}
		return name + equals + value() + "," + count, true
	}
	return count + ", " + name + " = " + value(), true
}

// write writes a statement.
func (l *serialLab) write() (query string, assigns bool) {
	l.args, l.from = nil, ""
	where := l.pick("", " WHERE %sid = 1", " WHERE %sid > 3", " WHERE %sid IN (1, 2)", " WHERE %sid = 2", " WHERE %sid = 5", " WHERE %sid = 4")
	at := func(of string) string {
		if where == "" {
			return ""
		}
		return fmt.Sprintf(where, of)
	}
	kind := l.pick("update", "update", "alias", "from", "upsert", "upsert", "merge")
	if kind == "merge" && l.Dialect != sqlfence.Postgres || kind == "from" && l.Dialect == sqlfence.MySQL {
		kind = "update"
	}
	switch kind {
	case "alias":
		list, assigns := l.set("b.", "b.")
		return "UPDATE books AS b SET " + list + at("b."), assigns
	case "from":
		l.from = "notes.n"
		list, assigns := l.set("books.", "books.")
		return "UPDATE books SET " + list + " FROM notes WHERE notes.book = books.id" + strings.Replace(at("books."), "WHERE", "AND", 1), assigns
	case "upsert":
		l.from = "excluded.serial"
		id := strconv.Itoa(1 + l.rand.IntN(6))
		names, values := "id, isbn", id+", 'i"+id+"'"
		if l.rand.IntN(2) == 0 {
			names, values = names+", serial", values+", "+strconv.Itoa(l.rand.IntN(15))
		}
		list, assigns := l.set("books.", "books.")
		return "INSERT INTO books (" + names + ") VALUES (" + values + ") ON CONFLICT (id) DO UPDATE SET " + list, assigns
	case "merge":
		l.from = "notes.n"
		list, assigns := l.set("books.", "books.")
		return "MERGE INTO books USING notes ON notes.book = books.id WHEN MATCHED AND notes.book > " + strconv.Itoa(l.rand.IntN(5)) +
			" THEN UPDATE SET " + list, assigns
	}
	list, assigns := l.set("", "")
	return "UPDATE books SET " + list + at(""), assigns
}

// step sends one statement both ways.
func (l *serialLab) step(t *testing.T) {
	l.start(t)
	before := l.rows(t, l.Plain)
	query, assigns := l.write()

	tx, err := l.Plain.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_, bareErr := tx.Exec(query, l.args...)
	var bare map[int64]labRow
	if bareErr == nil {
		bare = l.rows(t, tx)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	ctx, compared := t.Context(), false
	if !assigns && l.rand.IntN(2) == 0 {
		ctx, compared = harness.WithSerial(t, int64(l.rand.IntN(9))), true
	}
	_, fencedErr := l.DB.ExecContext(ctx, query, l.args...)
	after := l.rows(t, l.Plain)
	fail := func(format string, args ...any) {
		t.Errorf(format, args...)
		t.Errorf("by %s, %v\n\tbare: %v, %v\n\tfenced: %v, %v\n\tbefore: %v", query, l.args, bare, bareErr, after, fencedErr, before)
	}

	// The promise: a row that was written has risen.
	for id, r := range after {
		old, there := before[id]
		if !there || r == old {
			continue
		}
		from, ok1 := l.number(old.serial)
		to, ok2 := l.number(r.serial)
		if s, isText := r.serial.(string); isText && l.typ == "text" {
			to, err = strconv.ParseInt(s, 10, 64)
			ok1, ok2 = true, err == nil
		}
		if !ok1 || !ok2 || to <= from {
			fail("the serial of row %d went from %v to %v", id, old.serial, r.serial)
		}
	}
	if fencedErr != nil && fmt.Sprint(after) != fmt.Sprint(before) {
		fail("it was refused and changed rows")
	}

	// Nothing else is different.
	var conflict *sqlfence.ConflictError
	assigned := errors.As(fencedErr, &conflict) && conflict.Assigned
	switch {
	case compared:
		l.compared++
		if errors.Is(fencedErr, sqlfence.ErrConflict) {
			l.conflicts++
		}
	case !assigns:
		if (bareErr == nil) != (fencedErr == nil) && !l.odd(before) && !l.atMost(before) {
			fail("it differs from the bare driver")
		}
	case bareErr != nil:
		l.failed++
		written := false // else a constant is out of range, which PostgreSQL tells while planning
		for id, old := range before {
			written = written || after[id] != old
		}
		if fencedErr == nil && written {
			fail("it passed, and the bare driver refuses it")
		}
	case l.odd(before) || l.odd(bare) || l.typ == "text" || l.floats(query):
		l.others++
	default:
		lower := false
		for id, r := range bare {
			old, there := before[id]
			if !there || r.price == old.price {
				continue
			}
			from, _ := l.number(old.serial)
			to, _ := l.number(r.serial)
			if to > from && r.serial != nil {
				continue
			}
			lower = true
			if assigned && conflict.Current == from {
				l.refused++
				return
			}
		}
		switch {
		case l.typ == "numeric" && harness.SQLState(fencedErr) == "22003":
			l.failed++ // too large for an integer
		case lower:
			fail("it doesn't raise the serial of a row")
		case fencedErr != nil:
			fail("it raises the serial and is refused")
		case fmt.Sprint(bare) != fmt.Sprint(after):
			fail("it has another effect than on the bare driver")
		default:
			l.raised++
		}
	}
}

// odd reports whether a row has a serial that is no whole number.
func (l *serialLab) odd(rows map[int64]labRow) bool {
	for _, r := range rows {
		if _, ok := l.number(r.serial); !ok {
			return true
		}
	}
	return false
}

// floats reports whether MySQL may calculate with floating-point numbers, as it does where an operand is
// one, a text or NULL. It rounds them otherwise where a guard compares than where it stores them.
func (l *serialLab) floats(query string) bool {
	if l.Dialect != sqlfence.MySQL {
		return false
	}
	for _, arg := range l.args {
		if _, whole := arg.(int64); !whole {
			return true
		}
	}
	return slices.ContainsFunc([]string{"7.4", "8.5", "9e18", "1e19", "'9'", "'abc'", "NULL", "char"}, func(s string) bool { return strings.Contains(query, s) })
}

// atMost reports whether a row has the highest serial.
func (l *serialLab) atMost(rows map[int64]labRow) bool {
	for _, r := range rows {
		if r.serial == int64(math.MaxInt64) {
			return true
		}
	}
	return false
}
