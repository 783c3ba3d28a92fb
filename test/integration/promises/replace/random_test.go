package replace_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Random REPLACE on random tables. The bare driver shows the deleted rows: each row has a tag outside of all keys. With
// sqlfence a REPLACE is refused without effect if and only if one of these rows has a newer mark. Otherwise the rows
// are the same as with the bare driver, with the token in the new rows, or the REPLACE is refused because of unusual
// keys.
func TestRandomReplace(t *testing.T) {
	first, count := harness.Seed(t), harness.Rounds(t, 150)
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		for name, more := range map[string][]sqlfence.Rule{
			"row fence": nil, "keys": {sqlfence.Key("a")}, "ledger": {sqlfence.Ledger()},
		} {
			t.Run(name, func(t *testing.T) {
				rules, keyed := append(more, sqlfence.RowFence("fence_token")), name == "keys"
				l := &lab{Shop: harness.NewShop(t, b, rules...), keyed: keyed, ledger: name == "ledger"}
				for n := range count {
					seed := first + uint64(n)
					l.r = rand.New(rand.NewPCG(seed, 9))
					if l.create(t); t.Failed() {
						t.Fatalf("seed %d", seed)
					}
					for range 8 {
						if l.try(t); t.Failed() {
							t.Fatalf("seed %d: %s", seed, l.made)
						}
						l.reshape(t)
					}
				}
				t.Logf("%d landed, %d of them over others, %d stale, %d out of scope, %d unguardable, %d invalid", l.landed,
					l.replaced, l.stale, l.scope, l.unguardable, l.invalid)
				if count >= 10 && (l.replaced == 0 || l.stale == 0 || l.unguardable == 0 || keyed && l.scope == 0) {
					t.Error("too few to show anything")
				}
			})
		}
	})
}

// A lab tries random REPLACE. The columns a to d may be in keys.
type lab struct {
	*harness.Shop
	r             *rand.Rand
	keyed, ledger bool
	made          string // the statement that created the table
	index         bool   // the index that the test creates and drops exists
	tag           int

	landed, replaced, stale, scope, unguardable, invalid int
}

func (l *lab) one(of ...string) string { return of[l.r.IntN(len(of))] }

var columns = []string{"a", "b", "c", "d"}

func (l *lab) some() string {
	n := 1 + l.r.IntN(2)
	some := slices.Clone(columns)
	l.r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return strings.Join(some[:n], ", ")
}

// create creates a table with up to four unique keys, and rows with stored tokens.
func (l *lab) create(t *testing.T) {
	var parts []string
	primary := l.r.IntN(5)
	for i, c := range columns {
		kind := l.one("INTEGER", "TEXT", "TEXT", "NUMERIC", "BLOB", "", "VARCHAR(9) COLLATE NOCASE", "INT", "ANY")
		if l.r.IntN(30) == 0 {
			kind = l.one("REAL", "DOUBLE")
		}
		def := c + " " + kind
		if i == 0 && primary == 0 {
			def = c + " " + l.one("INTEGER PRIMARY KEY", "integer primary key autoincrement", "TEXT PRIMARY KEY", "INT PRIMARY KEY")
		} else {
			def += l.one("", "", "", " DEFAULT 1", " DEFAULT 'a'", " NOT NULL DEFAULT 'a'", " NOT NULL DEFAULT 2", " DEFAULT NULL")
			def += l.one("", "", "", " UNIQUE", " UNIQUE ON CONFLICT IGNORE")
		}
		parts = append(parts, def)
	}
	parts = append(parts, "tag integer NOT NULL", "fence_token bigint")
	rest := ""
	switch primary {
	case 1:
		parts = append(parts, "PRIMARY KEY ("+l.some()+")")
	case 2:
		parts, rest = append(parts, "PRIMARY KEY ("+l.some()+")"), " WITHOUT ROWID"
	}
	if l.r.IntN(2) == 0 {
		parts = append(parts, "UNIQUE ("+l.some()+")")
	}
	l.made, l.index = strings.Join(parts, ", ")+")"+rest, false
	table(t, l.Shop, l.made)
	if l.r.IntN(3) == 0 {
		create := "CREATE UNIQUE INDEX u ON books (" + l.some() + l.one("", " COLLATE NOCASE", " COLLATE RTRIM", " DESC") + ")"
		switch l.r.IntN(10) {
		case 0:
			create += " WHERE b IS NOT NULL"
		case 1:
			create = "CREATE UNIQUE INDEX u ON books (lower(b))"
		}
		l.Exec(t, create)
		l.made += "; " + create
	}
	for range 12 {
		l.tag++
		// A row that violates a constraint isn't inserted.
		_, _ = l.Plain.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO books (a, b, c, d, tag, fence_token) VALUES (%s, %s, %s, %s, %d, %s)",
			l.value(), l.value(), l.value(), l.value(), l.tag, l.one("NULL", "3", "4", "5", "6", "'7'")))
	}
}

// reshape creates an index, or drops it.
func (l *lab) reshape(t *testing.T) {
	if l.r.IntN(5) > 0 {
		return
	}
	query := "DROP INDEX later"
	if !l.index {
		query = "CREATE UNIQUE INDEX later ON books (" + l.some() + ")"
	}
	if _, err := l.Plain.ExecContext(t.Context(), query); err == nil {
		l.index = !l.index
	}
}

// value returns a value that may equal other values, by affinity or collation.
func (l *lab) value() string {
	return l.one("1", "2", "1.0", "'1'", "'1.0'", "'a'", "'A'", "'a '", "'b'", "NULL", "-1", "'-1'", "2", "'2'", "9007199254740993", "'9007199254740993.0'")
}

// arg returns a value as an argument.
func (l *lab) arg() any {
	return []any{int64(1), int64(2), 1.0, 2.5, "1", "1.0", "a", "A", "b", "b ", []byte("a"), nil, int64(-1), 9007199254740992.0, int64(9007199254740993), true}[l.r.IntN(16)]
}

// statement is a REPLACE of some columns and up to three rows.
func (l *lab) statement() (query string, args []any) {
	listed := []string{"tag"}
	for _, c := range columns {
		if l.r.IntN(4) > 0 || l.keyed && c == "a" {
			listed = append(listed, l.one(c, c, strings.ToUpper(c), "`"+c+"`"))
		}
	}
	l.r.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
	var rows []string
	for range 1 + l.r.IntN(3)*l.r.IntN(2) {
		var values []string
		for _, c := range listed {
			l.tag++
			switch {
			case c == "tag":
				values = append(values, fmt.Sprint(l.tag))
			case l.r.IntN(2) == 0:
				values, args = append(values, "?"), append(args, l.arg())
			case l.r.IntN(40) == 0:
				values = append(values, l.one("abs(1)", "1 + 1", "lower('A')"))
			default:
				values = append(values, l.value())
			}
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	query = l.one("REPLACE INTO ", "INSERT OR REPLACE INTO ") + l.one("books", "main.books", "books AS x", "`Books`") + " (" +
		strings.Join(listed, ", ") + ") VALUES " + strings.Join(rows, ", ")
	return query, args
}

// A row has a row's values without its stored token, its key, and the stored token.
type row struct {
	values, key string
	mark        int64
}

// An asker is a connection or a transaction.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// rows returns the table's rows, by their tags.
func (l *lab) rows(t *testing.T, in asker) map[int]row {
	t.Helper()
	got := map[int]row{}
	rows, err := in.QueryContext(t.Context(), `SELECT tag, quote(a) || ' ' || quote(b) || ' ' || quote(c) || ' ' || quote(d),
		COALESCE(CAST(a AS TEXT), 'none'), COALESCE(CAST(fence_token AS INTEGER), 0) FROM books`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var tag int
		var r row
		if err := rows.Scan(&tag, &r.values, &r.key, &r.mark); err != nil {
			t.Fatal(err)
		}
		got[tag] = r
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func (l *lab) try(t *testing.T) {
	query, args := l.statement()
	before := l.rows(t, l.Plain)
	tx, err := l.Plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, invalid := tx.ExecContext(t.Context(), query, args...)
	want := l.rows(t, tx)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	token := int64(2 + l.r.IntN(6))
	if l.ledger {
		l.Raise(t, "books", token)
	}
	ctx, held := l.hold(t, token)
	in := asker(l.DB)
	if l.r.IntN(3) == 0 { // in a transaction a failed statement must be undone alone
		tx, err := l.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		in = tx
	}
	_, err = in.ExecContext(ctx, query, args...)
	got := l.rows(t, in)
	if tx, ok := in.(*sql.Tx); ok {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	l.judge(t, before, want, got, held, invalid, err)
	if t.Failed() {
		t.Errorf("%s with %v, token %d: %v", query, args, token, err)
	}
}

// hold returns a context with a token, or with tokens of some keys, and whether it has a given key's token.
func (l *lab) hold(t *testing.T, token int64) (context.Context, func(key string) bool) {
	if !l.keyed {
		return harness.Holding(t, token), func(string) bool { return true }
	}
	ctx, keys := t.Context(), map[string]bool{}
	for _, key := range []string{"1", "2", "1.0", "2.5", "a", "A", "a ", "b", "b ", "-1", "9007199254740993", "9007199254740993.0"} {
		if l.r.IntN(8) > 0 {
			ctx, keys[key] = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/" + key, Value: token}), true
		}
	}
	return ctx, func(key string) bool { return keys[key] }
}

func (l *lab) judge(t *testing.T, before, want, got map[int]row, held func(string) bool, invalid, err error) {
	var stale *sqlfence.StaleError
	token, newer, foreign, deleted := int64(0), false, false, 0
	for tag, r := range got {
		if _, old := before[tag]; !old {
			token = r.mark
		}
	}
	if errors.As(err, &stale) {
		token = stale.Token.Value
	}
	for tag, r := range before {
		if _, left := want[tag]; !left {
			deleted++
			newer = newer || r.mark > token
			foreign = foreign || !held(r.key)
		}
	}
	if err != nil && fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("refused, and left %v of %v", got, before)
	}
	switch {
	case errors.Is(err, sqlfence.ErrStale):
		l.stale++
		if invalid == nil && !newer {
			t.Errorf("stale, and deletes no row with a newer mark: %v, the bare driver leaves %v", before, want)
		}
	case errors.Is(err, sqlfence.ErrOutOfScope):
		l.scope++
	case errors.Is(err, sqlfence.ErrNoFence) && l.keyed:
	case errors.Is(err, sqlfence.ErrUnguardable):
		l.unguardable++
	case err != nil:
		l.invalid++
		if invalid == nil {
			t.Errorf("the bare driver takes it")
		}
	case invalid != nil:
		t.Errorf("the bare driver refuses it: %v", invalid)
	default:
		l.landed++
		l.replaced += min(deleted, 1)
		if newer || foreign {
			t.Errorf("it has deleted a row with a newer mark or without its token: %v became %v", before, got)
		}
		l.same(t, before, want, got, token)
	}
}

// same fails the test unless the rows are those of the bare driver, and new rows have stored the token.
func (l *lab) same(t *testing.T, before, want, got map[int]row, token int64) {
	for tag, r := range want {
		if _, old := before[tag]; !old {
			r.mark = token
		}
		if got[tag] != r {
			t.Errorf("row %d is %v, want %v", tag, got[tag], r)
		}
	}
	if len(got) != len(want) {
		t.Errorf("left %v, the bare driver %v", got, want)
	}
}
