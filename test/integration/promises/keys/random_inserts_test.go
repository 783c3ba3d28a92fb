package keys_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// insertRules are the rules that random inserts are guarded by.
var insertRules = []struct {
	name                      string
	rules                     []sqlfence.Rule
	fence, ledger, keyed, new bool
}{
	{name: "row fence", fence: true, rules: []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
	{name: "ledger", ledger: true, rules: []sqlfence.Rule{sqlfence.Ledger()}},
	{name: "both", fence: true, ledger: true, rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.RowFence("fence_token")}},
	{name: "row fence of keys", fence: true, keyed: true, rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}},
	{name: "ledger of keys", ledger: true, keyed: true, rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
	{name: "both of keys", fence: true, ledger: true, keyed: true,
		rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Key("id")}},
	{name: "new rows", fence: true, new: true, rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.UnfencedInserts()}},
	{name: "new rows of keys", fence: true, keyed: true, new: true,
		rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.UnfencedInserts()}},
	{name: "new rows of the ledger", ledger: true, keyed: true, new: true,
		rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id"), sqlfence.UnfencedInserts()}},
}

// Random inserts, upserts and replacements, with tokens for some of the rows. The test expects:
//
//   - Each row that is written has its token in the context. This token isn't older than the stored one, and is stored.
//   - A statement that succeeds leaves the rows that the bare driver leaves, except for the stored tokens.
//   - A statement that the bare driver accepts is refused by one of sqlfence's errors, or not at all.
func TestRandomInserts(t *testing.T) {
	first, count := harness.Seed(t), harness.Rounds(t, 60)
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, r := range insertRules {
			t.Run(r.name, func(t *testing.T) {
				l := &insertLab{Shop: harness.Setting{Base: b}.Shop(t, r.rules...), fence: r.fence, ledger: r.ledger, keyed: r.keyed, new: r.new}
				numberIDs(t, l.Shop, 7)
				for n := range count {
					seed := first + uint64(n)
					l.r = rand.New(rand.NewPCG(seed, 5))
					if l.try(t); t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
				t.Logf("%d landed, %d refused, %d invalid", l.landed, l.refused, l.invalid)
				if count >= 50 && (l.landed == 0 && (l.new || !l.keyed) || l.refused == 0 && !l.new) {
					t.Error("too few landed or were refused to show anything")
				}
			})
		}
	})
}

// An insertLab tries random inserts.
type insertLab struct {
	*harness.Shop
	r                         *rand.Rand
	fence, ledger, keyed, new bool

	landed, refused, invalid int
}

// A book is a row, and mark what its last column holds.
type book struct {
	isbn        string
	price, mark int64
}

func (l *insertLab) try(t *testing.T) {
	w, certain := l.statement()
	tokens := map[string]int64{}
	ctx := t.Context()
	for _, name := range []string{"books", "books/1", "books/2", "books/3", "books/7", "books/8", "books/9"} {
		if (name != "books") == l.keyed && l.r.IntN(6) > 0 && (!l.keyed || l.r.IntN(2) == 0) {
			tokens[name] = int64(3 + l.r.IntN(5))
			if l.ledger && l.r.IntN(4) > 0 {
				tokens[name] = 5
			}
			ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: tokens[name]})
		}
	}
	if l.keyed && l.r.IntN(2) == 0 { // one token alone
		name := fmt.Sprintf("books/%d", []int{1, 2, 7, 8}[l.r.IntN(4)])
		tokens, ctx = map[string]int64{name: 5}, sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: 5})
	}

	l.reset(t)
	before := l.books(t)
	form := harness.Forms[l.r.IntN(3)]
	bareRows, bare := form.Run(t.Context(), l.Plain, w)
	want := l.books(t)
	l.reset(t)
	rows, err := form.Run(ctx, l.DB, w)
	got := l.books(t)
	switch {
	case err != nil:
		if fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("failed and left %v", got)
		}
		if bare != nil || !certain {
			l.invalid++
			break
		}
		l.refused++
		if !slices.ContainsFunc(harness.Sentinels, func(s error) bool { return errors.Is(err, s) }) && !errors.Is(err, sqlfence.ErrNotIssued) {
			t.Errorf("the bare driver takes it: %v", err)
		}
	case bare != nil && certain:
		t.Errorf("the bare driver refuses it: %v", bare)
	default:
		l.landed++
		if l.Dialect == sqlfence.MySQL && strings.Contains(w.Query, "ON CONFLICT") {
			rows = bareRows // of a row that is left as it is, the mark is changed
		}
		if certain && (rows != bareRows || unmarked(got) != unmarked(want)) {
			t.Errorf("%d rows, left %s; the bare driver %d, %s", rows, unmarked(got), bareRows, unmarked(want))
		}
		l.check(t, before, got, tokens)
	}
	if t.Failed() {
		t.Errorf("%s with %v, tokens %v, by %s: %v", w.Query, w.Args, tokens, form.Name, err)
	}
}

// check checks the rows that a statement has written.
func (l *insertLab) check(t *testing.T, before, after map[int64]book, tokens map[string]int64) {
	t.Helper()
	token := func(id int64) (int64, bool) {
		name := "books"
		if l.keyed {
			name = fmt.Sprintf("books/%d", id)
		}
		value, ok := tokens[name]
		return value, ok
	}
	for id, was := range before {
		is, stays := after[id]
		value, held := token(id)
		switch {
		case stays && is == was:
		case !held:
			t.Errorf("row %d was written without its token: %v, %v", id, was, is)
		case l.fence && value < was.mark:
			t.Errorf("row %d with the mark %d was written with %d", id, was.mark, value)
		case l.ledger && value != 5:
			t.Errorf("row %d was written with %d, which isn't the newest", id, value)
		case l.fence && stays && is.mark != value:
			t.Errorf("row %d was written with %d, and has the mark %d", id, value, is.mark)
		}
	}
	for id, is := range after {
		if _, old := before[id]; old {
			continue
		}
		for was, b := range before {
			if l.keyed && b.isbn == is.isbn && after[was] != b {
				t.Errorf("row %d came to be %d", was, id)
			}
		}
		value, held := token(id)
		switch {
		case !held && !l.new:
			t.Errorf("row %d was added without its token", id)
		case l.fence && held && is.mark != value && !(l.new && is.mark == 0):
			t.Errorf("row %d was added with %d, and has the mark %d", id, value, is.mark)
		case l.fence && !held && is.mark != 0:
			t.Errorf("row %d was added without a token, and has the mark %d", id, is.mark)
		case l.ledger && held && value != 5:
			t.Errorf("row %d was added with %d, which isn't the newest", id, value)
		}
	}
}

// reset leaves the books 1 to 3, each with a mark, and in the ledger 5 for all names.
func (l *insertLab) reset(t *testing.T) {
	t.Helper()
	l.Exec(t, "DELETE FROM books")
	l.Exec(t, "INSERT INTO books (id, isbn, fence_token) VALUES (1, 'i1', 5), (2, 'i2', 4), (3, 'i3', 6)")
	if restart := map[sqlfence.Dialect]string{
		sqlfence.Postgres: "ALTER TABLE books ALTER id RESTART WITH 7",
		sqlfence.MySQL:    "ALTER TABLE books AUTO_INCREMENT = 7",
	}[l.Dialect]; restart != "" {
		l.Exec(t, restart)
	}
	if l.landed+l.refused+l.invalid == 0 {
		for _, name := range []string{"books", "books/1", "books/2", "books/3", "books/7", "books/8", "books/9"} {
			l.Raise(t, name, 5)
		}
		l.Exec(t, "DELETE FROM pens")
		l.Exec(t, "INSERT INTO pens (id, price) VALUES (1, 30), (2, 31), (7, 32), (8, 33)")
	}
}

func (l *insertLab) books(t *testing.T) map[int64]book {
	t.Helper()
	rows, err := l.Plain.QueryContext(context.WithoutCancel(t.Context()), "SELECT id, COALESCE(isbn, ''), price, COALESCE(fence_token, 0) FROM books")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[int64]book{}
	for rows.Next() {
		var id int64
		var b book
		if err := rows.Scan(&id, &b.isbn, &b.price, &b.mark); err != nil {
			t.Fatal(err)
		}
		all[id] = b
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func unmarked(books map[int64]book) string {
	all := map[int64]book{}
	for id, b := range books {
		b.mark = 0
		all[id] = b
	}
	return fmt.Sprint(all)
}

// An insertWriter writes one random statement.
type insertWriter struct {
	r       *rand.Rand
	dialect sqlfence.Dialect
	args    []any
	certain bool // it does the same in each execution
}

// statement returns a random statement, and whether it does the same each time.
func (l *insertLab) statement() (w harness.Write, certain bool) {
	i := &insertWriter{r: l.r, dialect: l.Dialect, certain: true}
	return harness.Write{Query: i.statement(), Args: i.args}.As(l.Dialect), i.certain
}

func (i *insertWriter) one(of ...string) string { return of[i.r.IntN(len(of))] }

func (i *insertWriter) arg(v any) string {
	i.args = append(i.args, v)
	return fmt.Sprintf("$%d", len(i.args))
}

func (i *insertWriter) statement() string {
	sqlite := i.dialect == sqlfence.SQLite
	verb := "INSERT"
	if i.dialect == sqlfence.MySQL {
		verb = i.one("INSERT", "INSERT", "INSERT", "INSERT IGNORE", "INSERT LOW_PRIORITY", "REPLACE")
	}
	if sqlite {
		verb = i.one("INSERT", "INSERT", "INSERT", "INSERT OR IGNORE", "INSERT OR ABORT", "INSERT OR REPLACE", "REPLACE")
	}
	columns := []string{"id", "isbn", "price"}
	i.r.Shuffle(3, func(a, b int) { columns[a], columns[b] = columns[b], columns[a] })
	if i.r.IntN(4) == 0 {
		columns = slices.DeleteFunc(columns, func(c string) bool { return c == "id" })
	}
	if slices.Contains(columns, "id") {
		switch n := i.r.IntN(12); {
		case n == 0: // the rows' columns aren't named
			columns = []string{"id", "isbn", "price", "writer", "fence_token"}
			return verb + " INTO books " + i.source(columns) + i.behind()
		case n == 1 && sqlite: // the key by another of its names
			columns = slices.Insert(columns, i.r.IntN(len(columns)+1), i.one("rowid", "oid", "_rowid_"))
			i.certain = false
		}
	}
	into := strings.Join(columns, ", ") + ") "
	if i.dialect == sqlfence.Postgres && i.r.IntN(8) == 0 {
		into += i.one("OVERRIDING USER VALUE ", "OVERRIDING SYSTEM VALUE ")
	}
	return verb + " INTO books (" + into + i.source(columns) + i.behind()
}

// behind writes the clauses that follow the rows.
func (i *insertWriter) behind() (text string) {
	switch i.r.IntN(8) {
	case 0:
		text += " ON CONFLICT DO NOTHING"
	case 1:
		text += " ON CONFLICT (isbn) DO UPDATE SET price = excluded.price + 1"
	case 2:
		text += " ON CONFLICT (isbn) DO UPDATE SET id = excluded.id"
	case 3:
		text += " ON CONFLICT (id) DO UPDATE SET price = excluded.price + 1"
	}
	return text
}

// source writes where the rows come from.
func (i *insertWriter) source(columns []string) string {
	if i.r.IntN(2) == 0 {
		rows := make([]string, 1+i.r.IntN(3)*i.r.IntN(2))
		for n := range rows {
			rows[n] = "(" + i.row(columns, false) + ")"
		}
		return "VALUES " + strings.Join(rows, ", ")
	}
	text := "SELECT "
	if i.r.IntN(6) == 0 {
		text += "DISTINCT "
		i.certain = false // in any order
	}
	if i.r.IntN(2) == 0 {
		text += i.row(columns, false)
		if i.r.IntN(4) == 0 {
			text += " UNION ALL SELECT " + i.row(columns, false)
		}
		return text + i.one("", "", " WHERE true")
	}
	return text + i.row(columns, true) + " FROM " + i.one("pens AS p WHERE p.id < 9", "pens AS p WHERE p.id = 7", "(SELECT id, price FROM pens) AS p WHERE p.price > 31",
		"pens AS p WHERE p.id IN (1, 7)", "pens AS p WHERE p.id > 90", "pens AS p WHERE p.id = 1")
}

// row writes a value for each column; with pens there is a row of these to read from.
func (i *insertWriter) row(columns []string, pens bool) string {
	values := make([]string, len(columns))
	for n, column := range columns {
		switch column {
		case "isbn":
			values[n] = i.one("'i1'", "'i2'", "'i7'", "'i8'", "'i9'")
			if pens && i.r.IntN(3) > 0 {
				values[n] = "concat('i', p.id)"
			}
		case "writer", "fence_token":
			values[n] = "0"
		case "price":
			values[n] = i.one("20", "21", "22")
		default:
			values[n] = i.key(pens)
		}
	}
	return strings.Join(values, ", ")
}

func (i *insertWriter) key(pens bool) string {
	sqlite := i.dialect == sqlfence.SQLite
	id := []int{1, 2, 7, 8}[i.r.IntN(4)]
	switch n := i.r.IntN(12); {
	case n < 3:
		return fmt.Sprint(id)
	case n < 6 && i.dialect == sqlfence.Postgres:
		return i.arg(id) + "::int"
	case n < 6:
		return i.arg(id)
	case n < 9 && pens:
		return i.one("p.id", "p.id + 0", "abs(p.id)", "p.id AS key", "(SELECT p.id)")
	case n == 9:
		return i.one("3 + 4", "(SELECT 8)", "CASE WHEN true THEN 2 END")
	case n == 10 && i.dialect == sqlfence.MySQL:
		return i.one("CAST('7' AS signed)", "(7)", "'8'", "7.4", "'7x'")
	case n == 10 && !sqlite:
		return i.one("'7'::int", "(7)", "CAST(8 AS int)")
	case n == 11:
		i.certain = false
		if sqlite {
			return "7 + abs(random() % 2)"
		} else if i.dialect == sqlfence.MySQL {
			return "7 + FLOOR(RAND() * 2)"
		}
		return "7 + (random() * 2)::int"
	}
	return fmt.Sprint(id)
}
