package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A role that may ask nothing gets notes, and another error ends the look.
func TestDenied(t *testing.T) {
	denied := func(context.Context, string) ([][]string, error) { return nil, stateError("42501") }
	for _, db := range []Database{Postgres, MySQL} {
		found, err := Run(t.Context(), db, denied, []Table{{Registered: "books", Name: "books", Fence: "fence_token"}}, Options{Rows: true})
		if err != nil {
			t.Fatal(err)
		}
		if unseen := slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "unseen" && f.Severity == Note }); !unseen {
			t.Errorf("found %v, want a Note", found)
		}
	}
	broken := errors.New("broken")
	fails := func(context.Context, string) ([][]string, error) { return nil, broken }
	if _, err := Run(t.Context(), SQLite, fails, []Table{{Name: "books"}}, Options{}); !errors.Is(err, broken) {
		t.Errorf("%v, want the query's error", err)
	}
}

type stateError string

func (e stateError) Error() string    { return string(e) }
func (e stateError) SQLState() string { return string(e) }

// Tables with a ledger are refused where several servers write.
func TestSeveralServers(t *testing.T) {
	ask := func(_ context.Context, query string) ([][]string, error) {
		switch {
		case strings.Contains(query, "information_schema.tables"):
			return [][]string{{"shop", "books", "BASE TABLE", "InnoDB", "1"}, {"shop", "fencing_tokens", "BASE TABLE", "InnoDB", "1"}}, nil
		}
		return nil, nil
	}
	for _, ledger := range []bool{true, false} {
		found, err := Run(t.Context(), MySQL, ask, []Table{{Registered: "books", Name: "books", Ledger: ledger}}, Options{Peers: true})
		if err != nil {
			t.Fatal(err)
		}
		if told := slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "several-servers" && f.Severity == Fault && f.Table == "books" }); told != ledger {
			t.Errorf("ledger %v: found %v", ledger, found)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"books", "pens", "Orders", "fence_token"}
	for name, want := range map[string]string{
		"bokos": "books", "book": "books", "Books": "books", "orders": "Orders", "fence_tokne": "fence_token", "fnce": "", "x": "", "nothing": "", "pencils": "",
	} {
		if got := didYouMean(name, known); got != "" && want == "" || want != "" && got != "Did you mean "+want+"? " {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestFromClause(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT a FROM books WHERE b IN (SELECT c FROM pens)":                  "books",
		"SELECT (SELECT x FROM pens) AS y, 'a FROM b' FROM books b ORDER BY 1": "books b",
		`SELECT "from" FROM shop."where" GROUP BY 1`:                           `shop."where"`,
		"select extract(year FROM d), (a IS DISTINCT FROM b) from (books)":     "(books)",
		"SELECT 1":                         "",
		"SELECT from_a FROM books_2 LIMIT": "books_2",
	} {
		if got := strings.TrimSpace(fromClause(query)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestBodies(t *testing.T) {
	books := &relation{schema: "shop", name: "books"}
	for text, writes := range map[string]bool{
		"UPDATE books SET a = 1":                true,
		"update only shop . books set a = 1":    true,
		"UPDATE archive.books SET a = 1":        false,
		"DELETE FROM ONLY books":                true,
		"INSERT INTO\n\tbooks VALUES (1)":       true,
		"insert or replace into books select":   true,
		"REPLACE books VALUES (1)":              true,
		"MERGE INTO books USING x ON true":      true,
		"TRUNCATE TABLE books":                  true,
		"TRUNCATE pens, ONLY books CASCADE":     true,
		"TRUNCATE pens; SELECT 1, 2 FROM books": false,
		"COPY books FROM '/tmp/x'":              true,
		"SELECT * FROM books FOR UPDATE":        false,
		"UPDATE mybooks SET books = 1":          false,
		"UPDATE pens SET a = 1 -- books":        false,
		"/* UPDATE books */ SELECT 1":           false,
		"INSERT INTO pens SELECT * FROM books":  false,
		"EXECUTE 'UPDATE books SET a = 1'":      true,
		"LOAD DATA INFILE 'x' INTO TABLE books": true,
	} {
		for _, db := range []Database{Postgres, SQLite, MySQL} {
			if got := newBody(db, text).writes(db, books); got != writes {
				t.Errorf("%T, %s: writes %v", db, text, got)
			}
		}
	}
	if b := newBody(Postgres, `UPDATE "Books" SET a = 1`); b.writes(Postgres, books) {
		t.Error(`"Books" isn't books in PostgreSQL`)
	}
	for text, sets := range map[string]bool{
		"NEW.fence_token := 0;": true, "SET NEW.fence_token = 1": true, "if x then new . FENCE_TOKEN = 1; end if": true,
		"IF NEW.fence_token < 0 THEN": false, "IF NEW.fence_token = 0 THEN": false, "SET NEW.a = 1, NEW.fence_token = 2": true, "NEW.other := NEW.fence_token": false,
	} {
		if got := newBody(Postgres, text).setsNew(Postgres, "fence_token"); got != sets {
			t.Errorf("%s: sets %v", text, got)
		}
	}
}

func TestPatternsOfGrants(t *testing.T) {
	for pattern, want := range map[string]bool{"shop": true, "sh%": true, "s_op": true, `s\_op`: false, "%": true, "shops": false, "": false, "sho": false} {
		if got := matchesPattern(pattern, "shop"); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}

// Columns of SQLite have no type but an affinity.
func TestAffinity(t *testing.T) {
	for declared, want := range map[string]string{
		"bigint": "integer", "INTEGER": "integer", "varchar(20)": "text", "": "blob", "REAL": "real", "double precision": "real", "numeric(10,2)": "numeric", "uuid": "numeric", "CHARINT": "integer",
	} {
		if got := affinity(declared); got != want {
			t.Errorf("%s: %s, want %s", declared, got, want)
		}
	}
}

// Every finding says what is wrong and what to do.
func TestLinkTexts(t *testing.T) {
	l := &look{db: Postgres}
	for code := range linkTexts {
		l.addLink(target{&Table{Registered: "books"}, &relation{schema: "shop", name: "books", visible: true}}, link{code: code, schema: "shop", name: "other", detail: "detail"}, []string{"a", "b", "c", "d", "e", "f", "g"})
	}
	for _, f := range l.found {
		if text := fmt.Sprint(f); strings.Contains(text, "%!") || f.Problem == "" || f.Remedy == "" {
			t.Error(text)
		}
	}
}
