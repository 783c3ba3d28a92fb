package searchpath_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const booksTable = `CREATE TABLE home.books (
	id pg_catalog.varchar PRIMARY KEY, price integer NOT NULL DEFAULT 10,
	fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1, attempt bigint NOT NULL DEFAULT 0,
	editedby pg_catalog.text, editedsince timestamp with time zone, editedexpiry timestamp with time zone
)`

// writes are an application's writes. They qualify their operators with the schema.
var writes = []string{
	"UPDATE books SET price = 99 WHERE id OPERATOR(pg_catalog.=) '1'::pg_catalog.text",
	"UPDATE books SET price = 99",
	"UPDATE books AS b SET price = v.n FROM (VALUES (99)) AS v (n) WHERE b.id OPERATOR(pg_catalog.=) '1'::pg_catalog.text",
	"UPDATE books SET price = 99 WHERE id OPERATOR(pg_catalog.=) ANY (ARRAY['1'::pg_catalog.text]) RETURNING price",
	"UPDATE books SET price = 99, serial = serial OPERATOR(pg_catalog.+) 1 " +
		"WHERE id OPERATOR(pg_catalog.=) '1'::pg_catalog.text",
	"UPDATE books SET price = 99, id = '1' WHERE id OPERATOR(pg_catalog.=) '1'::pg_catalog.text",
	"WITH w AS (UPDATE books SET price = 99 WHERE id OPERATOR(pg_catalog.=) '1'::pg_catalog.text RETURNING price) " +
		"SELECT price FROM w",
	"INSERT INTO books (id, price) VALUES ('1', 99) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	"INSERT INTO books (id, price) SELECT v.id, 99 FROM (VALUES ('1')) AS v (id) " +
		"ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	"MERGE INTO books USING (VALUES ('1'::pg_catalog.text)) AS v (id) ON books.id OPERATOR(pg_catalog.=) v.id " +
		"WHEN MATCHED THEN UPDATE SET price = 99",
	"DELETE FROM books WHERE id OPERATOR(pg_catalog.=) '1'::pg_catalog.text",
	"DELETE FROM books",
}

// A ruling is a table's rules, with a context whose write must succeed, and with contexts whose writes must be refused.
type ruling struct {
	name    string
	rules   []sqlfence.Rule
	sealed  bool
	honest  func(context.Context) context.Context
	refused []func(context.Context) context.Context
}

func with(all ...sqlfence.Token) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return sqlfence.WithFence(ctx, all...) }
}

func name(resource string, value int64) sqlfence.Token {
	return sqlfence.Token{Name: resource, Value: value}
}

func claim(t *testing.T, resource, key string, generation int64) sqlfence.Token {
	t.Helper()
	token, err := sqlfence.ClaimToken(resource, key, generation)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func rulings(t *testing.T) []ruling {
	type contexts = []func(context.Context) context.Context
	fence, key := sqlfence.RowFence("fence_token"), sqlfence.Key("id")
	many := func(token sqlfence.Token) func(context.Context) context.Context {
		return with(token, name("books/7", 5), name("books/8", 5))
	}
	takeover := func(token sqlfence.Token) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context {
			return sqlfence.WithTakeover(sqlfence.WithFence(ctx, token))
		}
	}
	serial := func(n int64) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return sqlfence.WithSerial(ctx, n) }
	}
	editor := func(user string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return sqlfence.WithEditor(ctx, user) }
	}
	token, keyed := func(n int64) sqlfence.Token { return name("books", n) }, func(key string, n int64) sqlfence.Token {
		return name("books/"+key, n)
	}
	return []ruling{
		{name: "fence", rules: []sqlfence.Rule{fence}, honest: with(token(5)), refused: contexts{with(token(4))}},
		{name: "fence single use", rules: []sqlfence.Rule{fence, sqlfence.SingleUse()}, honest: with(token(6)),
			refused: contexts{with(token(5))}},
		{name: "ledger", rules: []sqlfence.Rule{sqlfence.Ledger()}, honest: with(token(5)),
			refused: contexts{with(token(4)), with(token(6))}},
		{name: "fence and ledger", rules: []sqlfence.Rule{fence, sqlfence.Ledger()}, honest: with(token(5)),
			refused: contexts{with(token(4)), with(token(6))}},
		{name: "key", rules: []sqlfence.Rule{fence, key}, honest: with(keyed("1", 5)),
			refused: contexts{with(keyed("1", 4)), with(keyed("2", 5)), many(keyed("2", 9))}},
		{name: "keys", rules: []sqlfence.Rule{fence, key}, honest: many(keyed("1", 5)),
			refused: contexts{many(keyed("1", 4))}},
		{name: "key and ledger", rules: []sqlfence.Rule{sqlfence.Ledger(), key}, honest: with(keyed("1", 5)),
			refused: contexts{with(keyed("1", 4)), with(keyed("2", 5)), with(keyed("1", 6))}},
		{name: "serial", rules: []sqlfence.Rule{sqlfence.Serial("serial", sqlfence.Required())}, honest: serial(3),
			refused: contexts{serial(2), serial(4)}},
		{name: "serial and ledger", rules: []sqlfence.Rule{sqlfence.Serial("serial"), sqlfence.Ledger()},
			honest: with(token(5)), refused: contexts{with(token(4)), with(token(6))}},
		{name: "lock", rules: []sqlfence.Rule{sqlfence.EditLock("editedby", "editedsince", "editedexpiry")},
			honest: editor("ada"), refused: contexts{editor("bob"), with()}},
		{name: "claim", rules: []sqlfence.Rule{key, sqlfence.Claim("attempt")}, honest: with(claim(t, "books", "1", 2)),
			refused: contexts{with(claim(t, "books", "1", 1)), with(claim(t, "books", "2", 2)),
				with(claim(t, "books", "1", 1), claim(t, "books", "3", 1), claim(t, "books", "4", 1), claim(t, "books", "5", 2))}},
		{name: "claims", rules: []sqlfence.Rule{key, sqlfence.Claim("attempt")},
			honest: with(claim(t, "books", "1", 2), claim(t, "books", "3", 1), claim(t, "books", "4", 1),
				claim(t, "books", "5", 2))},
		{name: "takeover", rules: []sqlfence.Rule{key, sqlfence.Claim("attempt")},
			honest:  takeover(claim(t, "books", "1", 2)),
			refused: contexts{takeover(claim(t, "books", "1", 1))}},
		{name: "sealed", rules: []sqlfence.Rule{fence, sqlfence.Ledger()}, sealed: true, honest: with(token(5)),
			refused: contexts{with(token(4)), with(token(6))}},
		{name: "sealed key", rules: []sqlfence.Rule{fence, key}, sealed: true, honest: with(keyed("1", 5)),
			refused: contexts{with(keyed("1", 4)), with(keyed("2", 5))}},
	}
}

// A session finds an application's own operators, functions, types and collations before PostgreSQL's. A write with a
// token that isn't the row's is refused all the same, and a holder's write succeeds.
func TestGuardsBesideAnApplicationsOperators(t *testing.T) {
	for _, b := range harness.Bases[:2] {
		t.Run(b.Name, func(t *testing.T) {
			h := newHostile(t, b)
			h.exec(t, booksTable+`; CREATE TABLE home.fencing_tokens (name pg_catalog.varchar PRIMARY KEY, token bigint NOT NULL);
				INSERT INTO home.fencing_tokens VALUES ('', 0), ('books', 5), ('books/1', 5), ('books/2', 5), ('books/7', 5),
					('books/8', 5)`)
			if err := harness.NewStore(t, h.owned).Setup(t.Context()); err != nil {
				t.Fatalf("Setup: %v", err)
			}
			for _, r := range rulings(t) {
				t.Run(r.name, func(t *testing.T) { h.holdsOff(t, r) })
			}
		})
	}
}

// The guard of ClaimOf finds claims by the = operator of the key's type, and compares them as texts.
func TestClaimOfBesideAnApplicationsOperators(t *testing.T) {
	for _, b := range harness.Bases[:2] {
		t.Run(b.Name, func(t *testing.T) {
			h := newHostile(t, b)
			h.exec(t, `DROP OPERATOR hostile.= (integer, integer);
				CREATE TABLE home.jobs (id integer PRIMARY KEY, attempt bigint NOT NULL);
				INSERT INTO home.jobs VALUES (1, 2), (2, 2);
				CREATE TABLE home.results (job_id integer, note integer);
				INSERT INTO home.results VALUES (1, 0)`)
			db := h.Fenced(t, h.dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
				sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")))
			const write = "UPDATE results SET note = note OPERATOR(pg_catalog.+) 1 WHERE job_id OPERATOR(pg_catalog.=) 1"
			for _, c := range []struct {
				job        string
				generation int64
				want       error
			}{{"1", 2, nil}, {"1", 1, sqlfence.ErrStale}, {"1", 3, sqlfence.ErrStale}, {"2", 2, sqlfence.ErrOutOfScope},
				{"3", 2, sqlfence.ErrStale}} {
				_, err := db.ExecContext(with(claim(t, "jobs", c.job, c.generation))(t.Context()), write)
				if !errors.Is(err, c.want) {
					t.Errorf("claim %d of job %s: %v, want %v", c.generation, c.job, err, c.want)
				}
			}
		})
	}
}

func (h *hostile) holdsOff(t *testing.T, r ruling) {
	var sealed *sql.DB
	reset := func() {
		h.exec(t, "ALTER TABLE home.books DISABLE TRIGGER USER; DELETE FROM home.books; INSERT INTO home.books "+
			"(id, fence_token, serial, attempt, editedby, editedsince, editedexpiry) "+
			"VALUES ('1', 5, 3, 2, 'ada', now(), now() + interval '1 hour')")
		if sealed != nil {
			if err := schema.Seal(t.Context(), sealed); err != nil {
				t.Fatalf("Seal: %v", err)
			}
		}
	}
	db := h.Fenced(t, h.dsn, sqlfence.WithTable("books", r.rules...))
	if r.sealed {
		rules := append(r.rules[:len(r.rules):len(r.rules)], sqlfence.Sealed())
		db = h.Fenced(t, h.dsn, sqlfence.WithTable("books", rules...))
		sealed = db
		defer func() {
			if err := schema.Unseal(context.Background(), db); err != nil {
				t.Errorf("Unseal: %v", err)
			}
		}()
	}
	reset()
	landed := func() bool {
		var n int
		if err := h.plain.QueryRow("SELECT count(*) FROM home.books WHERE price = 10").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	}
	applied := 0
	for _, write := range writes {
		for i, refused := range r.refused {
			_, err := db.ExecContext(refused(t.Context()), write)
			if landed() {
				t.Errorf("%s with context %d: applied, %v", write, i, err)
				reset()
			}
			if err == nil || strings.Contains(err.Error(), "hostile") {
				t.Errorf("%s with context %d: %v", write, i, err)
			}
		}
		_, err := db.ExecContext(r.honest(t.Context()), write)
		var refusal *sqlfence.UnguardableError
		if err != nil && !errors.As(err, &refusal) && !errors.Is(err, sqlfence.ErrOutOfScope) {
			t.Errorf("%s by the holder: %v", write, err)
		}
		if landed() {
			applied++
			reset()
		} else if err == nil {
			t.Errorf("%s by the holder changes nothing", write)
		}
	}
	if applied < len(writes)/3 {
		t.Errorf("%d of %d writes by the holder are applied", applied, len(writes))
	}
	t.Logf("%d of %d writes by the holder are applied", applied, len(writes))
}
