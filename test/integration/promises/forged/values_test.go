package forged_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An error that quotes an application's value reaches the application as from the base driver, and nothing changes,
// whatever the value says, in each kind of column, and for each error. A statement that the bare driver runs is run.
func TestG10ValuesThatReadLikeMarkers(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b)
		for name, rules := range rulesOf(b) {
			t.Run(name, func(t *testing.T) {
				l.open(t, rules)
				seed := harness.Seed(t)
				r := rand.New(rand.NewPCG(seed, 10))
				failed := make(map[string]int)
				rounds := harness.Rounds(t, 200)
				before := l.state(t)
				for n := range rounds {
					s := l.random(r)
					if code, ok := l.compare(t, r, s); ok {
						failed[code]++
					} else {
						t.Errorf("seed %d, round %d", seed, n)
					}
					if n%100 == 0 || n == rounds-1 {
						if after := l.state(t); after != before {
							t.Fatalf("seed %d, round %d: books were\n%s\nnow they are\n%s", seed, n, before, after)
						}
					}
				}
				if rounds >= 200 && (len(failed) < 4 || failed[l.own] < 5) {
					t.Errorf("too few kinds of errors to prove anything: %v", failed)
				}
				if testing.Verbose() {
					t.Logf("%d statements failed by code: %v", rounds, failed)
				}
			})
		}
	})
}

func rulesOf(b harness.Base) map[string][]sqlfence.Rule {
	fence, key := sqlfence.RowFence("fence_token"), sqlfence.Key("id")
	lock := sqlfence.EditLock("editor", "since", "expiry")
	all := map[string][]sqlfence.Rule{
		"row fence":  {fence},
		"ledger":     {sqlfence.Ledger()},
		"key":        {fence, key},
		"key ledger": {sqlfence.Ledger(), key},
		"single use": {fence, sqlfence.SingleUse()},
		"serial":     {sqlfence.Serial("serial")},
		"lock":       {lock},
		"all":        {fence, sqlfence.Ledger(), sqlfence.Serial("serial"), lock},
		"observed":   {fence, sqlfence.InMode(sqlfence.Observe)},
	}
	if b.Dialect != sqlfence.SQLite {
		all["may be sealed"] = []sqlfence.Rule{fence, sqlfence.Sealed()}
	}
	return all
}

// A lab is a database whose books have columns of all kinds.
type lab struct {
	harness.Base
	dsn       string
	plain, db *sql.DB
	nonce     string   // the nonce of the guards' markers, or another one if theirs isn't visible
	own       string   // the code that a guard raises with
	cases     []string // statements, with ? for the value
}

// setups are the tables and triggers of each dialect. cases are more statements that can fail, besides the columns'
// statements.
var setups = map[sqlfence.Dialect]struct {
	create  []string
	columns string // of the kinds
	code    string
	cases   []string
	stored  []string // statements that convert an already stored value; brackets name the column
}{
	sqlfence.Postgres: {
		create: []string{
			"CREATE TYPE mood AS ENUM ('glad', 'sad')",
			"CREATE TABLE pens (name text PRIMARY KEY)",
			`CREATE TABLE books (id integer PRIMARY KEY, price integer DEFAULT 1, u text UNIQUE, uid uuid, m mood, n integer, big bigint, num numeric(6,2), r real,
				d date, ts timestamptz, iv interval, j jsonb, js json, ip inet, tf boolean, by bytea, short varchar(20), nn text NOT NULL DEFAULT '',
				fk text REFERENCES pens, arr integer[], rg int4range, reg regclass, proc regprocedure, bits bit(3), pt point, mac macaddr, path jsonpath, q tsquery,
				chk text CONSTRAINT "sqlfence:stale:0:9" CHECK (length(chk) < 2), chk2 text CONSTRAINT "sqlfence: stale token 1 for table books, which has 2" CHECK (length(chk2) < 2),
				raising text, code text, stored text, fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1, editor text, since timestamptz, expiry timestamptz)`,
			`CREATE INDEX "sqlfence:unknown:0:0" ON books (price)`,
			`CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.raising IS NOT NULL THEN RAISE EXCEPTION '%', NEW.raising USING ERRCODE = COALESCE(NEW.code, 'P0001'); END IF;
				RETURN NEW; END $$`,
			"CREATE TRIGGER says BEFORE INSERT OR UPDATE ON books FOR EACH ROW EXECUTE FUNCTION says()",
		},
		columns: "u uid m n big num r d ts iv j js ip tf by short nn fk arr rg reg proc bits pt mac path q chk chk2 raising stored",
		code:    "22P02",
		cases: []string{
			"UPDATE books SET n = CAST(? AS text)::int WHERE id = 1",
			"UPDATE books SET big = pg_catalog.int8in(pg_catalog.textout(CAST(? AS text))) WHERE id = 1",
			"UPDATE books SET price = 1 / (length(CAST(? AS text)) - length(CAST(? AS text))) WHERE id = 1",
			"DELETE FROM books WHERE id = 1 AND CAST(? AS text)::uuid IS NOT NULL",
			"INSERT INTO books (id, n) SELECT 60, CAST(? AS text)::int",
			"INSERT INTO books (id, u) VALUES (61, CAST(? AS text)), (62, CAST(? AS text))",
			"UPDATE books SET raising = ?, code = '22P02' WHERE id = 1",
			"UPDATE books SET raising = ?, code = '23505' WHERE id = 1",
			"UPDATE books SET raising = ?, code = '23514' WHERE id = 1",
			"UPDATE books SET nn = NULLIF(?, u) WHERE id = 1 RETURNING CAST(? AS text)::int",
			"UPDATE books SET j = jsonb_set('{}', '{a}', CAST(? AS text)::jsonb) WHERE id = 1",
			"UPDATE books SET n = to_number(CAST(? AS text), '999') WHERE id = 1",
			"WITH w AS (UPDATE books SET n = CAST(? AS text)::int WHERE id = 1 RETURNING id) SELECT * FROM w",
		},
		stored: []string{
			"UPDATE books SET n = stored::int WHERE id = 2", "UPDATE books SET price = 2 WHERE stored::bigint = 1", "DELETE FROM books WHERE stored::uuid IS NULL",
			"UPDATE books SET m = stored::mood", "INSERT INTO books (id, n) SELECT id + 70, stored::int FROM books", "UPDATE books SET price = 3 WHERE id = 2 RETURNING stored::int",
			"UPDATE books SET reg = stored::regclass WHERE id = 2", "UPDATE books SET proc = stored::regprocedure WHERE id = 2", "UPDATE books SET raising = stored, code = '22P02' WHERE id = 2",
			"UPDATE books SET u = 'same' || left(stored, 0)", "UPDATE books SET d = to_date(stored, 'YYYY-MM-DD')",
		},
	},
	sqlfence.SQLite: {
		create: []string{
			"CREATE TABLE pens (name text PRIMARY KEY)",
			`CREATE TABLE books (id integer PRIMARY KEY, price integer DEFAULT 1, u text UNIQUE, n integer CHECK (typeof(n) IN ('integer', 'null')),
				r real CONSTRAINT "sqlfence:stale:0:9" CHECK (typeof(r) IN ('real', 'null')), nn text NOT NULL DEFAULT '', fk text REFERENCES pens (name) DEFERRABLE,
				short text CONSTRAINT "sqlfence: table books is sealed: " CHECK (length(short) < 5), j text CHECK (json_valid(j)), d text CHECK (date(d) IS NOT NULL OR d IS NULL),
				raising text, stored text, fence_token integer NOT NULL DEFAULT 0, serial integer NOT NULL DEFAULT 1, editor text, since integer, expiry integer)`,
			`CREATE UNIQUE INDEX "sqlfence:unknown:0:0" ON books (nn, u)`,
			"CREATE TRIGGER says BEFORE UPDATE ON books WHEN NEW.raising IS NOT NULL BEGIN SELECT json_extract('{}', NEW.raising); END",
			"CREATE TRIGGER says2 BEFORE INSERT ON books WHEN NEW.raising IS NOT NULL BEGIN SELECT json_extract('{}', NEW.raising); END",
		},
		columns: "u n r nn fk short j d raising stored",
		code:    "1",
		cases: []string{
			"UPDATE books SET n = json_extract('{}', ?) WHERE id = 1",
			"UPDATE books SET j = json(?) WHERE id = 1",
			"UPDATE books SET price = 2 WHERE json_extract('{}', ?) = 1",
			"DELETE FROM books WHERE json_extract('{}', ?) IS NULL",
			"INSERT INTO books (id, j) SELECT 60, json_extract('{}', ?)",
			"INSERT INTO books (id, u) VALUES (61, ?), (62, ?)",
			"UPDATE books SET nn = NULLIF(?, u) WHERE id = 1 RETURNING json_extract('{}', ?)",
			"INSERT INTO books (id, price) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = json_extract('{}', ?)",
			"UPDATE books SET j = json_set('{}', ?, 1) WHERE id = 1",
		},
		stored: []string{
			"UPDATE books SET n = json_extract('{}', stored) WHERE id = 2", "DELETE FROM books WHERE json_extract('{}', stored) = 1", "UPDATE books SET j = stored",
			"INSERT INTO books (id, n) SELECT id + 70, json_extract('{}', stored) FROM books", "UPDATE books SET price = 3 WHERE id = 2 RETURNING json_extract('{}', stored)",
			"UPDATE books SET raising = stored", "UPDATE books SET u = 'same' || substr(stored, 1, 0)",
		},
	},
	sqlfence.MySQL: {
		create: []string{
			"CREATE TABLE pens (name varchar(100) PRIMARY KEY)",
			`CREATE TABLE books (id integer PRIMARY KEY, price integer DEFAULT 1, u varchar(100) UNIQUE, m enum('glad', 'sad'), n integer, big bigint, num decimal(6,2), r double,
				d date, ts datetime, j json, short varchar(20), nn varchar(300) NOT NULL DEFAULT '', fk varchar(100), bits bit(3), y year, tm time, st set('a', 'b'),
				chk varchar(300), raising varchar(300), code integer, stored varchar(300), fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1,
				editor varchar(20), since bigint, expiry bigint, FOREIGN KEY ` + "`sqlfence:scope:0:1`" + ` (fk) REFERENCES pens (name), UNIQUE ` + "`sqlfence:unknown:0:0`" + ` (nn, u),
				CONSTRAINT ` + "`sqlfence:stale:0:9`" + ` CHECK (CHAR_LENGTH(chk) < 2))`,
			"CREATE TRIGGER says BEFORE UPDATE ON books FOR EACH ROW IF NEW.raising IS NOT NULL THEN SET @code = COALESCE(NEW.code, 1644); SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = NEW.raising, MYSQL_ERRNO = @code; END IF",
		},
		columns: "u m n big num r d ts j short nn fk bits y tm st chk raising stored",
		code:    "1059",
		cases: []string{
			"UPDATE books SET n = IS_FREE_LOCK(RPAD(?, 200, '.')) WHERE id = 1",
			"UPDATE books SET price = 2 WHERE IS_FREE_LOCK(RPAD(?, 200, '.')) = 7",
			"DELETE FROM books WHERE GET_LOCK(RPAD(?, 200, '.'), 0) = 7",
			"INSERT INTO books (id, n) VALUES (60, IS_FREE_LOCK(RPAD(?, 200, '.')))",
			"INSERT INTO books (id, u) VALUES (61, ?), (62, ?)",
			"UPDATE books SET d = CAST(? AS date) WHERE id = 1",
			"UPDATE books SET n = ? + 1 WHERE id = 1",
			"UPDATE books SET raising = ?, code = 1059 WHERE id = 1",
			"UPDATE books SET raising = ?, code = 1690 WHERE id = 1",
			"UPDATE books SET raising = ?, code = 1062 WHERE id = 1",
			"UPDATE books SET j = JSON_SET('{}', ?, 1) WHERE id = 1",
			"INSERT INTO books (id, price) VALUES (1, 2) ON DUPLICATE KEY UPDATE n = IS_FREE_LOCK(RPAD(?, 200, '.'))",
		},
		stored: []string{
			"UPDATE books SET n = stored WHERE id = 2", "UPDATE books SET n = IS_FREE_LOCK(RPAD(stored, 200, '.')) WHERE id = 2", "DELETE FROM books WHERE IS_FREE_LOCK(RPAD(stored, 200, '.')) = 7",
			"UPDATE books SET d = stored", "UPDATE books SET raising = stored, code = 1059", "UPDATE books SET m = stored WHERE id = 2", "UPDATE books SET u = CONCAT('same', LEFT(stored, 0))",
			"INSERT INTO books (id, n) SELECT id + 70, stored FROM books AS o",
		},
	},
}

func newLab(t *testing.T, b harness.Base) *lab {
	t.Helper()
	b.AsWritten = true
	l := &lab{Base: b, dsn: b.DSN(t)}
	l.plain = b.Raw(t, l.dsn)
	set := setups[b.Dialect]
	exec := func(query string) {
		if _, err := l.plain.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, create := range append(set.create, "CREATE TABLE fencing_tokens (name "+b.LedgerName()+" NOT NULL PRIMARY KEY, token bigint NOT NULL)",
		"INSERT INTO fencing_tokens (name, token) VALUES ('"+strings.Join(names, "', 7), ('")+"', 7)",
		"INSERT INTO books (id, u, fence_token) VALUES (1, 'one', 5), (2, 'two', 5)") {
		exec(create)
	}
	l.plain.SetMaxOpenConns(1)
	if err := harness.NewStore(t, b.Fenced(t, l.dsn)).Setup(t.Context()); err != nil { // the ledger's function
		t.Fatal(err)
	}
	for _, column := range strings.Fields(set.columns) {
		for _, text := range []string{
			"UPDATE books SET %s = ? WHERE id = 1", "INSERT INTO books (id, %s) VALUES (50, ?)", "UPDATE books SET price = 2 WHERE %s = ?", "DELETE FROM books WHERE %s = ? AND id = 1",
		} {
			l.cases = append(l.cases, fmt.Sprintf(text, column))
		}
		upsert := "INSERT INTO books (id, %s) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET price = 3"
		if b.Dialect == sqlfence.MySQL {
			upsert = "INSERT INTO books (id, %s) VALUES (1, ?) ON DUPLICATE KEY UPDATE price = 3"
		}
		l.cases = append(l.cases, fmt.Sprintf(upsert, column))
	}
	for range 5 { // as often as a column
		l.cases = append(l.cases, set.cases...)
	}
	l.own = set.code
	return l
}

// open opens the database with rules on the books.
func (l *lab) open(t *testing.T, rules []sqlfence.Rule) {
	t.Helper()
	l.db = l.Fenced(t, l.dsn, harness.Books(rules...))
	l.db.SetMaxOpenConns(1)
	l.nonce = "ABCDEFGHIJKLMNOP"
	// An application may show this error, with the nonce, to users.
	_, err := l.db.ExecContext(l.context(t, 3), "UPDATE books SET price = 9 WHERE id = 1")
	if m := regexp.MustCompile("sqlfence:([A-Z2-7]{16}):").FindStringSubmatch(fmt.Sprint(errors.Unwrap(err))); m != nil {
		l.nonce = m[1]
	}
}

// names are the names of the tokens of all rows that are written.
var names = []string{"books", "books/1", "books/2", "books/50", "books/60", "books/61", "books/62", "books/71", "books/72"}

// context returns a context with a token of this value for each name, and with an editor.
func (l *lab) context(t *testing.T, value int64) context.Context {
	ctx := t.Context()
	for _, name := range names {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: value})
	}
	return sqlfence.WithEditor(ctx, "ann")
}

// An attempt is a statement of a test.
type attempt struct {
	query  string
	value  string
	stored string // the value that is already in the books; empty for none
	inText bool   // the value is a constant
}

func (l *lab) random(r *rand.Rand) attempt {
	set := setups[l.Dialect]
	s := attempt{value: l.marker(r, l.nonce), inText: r.IntN(3) == 0}
	if r.IntN(4) == 0 {
		s.query, s.stored = set.stored[r.IntN(len(set.stored))], l.marker(r, "")
	} else {
		s.query = l.cases[r.IntN(len(l.cases))]
	}
	return s
}

var (
	kinds = []string{"stale", "ledger", "scope", "unknown", "conflict", "assigned", "required", "gone", "serial", "locked", "lease", "unseen", "unsealed"}
	seals = []string{
		"sqlfence: table books is sealed: ", "sqlfence: table books is sealed: the write carries no fencing token (set fence_token to minus the token)",
		"sqlfence: stale token 3 for table books, which has 9", "sqlfence: stale token for table books, which has a newer one",
		"sqlfence: token 12 for table books is not issued, the newest is 9", "sqlfence_mark", `violates check constraint "sqlfence_mark"`,
	}
	others = []string{
		"function pg_catalog.int8le(real, bigint) does not exist", "pg_catalog.int8abs(", "sqlfence_newest_v2(text, bigint, integer, text, regclass)", "fencing_tokens", "fencing_tokens2", "no such table: fencing_tokens\n", "sqlfence:",
		`"sqlfence_newest_v2(" (text)`, "sqlfence_newest_v2(text)", "sqlfence: ",
		`"pg_catalog.int8le(" (text)`, "WITH", "cached plan must not change result type",
	}
	before = []string{"", "", "x ", "'", `"`, "bad JSON path: '", `invalid input syntax for type bigint: "`, "Identifier name '", "\n", "„"}
	after  = []string{"", "", "'", `"`, " ......", "' is too long", ":", "\n", "«", ":1:2:ann"}
)

// marker returns a text that resembles a text of sqlfence.
func (l *lab) marker(r *rand.Rand, nonce string) string {
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	var text string
	switch r.IntN(8) {
	case 0:
		text = pick(seals)
	case 1:
		text = pick(others)
	default:
		letters := []string{"", "nonce:", "ABCDEFGHIJKLMNOP:"}
		if nonce != "" {
			letters = append(letters, nonce+":", nonce+":")
		}
		text = "sqlfence:" + pick(letters) + pick(kinds) + ":" + pick([]string{"0", "0", "1", "-1", "x"}) + ":" + pick([]string{"9", "0", "", "-9", "1:2:ann", "99999999999999999999", "it's"})
	}
	return pick(before) + text + pick(after)
}

// text returns the statement as the database reads it, with its arguments.
func (l *lab) text(s attempt) (string, []any) {
	var args []any
	n := 0
	var b strings.Builder
	for _, c := range s.query {
		switch {
		case c != '?':
			b.WriteRune(c)
		case s.inText:
			b.WriteString("'" + strings.ReplaceAll(s.value, "'", "''") + "'")
		case l.Dialect == sqlfence.Postgres:
			n++
			fmt.Fprintf(&b, "$%d", n)
			args = append(args, s.value)
		default:
			b.WriteByte('?')
			args = append(args, s.value)
		}
	}
	return b.String(), args
}

// compare sends a statement by the bare driver and fenced, in transactions that are rolled back, or, if it fails,
// alone. It returns the code of the statement's error.
func (l *lab) compare(t *testing.T, r *rand.Rand, s attempt) (string, bool) {
	t.Helper()
	query, args := l.text(s)
	if s.stored != "" {
		if _, err := l.plain.ExecContext(t.Context(), "UPDATE books SET stored = '"+strings.ReplaceAll(s.stored, "'", "''")+"'"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := l.plain.ExecContext(t.Context(), "UPDATE books SET stored = NULL"); err != nil {
				t.Fatal(err)
			}
		}()
	}
	ways := []string{"exec", "query", "prepared exec", "prepared query"}
	run := harness.Ways[ways[r.IntN(len(ways))]]
	if strings.Contains(query, "RETURNING") || strings.HasPrefix(query, "WITH") {
		run = harness.Ways[ways[1+r.IntN(2)*2]]
	}
	want := l.undone(t, t.Context(), l.plain, run, query, args)
	ctx := l.context(t, 7)
	var got error
	if want == nil || r.IntN(2) == 0 {
		got = l.undone(t, ctx, l.db, run, query, args)
	} else {
		got = run(ctx, l.db, query, args...)
	}
	var refused *sqlfence.UnguardableError
	if errors.As(got, &refused) {
		return "", true
	}
	if !l.same(want, got) {
		t.Errorf("%q, %q, stored %q:\nbare:   %v\nfenced: %v", query, args, s.stored, want, got)
		return "", false
	}
	return l.codeOf(got), true
}

// same reports whether a fenced database's error is the base driver's, without an error of sqlfence in it.
func (l *lab) same(want, got error) bool {
	var temporary interface{ Temporary() bool }
	switch {
	case (want == nil) != (got == nil), l.codeOf(want) != l.codeOf(got):
		return false
	case errors.As(got, &temporary) && temporary.Temporary():
		return false
	}
	for _, sentinel := range []error{
		sqlfence.ErrStale, sqlfence.ErrNotIssued, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable, sqlfence.ErrUnknownName, sqlfence.ErrUnknownOutcome,
		sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrNoSerial, sqlfence.ErrLocked, sqlfence.ErrTokenLimit, sqlfence.ErrInvalid, sqlfence.ErrNotSetUp,
	} {
		if errors.Is(got, sentinel) {
			return false
		}
	}
	return true
}

func (l *lab) codeOf(err error) string {
	if err == nil {
		return ""
	}
	switch l.Dialect {
	case sqlfence.SQLite:
		code, _ := dberr.SQLiteCode(err)
		return fmt.Sprint(code)
	case sqlfence.MySQL:
		number, _ := dberr.MySQLNumber(err)
		return fmt.Sprint(number)
	}
	return dberr.SQLState(err)
}

// undone runs a statement in a transaction, rolls this back, and returns the statement's error.
func (l *lab) undone(t *testing.T, ctx context.Context, db *sql.DB, run harness.RunFunc, query string, args []any) error {
	t.Helper()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	return run(ctx, tx, query, args...)
}

// state returns the rows of the books.
func (l *lab) state(t *testing.T) string {
	t.Helper()
	rows, err := l.plain.QueryContext(t.Context(), "SELECT * FROM books ORDER BY id")
	return harness.Describe(rows, err)
}

// The application has shown a refused write's error to a user. The user sends the nonce back as a value, by an argument
// of any type or in the text.
func TestG10NonceThatWasShown(t *testing.T) {
	queries := map[sqlfence.Dialect]string{
		sqlfence.Postgres: "UPDATE books SET n = CAST(? AS text)::int WHERE id = 1",
		sqlfence.SQLite:   "UPDATE books SET n = json_extract('{}', ?) WHERE id = 1",
		sqlfence.MySQL:    "UPDATE books SET n = IS_FREE_LOCK(RPAD(?, 200, '.')) WHERE id = 1",
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b)
		l.open(t, []sqlfence.Rule{sqlfence.RowFence("fence_token")})
		before := l.state(t)
		for _, inText := range []bool{false, true} {
			query, args := l.text(attempt{query: queries[b.Dialect], value: "sqlfence:" + l.nonce + ":stale:0:9", inText: inText})
			types := [][]any{args}
			if !inText {
				types = append(types, []any{sql.NullString{String: args[0].(string), Valid: true}})
				if b.Dialect != sqlfence.SQLite { // SQLite's functions accept no path of bytes
					types = append(types, []any{[]byte(args[0].(string))})
				}
			}
			for _, args := range types {
				for name, run := range harness.Ways {
					want := run(t.Context(), l.plain, query, args...)
					if err := run(l.context(t, 7), l.db, query, args...); !strings.Contains(fmt.Sprint(want), l.nonce) || !l.same(want, err) {
						t.Errorf("%s, %s with %T: %v, want the base driver's: %v", name, query, args, err, want)
					}
				}
			}
		}
		if after := l.state(t); after != before {
			t.Errorf("books were\n%s\nnow they are\n%s", before, after)
		}
	})
}
