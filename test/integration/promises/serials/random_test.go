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
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Random writes that may assign the serial. Each is first sent by the bare driver, in a transaction that is rolled
// back. With sqlfence a written row's serial always rises. A statement is refused only if a serial wouldn't rise on the
// bare driver; every other statement has the same effect as there.
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
				// A text column stores no serial that can be counted, except NULL.
				if !testing.Short() && typ != "text" && (l.raised < count/20 || l.refused < count/20 || l.compared == 0 || l.conflicts == 0) {
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
	from string // a column of the joined table

	raised, refused, failed, others, compared, conflicts int
}

func newSerialLab(t *testing.T, b harness.Base, typ string, seed uint64) *serialLab {
	sh := harness.Setting{Base: b, Level: sql.LevelDefault}.Shop(t, sqlfence.Serial("serial"))
	sh.Exec(t, "ALTER TABLE books ADD COLUMN serial "+typ+" DEFAULT 1") // the default that sqlfence inserts
	sh.Exec(t, "CREATE TABLE notes (book integer, n bigint)")
	sh.Exec(t, "INSERT INTO notes VALUES (1, 3), (2, 9), (3, NULL), (4, 12), (5, 7)")
	return &serialLab{Shop: sh, rand: rand.New(rand.NewPCG(seed, uint64(len(typ)))), typ: typ}
}

// A labRow is a row's content. Its price counts the writes.
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

// number returns a serial as a number, and whether it is a whole number.
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

// start stores serials in the rows by the base driver.
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

// A trial is a statement with its results by both drivers.
type trial struct {
	query             string
	assigns, compared bool             // the statement assigns the serial; it is compared otherwise
	before            map[int64]labRow // the rows before it
	bare, after       map[int64]labRow // the rows after the bare driver's execution, and after the fenced one's
	bareErr, err      error
}

// step sends a statement by both drivers.
func (l *serialLab) step(t *testing.T) {
	l.start(t)
	var r trial
	r.before = l.rows(t, l.Plain)
	r.query, r.assigns = l.write()
	r.bare, r.bareErr = l.sendBare(t, r.query)
	ctx := t.Context()
	if !r.assigns && l.rand.IntN(2) == 0 {
		ctx, r.compared = harness.WithSerial(t, int64(l.rand.IntN(9))), true
	}
	_, r.err = l.DB.ExecContext(ctx, r.query, l.args...)
	r.after = l.rows(t, l.Plain)

	faults := []string{l.fallen(&r), l.different(&r)}
	if r.err != nil && fmt.Sprint(r.after) != fmt.Sprint(r.before) {
		faults = append(faults, "it was refused and changed rows")
	}
	for _, fault := range faults {
		if fault != "" {
			t.Errorf("%s\nby %s, %v\n\tbare: %v, %v\n\tfenced: %v, %v\n\tbefore: %v", fault, r.query, l.args, r.bare, r.bareErr, r.after, r.err, r.before)
		}
	}
}

// sendBare sends a statement by the bare driver. It returns the rows before the rollback.
func (l *serialLab) sendBare(t *testing.T, query string) (rows map[int64]labRow, err error) {
	t.Helper()
	tx, beginErr := l.Plain.Begin()
	if beginErr != nil {
		t.Fatal(beginErr)
	}
	if _, err = tx.Exec(query, l.args...); err == nil {
		rows = l.rows(t, tx)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	return rows, err
}

// fallen describes a written row whose serial hasn't risen.
func (l *serialLab) fallen(r *trial) string {
	for id, row := range r.after {
		old, there := r.before[id]
		if !there || row == old {
			continue
		}
		from, ok1 := l.number(old.serial)
		to, ok2 := l.number(row.serial)
		if s, isText := row.serial.(string); isText && l.typ == "text" {
			var err error
			to, err = strconv.ParseInt(s, 10, 64)
			ok1, ok2 = true, err == nil
		}
		if !ok1 || !ok2 || to <= from {
			return fmt.Sprintf("the serial of row %d went from %v to %v", id, old.serial, row.serial)
		}
	}
	return ""
}

// different describes any other difference from the bare driver, which is an error.
func (l *serialLab) different(r *trial) string {
	switch {
	case r.compared:
		l.compared++
		if errors.Is(r.err, sqlfence.ErrConflict) {
			l.conflicts++
		}
	case !r.assigns:
		if (r.bareErr == nil) != (r.err == nil) && !l.odd(r.before) && !l.atMost(r.before) {
			return "it differs from the bare driver"
		}
	case r.bareErr != nil:
		l.failed++
		written := false // false: PostgreSQL rejected a constant while planning
		for id, old := range r.before {
			written = written || r.after[id] != old
		}
		if r.err == nil && written {
			return "it passed, and the bare driver refuses it"
		}
	case l.odd(r.before) || l.odd(r.bare) || l.typ == "text" || l.floats(r.query):
		l.others++
	default:
		return l.differentAssigned(r)
	}
	return ""
}

// differentAssigned is different for a statement that assigns whole numbers.
func (l *serialLab) differentAssigned(r *trial) string {
	lower, refused := l.lowers(r)
	switch {
	case refused:
		l.refused++
	case l.typ == "numeric" && harness.SQLState(r.err) == "22003":
		l.failed++ // too large for an integer
	case lower:
		return "it doesn't raise the serial of a row"
	case r.err != nil:
		return "it raises the serial and is refused"
	case fmt.Sprint(r.bare) != fmt.Sprint(r.after):
		return "it has another effect than on the bare driver"
	default:
		l.raised++
	}
	return ""
}

// lowers reports whether a row's serial doesn't rise on the bare driver, and whether the statement was refused because
// of a row.
func (l *serialLab) lowers(r *trial) (lower, refused bool) {
	var conflict *sqlfence.ConflictError
	assigned := errors.As(r.err, &conflict) && conflict.Assigned
	for id, row := range r.bare {
		old, there := r.before[id]
		if !there || row.price == old.price {
			continue
		}
		from, _ := l.number(old.serial)
		to, _ := l.number(row.serial)
		if to > from && row.serial != nil {
			continue
		}
		lower = true
		refused = refused || assigned && conflict.Current == from
	}
	return lower, refused
}

// odd reports whether a row has a serial that isn't a whole number.
func (l *serialLab) odd(rows map[int64]labRow) bool {
	for _, r := range rows {
		if _, ok := l.number(r.serial); !ok {
			return true
		}
	}
	return false
}

// floats reports whether MySQL may calculate with floating-point numbers, as it does where an operand is one, a text or
// NULL. MySQL rounds these numbers differently in a guard's comparison than in storage.
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
