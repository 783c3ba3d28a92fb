package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

// sealable are the bases whose tables can be sealed.
var sealable = []harness.Base{harness.Bases[1], harness.Bases[2], harness.Bases[3], harness.MySQL}

// seal seals the books for rules.
func (w *world) seal(t *testing.T, rules ...sqlfence.Rule) {
	t.Helper()
	if err := schema.Seal(t.Context(), w.Fenced(t, w.dsn, harness.Books(rules...))); err != nil {
		t.Fatal(err)
	}
}

func TestSeals(t *testing.T) {
	fence, ledger, sealed := sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()
	rules := func(rules ...sqlfence.Rule) []sqlfence.Rule { return rules }
	whole := rules(fence, ledger, sealed)
	add := []string{"ALTER TABLE books ADD COLUMN other bigint NOT NULL DEFAULT 0"}
	for _, test := range []struct {
		name        string
		for_, rules []sqlfence.Rule // whom it is sealed for, nil for nobody, and what is registered
		severity    sqlfence.Severity
		code, says  string

		after, sqlite, mysql []string // statements; nil where there is no such thing
		repaired             bool     // by another Seal
	}{
		{"whole", whole, whole, 0, "", "", none, none, none, false},
		{"whole with the fence alone", rules(fence, sealed), rules(fence, sealed), 0, "", "", none, none, none, false},
		{"whole for one use", rules(fence, sealed, sqlfence.SingleUse()), rules(fence, sealed, sqlfence.SingleUse()), 0, "", "", none, none, none, false},
		{"whole with keys", rules(fence, ledger, sealed, sqlfence.Key("id")), rules(fence, ledger, sealed, sqlfence.Key("id")), 0, "", "", none, none, none, false},
		{"not sealed", nil, whole, sqlfence.Warning, "not-sealed", "schema.Seal", none, none, none, true},
		{"not registered", whole, both, sqlfence.Fault, "sealed-unregistered", "without Sealed", none, none, none, false},
		{"without the ledger", rules(fence, sealed), whole, sqlfence.Warning, "seal-shape", "ledger", none, none, none, true},
		{"with the ledger", whole, rules(fence, sealed), sqlfence.Warning, "seal-shape", "ledger", none, none, none, true},
		{"other tokens", whole, rules(fence, ledger, sealed, sqlfence.Resource("papers")), sqlfence.Warning, "seal-shape", "papers", none, none, none, true},
		{"tokens of keys", whole, rules(fence, ledger, sealed, sqlfence.Key("id")), sqlfence.Warning, "seal-shape", "books/", none, none, none, true},
		{"not for one use", whole, rules(fence, ledger, sealed, sqlfence.SingleUse()), sqlfence.Warning, "seal-shape", "SingleUse", none, none, none, true},
		{"another fence column", whole, rules(sqlfence.RowFence("other"), ledger, sealed), sqlfence.Warning, "seal-shape", "other",
			add, add, add, false},
		{"a trigger is off", whole, whole, sqlfence.Warning, "seal-broken", "switched off", []string{`ALTER TABLE books DISABLE TRIGGER "~sqlfence_delete"`}, nil, nil, true},
		{"a trigger is gone", whole, whole, sqlfence.Warning, "seal-broken", "trigger", []string{`DROP TRIGGER "~sqlfence_write" ON books`, `DROP TRIGGER "~sqlfence_delete" ON books`}, []string{"DROP TRIGGER sqlfence_seal_delete_books"}, []string{"DROP TRIGGER `sqlfence-seal:delete:books`"}, true},
		{"the table of the triggers is gone", whole, whole, sqlfence.Warning, "seal-broken", "sqlfence_seal, without", nil, []string{"DROP TABLE sqlfence_seal"}, nil, true},
		{"the constraint is gone", whole, whole, sqlfence.Warning, "seal-broken", "constraint", []string{`ALTER TABLE books DROP CONSTRAINT sqlfence_mark`}, nil, nil, true},
		{"a trigger is fired behind it", whole, whole, sqlfence.Warning, "seal-trigger", "behind the seal's", nil, nil,
			[]string{"CREATE PROCEDURE zero(OUT x bigint) SET x = 0", "CREATE TRIGGER late BEFORE UPDATE ON books FOR EACH ROW CALL zero(NEW.fence_token)"}, true},
		{"triggers that do no harm", whole, whole, 0, "", "",
			[]string{"CREATE FUNCTION early() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.price := 1; RETURN NEW; END $$",
				`CREATE TRIGGER early BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION early()`,
				`CREATE TRIGGER "~~late" AFTER UPDATE ON books FOR EACH ROW EXECUTE FUNCTION early()`,
				`CREATE TRIGGER "~~all" BEFORE UPDATE ON books FOR EACH STATEMENT EXECUTE FUNCTION early()`},
			[]string{"CREATE TRIGGER early BEFORE UPDATE OF price ON books WHEN NEW.price = 0 BEGIN SELECT RAISE(IGNORE); END",
				"CREATE TRIGGER late AFTER UPDATE OF price ON books WHEN NEW.price = 0 BEGIN SELECT RAISE(ABORT, 'RAISE(IGNORE)'); END"},
			[]string{"CREATE TRIGGER late BEFORE UPDATE ON books FOR EACH ROW SET NEW.price = 1"}, false},
		{"a trigger may skip it", whole, whole, sqlfence.Warning, "seal-trigger", "RAISE(IGNORE)", nil,
			[]string{"CREATE TRIGGER late AFTER UPDATE OF price ON books WHEN NEW.price = 0 BEGIN SELECT raise ( Ignore ); END"}, nil, false},
		{"a trigger is fired by it", whole, whole, sqlfence.Warning, "seal-trigger", "more UPDATEs", nil,
			[]string{"CREATE TRIGGER late AFTER UPDATE /* OF price */ ON books BEGIN SELECT 1; END"}, nil, false},
		{"a trigger is fired by its mark", whole, whole, sqlfence.Warning, "seal-trigger", "more UPDATEs", nil,
			[]string{`CREATE TRIGGER late AFTER UPDATE /* ON */ OF price, "fence_token" ON books BEGIN SELECT 1; END`}, nil, false},
		{"a unique index is new", whole, whole, sqlfence.Warning, "seal-broken", "title", nil, []string{"CREATE UNIQUE INDEX titles ON books (title)"}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, b := range sealable {
				statements := map[sqlfence.Dialect][]string{sqlfence.Postgres: test.after, sqlfence.SQLite: test.sqlite, sqlfence.MySQL: test.mysql}[b.Dialect]
				if statements == nil {
					continue
				}
				t.Run(b.Name, func(t *testing.T) {
					w := newWorld(t, b)
					if test.for_ != nil {
						w.seal(t, test.for_...)
					}
					w.exec(t, statements...)
					found := w.news(t, harness.Books(test.rules...))
					if test.code == "" {
						if len(found) > 0 {
							t.Errorf("found %v", found)
						}
						return
					}
					wantOne(t, found, test.severity, test.code)
					if len(found) == 1 && !strings.Contains(found[0].Problem+found[0].Remedy, test.says) {
						t.Errorf("found %v, want %q", found[0], test.says)
					}
					if !test.repaired {
						return
					}
					w.seal(t, test.rules...)
					if found := w.news(t, harness.Books(test.rules...)); len(found) > 0 {
						t.Errorf("after Seal: found %v", found)
					}
				})
			}
		})
	}
}

// A seal that was made with an EditLock, or without, is told from what is registered.
func TestSealOfLocks(t *testing.T) {
	plain := append(slices.Clone(both), sqlfence.Sealed())
	locked := append(slices.Clone(plain), sqlfence.EditLock("by_whom", "since", "until_when"))
	for _, b := range sealable {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			typ := map[sqlfence.Dialect]string{sqlfence.Postgres: "timestamptz", sqlfence.MySQL: "bigint", sqlfence.SQLite: "integer"}[b.Dialect]
			w.exec(t, "ALTER TABLE books ADD COLUMN by_whom integer", "ALTER TABLE books ADD COLUMN since "+typ, "ALTER TABLE books ADD COLUMN until_when "+typ)
			for n, c := range []struct {
				sealed, registered []sqlfence.Rule
				says               string
			}{
				{plain, plain, ""}, {plain, locked, "no edit lock"}, {locked, locked, ""}, {locked, plain, "without a token"},
			} {
				w.seal(t, c.sealed...)
				found := w.news(t, harness.Books(c.registered...))
				if c.says == "" && len(found) > 0 {
					t.Errorf("%d: found %v", n, found)
				} else if c.says != "" && (len(found) != 1 || found[0].Code != "seal-shape" || !strings.Contains(found[0].Problem, c.says)) {
					t.Errorf("%d: found %v, want %s", n, found, c.says)
				}
			}
		})
	}
}

// A partition that was added after the seal lacks a part of it.
func TestSealOfPartitions(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
	w.exec(t, "DROP TABLE books", "CREATE TABLE books (id integer, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY HASH (id)",
		"CREATE TABLE books_1 PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER 0)")
	w.seal(t, rules...)
	found := w.news(t, harness.Books(rules...))
	wantOne(t, found, sqlfence.Note, "partition") // by whose name nothing can be written
	w.exec(t, "CREATE TABLE books_2 PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER 1)")
	found = withCode(w.news(t, harness.Books(rules...)), "seal-broken")
	if len(found) != 1 || !strings.Contains(found[0].Problem, "books_2") {
		t.Errorf("found %v, want that books_2 lacks its triggers", found)
	}
	w.seal(t, rules...)
	if found := withCode(w.news(t, harness.Books(rules...)), "seal-broken"); len(found) > 0 {
		t.Errorf("after Seal: found %v", found)
	}
}

// What the seal refuses is a Note: views, functions and so on, but not cascades in MySQL, which
// fire no triggers.
func TestWaysAroundASeal(t *testing.T) {
	for _, b := range sealable {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
			procedure, cascade := "CREATE PROCEDURE raise_prices() LANGUAGE sql AS 'UPDATE books SET price = price + 1'", sqlfence.Note
			if b.Dialect == sqlfence.MySQL {
				procedure, cascade = "CREATE PROCEDURE raise_prices() UPDATE books SET price = price + 1", sqlfence.Warning
			}
			if b.Dialect == sqlfence.SQLite {
				w.seal(t, rules...)
				w.exec(t, "CREATE TRIGGER touch AFTER UPDATE ON pens BEGIN UPDATE books SET price = NEW.price; END",
					"ALTER TABLE books ADD COLUMN pen integer REFERENCES pens ON DELETE CASCADE")
				if got := codes(w.news(t, harness.Books(rules...))); !slices.Equal(got, []string{"note cascade books", "note trigger books"}) {
					t.Errorf("found %v", got)
				}
				return
			}
			w.seal(t, rules...)
			w.exec(t, "CREATE VIEW cheap AS SELECT id, price FROM books WHERE price < 10", procedure,
				"ALTER TABLE books ADD COLUMN pen integer", "ALTER TABLE books ADD FOREIGN KEY (pen) REFERENCES pens (id) ON DELETE CASCADE")
			found := w.news(t, harness.Books(rules...))
			for code, severity := range map[string]sqlfence.Severity{"view": sqlfence.Note, "function": sqlfence.Note, "cascade": cascade} {
				wantOne(t, withCode(found, code), severity, code)
			}
			if len(found) != 3 {
				t.Errorf("found %v", codes(found))
			}
		})
	}
}

// A seal names the ledger with the schema in which it was found: a session that finds another one is refused.
func TestSealOfAnotherLedger(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	rules := harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed())
	w.exec(t, `CREATE SCHEMA "The ""other"""`, `CREATE TABLE "The ""other""".fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)`)
	for _, first := range []string{"", `&search_path="The+""other""",public`} {
		db := w.Fenced(t, w.dsn+strings.ReplaceAll(first, "+", "%20"), rules)
		if err := schema.Seal(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if found := withCode(verify(t, db), "seal-shape"); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	}
	found := withCode(w.verify(t, rules), "seal-shape")
	if len(found) != 1 || !strings.Contains(found[0].Problem, "another ledger than public.fencing_tokens") {
		t.Errorf("found %v", found)
	}
}

// A table that was renamed as SQLite did it long ago has triggers that look at another one.
func TestSealOfARenamedTable(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		w := newWorld(t, harness.Bases[3])
		w.seal(t, sqlfence.RowFence("fence_token"), sqlfence.Sealed())
		w.exec(t, fmt.Sprintf("PRAGMA legacy_alter_table = %v; ALTER TABLE books RENAME TO tomes; PRAGMA legacy_alter_table = OFF", legacy))
		tomes := sqlfence.WithTable("tomes", sqlfence.RowFence("fence_token"), sqlfence.Sealed())
		if found := withCode(w.verify(t, tomes), "seal-broken"); len(found) == 1 != legacy || legacy && !strings.Contains(found[0].Problem, "legacy_alter_table") {
			t.Errorf("legacy %v: found %v", legacy, found)
		}
		if err := schema.Seal(t.Context(), w.Fenced(t, w.dsn, tomes)); err != nil {
			t.Fatal(err)
		}
		if found := withCode(w.verify(t, tomes), "seal-broken"); len(found) > 0 {
			t.Errorf("after Seal: found %v", found)
		}
	}
}
