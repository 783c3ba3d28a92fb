package verify_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// sealable are the bases whose tables can be sealed.
var sealable = []harness.Base{harness.Bases[1], harness.MySQL}

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
		for_, rules []sqlfence.Rule // the rules at Seal, nil for no Seal, and the registered rules
		severity    slog.Level
		code, says  string

		after, mysql []string // statements; nil if the database can't have the fault
		repaired     bool     // by another Seal
	}{
		{"whole", whole, whole, 0, "", "", none, none, false},
		{"whole with the fence alone", rules(fence, sealed), rules(fence, sealed), 0, "", "", none, none, false},
		{"whole for one use", rules(fence, sealed, sqlfence.SingleUse()), rules(fence, sealed, sqlfence.SingleUse()), 0, "", "", none, none, false},
		{"whole with keys", rules(fence, ledger, sealed, sqlfence.Key("id")), rules(fence, ledger, sealed, sqlfence.Key("id")), 0, "", "", none, none, false},
		{"not sealed", nil, whole, slog.LevelWarn, "wrong-seal", "but isn't sealed", none, none, true},
		{"not registered", whole, both, slog.LevelError, "wrong-seal", "without Sealed", none, none, false},
		{"without the ledger", rules(fence, sealed), whole, slog.LevelWarn, "wrong-seal", "isn't what Seal would create", none, none, true},
		{"with the ledger", whole, rules(fence, sealed), slog.LevelWarn, "wrong-seal", "isn't what Seal would create", none, none, true},
		{"other tokens", whole, rules(fence, ledger, sealed, sqlfence.Resource("papers")), slog.LevelWarn, "wrong-seal", "papers", none, none, true},
		{"tokens of keys", whole, rules(fence, ledger, sealed, sqlfence.Key("id")), slog.LevelWarn, "wrong-seal", "books/", none, none, true},
		{"not for one use", whole, rules(fence, ledger, sealed, sqlfence.SingleUse()), slog.LevelWarn, "wrong-seal", "where Seal would write", none, none, true},
		{"another fence column", whole, rules(sqlfence.RowFence("other"), ledger, sealed), slog.LevelWarn, "wrong-seal", "other",
			add, add, false},
		{"a trigger is off", whole, whole, slog.LevelWarn, "wrong-seal", "switched off", []string{`ALTER TABLE books DISABLE TRIGGER "~sqlfence_delete"`}, nil, true},
		{"a trigger is gone", whole, whole, slog.LevelWarn, "wrong-seal", "isn't whole", []string{`DROP TRIGGER "~sqlfence_write" ON books`, `DROP TRIGGER "~sqlfence_delete" ON books`}, []string{"DROP TRIGGER `sqlfence-seal:delete:books`"}, true},
		{"the constraint is gone", whole, whole, slog.LevelWarn, "wrong-seal", "its constraint", []string{`ALTER TABLE books DROP CONSTRAINT sqlfence_mark`}, nil, true},
		{"a trigger is fired behind it", whole, whole, slog.LevelWarn, "wrong-seal", "after the seal's", nil,
			[]string{"CREATE PROCEDURE zero(OUT x bigint) SET x = 0", "CREATE TRIGGER late BEFORE UPDATE ON books FOR EACH ROW CALL zero(NEW.fence_token)"}, true},
		{"triggers that do no harm", whole, whole, 0, "", "",
			[]string{"CREATE FUNCTION early() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.price := 1; RETURN NEW; END $$",
				`CREATE TRIGGER early BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION early()`,
				`CREATE TRIGGER "~~late" AFTER UPDATE ON books FOR EACH ROW EXECUTE FUNCTION early()`,
				`CREATE TRIGGER "~~all" BEFORE UPDATE ON books FOR EACH STATEMENT EXECUTE FUNCTION early()`},
			[]string{"CREATE TRIGGER late BEFORE UPDATE ON books FOR EACH ROW SET NEW.price = 1"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, b := range sealable {
				statements := map[sqlfence.Dialect][]string{sqlfence.Postgres: test.after, sqlfence.MySQL: test.mysql}[b.Dialect]
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

// A partition that was added after Seal has a part of the seal missing.
func TestSealOfPartitions(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
	w.exec(t, "DROP TABLE books", "CREATE TABLE books (id integer, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY HASH (id)",
		"CREATE TABLE books_1 PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER 0)")
	w.seal(t, rules...)
	found := w.news(t, harness.Books(rules...))
	wantOne(t, found, slog.LevelInfo, "other-name") // no guarded write uses this name
	w.exec(t, "CREATE TABLE books_2 PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER 1)")
	found = withCode(w.news(t, harness.Books(rules...)), "wrong-seal")
	if len(found) != 1 || !strings.Contains(found[0].Problem, "books_2") {
		t.Errorf("found %v, want that books_2 lacks its triggers", found)
	}
	w.seal(t, rules...)
	if found := withCode(w.news(t, harness.Books(rules...)), "wrong-seal"); len(found) > 0 {
		t.Errorf("after Seal: found %v", found)
	}
}

// An object whose writes the seal refuses is a Note: views, functions and so on. Cascades in MySQL aren't, because they
// fire no triggers.
func TestWaysAroundASeal(t *testing.T) {
	for _, b := range sealable {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
			procedure, cascade := "CREATE PROCEDURE raise_prices() LANGUAGE sql AS 'UPDATE books SET price = price + 1'", slog.LevelInfo
			if b.Dialect == sqlfence.MySQL {
				procedure, cascade = "CREATE PROCEDURE raise_prices() UPDATE books SET price = price + 1", slog.LevelWarn
			}
			if b.Dialect == sqlfence.SQLite {
				w.seal(t, rules...)
				w.exec(t, "CREATE TRIGGER touch AFTER UPDATE ON pens BEGIN UPDATE books SET price = NEW.price; END",
					"ALTER TABLE books ADD COLUMN pen integer REFERENCES pens ON DELETE CASCADE")
				if got := codes(w.news(t, harness.Books(rules...))); !slices.Equal(got, []string{"INFO side-effect books", "INFO side-effect books"}) {
					t.Errorf("found %v", got)
				}
				return
			}
			w.seal(t, rules...)
			w.exec(t, "CREATE VIEW cheap AS SELECT id, price FROM books WHERE price < 10", procedure,
				"ALTER TABLE books ADD COLUMN pen integer", "ALTER TABLE books ADD FOREIGN KEY (pen) REFERENCES pens (id) ON DELETE CASCADE")
			found := w.news(t, harness.Books(rules...))
			wantOne(t, withCode(found, "other-name"), slog.LevelInfo, "other-name")
			wantOne(t, saying(found, "raise_prices"), slog.LevelInfo, "side-effect")
			wantOne(t, saying(found, "ON DELETE CASCADE"), cascade, "side-effect")
			if len(found) != 3 {
				t.Errorf("found %v", codes(found))
			}
		})
	}
}

// A seal's triggers name the ledger with its schema. Writes of a session that finds another ledger are refused.
func TestSealOfAnotherLedger(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	rules := harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed())
	w.exec(t, `CREATE SCHEMA "The ""other"""`, `CREATE TABLE "The ""other""".fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)`)
	for _, first := range []string{"", `&search_path="The+""other""",public`} {
		db := w.Fenced(t, w.dsn+strings.ReplaceAll(first, "+", "%20"), rules)
		if err := schema.Seal(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if found := withCode(checked(t, db), "wrong-seal"); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	}
	found := withCode(w.verify(t, rules), "wrong-seal")
	if len(found) != 1 || !strings.Contains(found[0].Problem, "public.fencing_tokens") {
		t.Errorf("found %v", found)
	}
}

// Check compares each part of a seal with what Seal would create, and Seal repairs it.
func TestEachPartOfASeal(t *testing.T) {
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
	replace := func(function, body string) string {
		return "CREATE OR REPLACE FUNCTION sqlfence_" + function + "_books() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN " + body + " END'"
	}
	trigger := func(name, how string) []string {
		return []string{`DROP TRIGGER "` + name + `" ON books`, `CREATE TRIGGER "` + name + `" ` + how}
	}
	for name, damage := range map[string][]string{
		"the function of writes":      {replace("write", "NEW.fence_token := abs(NEW.fence_token); RETURN NEW;")},
		"the function of deletes":     {replace("delete", "RETURN OLD;")},
		"the function that clears":    {replace("clear", "RETURN NULL;")},
		"the function of TRUNCATE":    {replace("truncate", "RETURN NULL;")},
		"a setting of a function":     {"ALTER FUNCTION sqlfence_write_books() SET search_path = ''"},
		"the rights of a function":    {"ALTER FUNCTION sqlfence_delete_books() SECURITY DEFINER"},
		"a condition":                 trigger("~sqlfence_write", "BEFORE INSERT OR UPDATE ON books FOR EACH ROW WHEN (false) EXECUTE FUNCTION sqlfence_write_books()"),
		"columns":                     trigger("~sqlfence_write", "BEFORE INSERT OR UPDATE OF title ON books FOR EACH ROW EXECUTE FUNCTION sqlfence_write_books()"),
		"events":                      trigger("~sqlfence_write", "BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION sqlfence_write_books()"),
		"another function":            trigger("~sqlfence_delete", "BEFORE DELETE ON books FOR EACH ROW EXECUTE FUNCTION sqlfence_clear_books()"),
		"arguments":                   trigger("~sqlfence_delete", "BEFORE DELETE ON books FOR EACH ROW EXECUTE FUNCTION sqlfence_delete_books('x')"),
		"a trigger that is off":       {`ALTER TABLE books DISABLE TRIGGER "~sqlfence_before"`},
		"a trigger of a replica":      {`ALTER TABLE books ENABLE REPLICA TRIGGER "~sqlfence_truncate"`},
		"another constraint":          {"ALTER TABLE books DROP CONSTRAINT sqlfence_mark", "ALTER TABLE books ADD CONSTRAINT sqlfence_mark CHECK (fence_token >= -1000)"},
		"a constraint that isn't one": {"ALTER TABLE books DROP CONSTRAINT sqlfence_mark", "ALTER TABLE books ADD CONSTRAINT sqlfence_mark CHECK (fence_token >= 0) NOT VALID"},
	} {
		t.Run(name, func(t *testing.T) { mends(t, harness.Bases[1], rules, damage...) })
	}
	takes := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Sealed(sqlfence.FromTransaction())}
	late := func(old, other string) []string { // the trigger with a changed text
		const how = `CREATE CONSTRAINT TRIGGER "~sqlfence_late" AFTER INSERT OR DELETE OR UPDATE ON books DEFERRABLE INITIALLY DEFERRED FOR EACH ROW ` +
			`WHEN (pg_catalog.textne(pg_catalog.current_setting('sqlfence.doubt', true), '')) EXECUTE FUNCTION sqlfence_late_books()`
		return []string{`DROP TRIGGER "~sqlfence_late" ON books`, strings.Replace(how, old, other, 1)}
	}
	const proof = "FUNCTION sqlfence_proof_books(text)"
	for name, damage := range map[string][]string{
		"the function of proofs":  {"CREATE OR REPLACE FUNCTION sqlfence_proof_books(text) RETURNS bigint STABLE SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN RETURN 900; END'"},
		"no function of proofs":   {"DROP " + proof},
		"its rights":              {"ALTER " + proof + " SECURITY INVOKER"},
		"its place":               {"ALTER " + proof + " VOLATILE"},
		"who may run it":          {"REVOKE EXECUTE ON " + proof + " FROM PUBLIC"},
		"a setting of it":         {"ALTER " + proof + " SET search_path = ''"},
		"the function of deletes": {replace("delete", "RETURN OLD;")},
		"the function of the end": {"CREATE OR REPLACE FUNCTION sqlfence_late_books() RETURNS trigger STABLE SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"},
		"no trigger of the end":   {`DROP TRIGGER "~sqlfence_late" ON books`},
		"the trigger of the end":  {`ALTER TABLE books DISABLE TRIGGER "~sqlfence_late"`},
		"its time":                late("DEFERRABLE INITIALLY DEFERRED", ""),
		"its condition":           late("pg_catalog.textne(", "false AND pg_catalog.textne("),
		"its events":              late("INSERT OR DELETE OR UPDATE", "INSERT"),
	} {
		t.Run(name+", from transactions", func(t *testing.T) { mends(t, harness.Bases[1], takes, damage...) })
	}
	for event, body := range map[string]string{
		"insert": "SET NEW.fence_token = ABS(NEW.fence_token)", "update": "SET NEW.fence_token = ABS(NEW.fence_token)", "delete": "SET @x = 1",
	} {
		trigger := "`sqlfence-seal:" + event + ":books`"
		t.Run("the trigger for "+event, func(t *testing.T) {
			mends(t, harness.MySQL, rules, "DROP TRIGGER "+trigger, "CREATE TRIGGER "+trigger+" BEFORE "+event+" ON books FOR EACH ROW "+body)
		})
	}
}

// Verify finds a seal whose option FromTransaction differs from the rule, and Seal repairs the seal.
func TestSealWithAnotherOption(t *testing.T) {
	each := [][]sqlfence.Rule{{sqlfence.RowFence("fence_token"), sqlfence.Sealed()}, {sqlfence.RowFence("fence_token"), sqlfence.Sealed(sqlfence.FromTransaction())}}
	for i, rules := range each {
		w := newWorld(t, harness.Bases[1])
		w.seal(t, rules...)
		if found := w.news(t, harness.Books(rules...)); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		if found := w.news(t, harness.Books(each[1-i]...)); len(found) != 1 || found[0].Code != "wrong-seal" {
			t.Errorf("found %v", found)
		}
		w.seal(t, each[1-i]...)
		if found := w.news(t, harness.Books(each[1-i]...)); len(found) > 0 {
			t.Errorf("after Seal: found %v", found)
		}
	}
}

// mends damages a seal. Check must find this, and Seal must repair it.
func mends(t *testing.T, b harness.Base, rules []sqlfence.Rule, damage ...string) {
	w := newWorld(t, b)
	w.seal(t, rules...)
	w.exec(t, damage...)
	found := w.news(t, harness.Books(rules...))
	if len(found) != 1 || found[0].Code != "wrong-seal" {
		t.Errorf("found %v", found)
	}
	w.seal(t, rules...)
	if found := w.news(t, harness.Books(rules...)); len(found) > 0 {
		t.Errorf("after Seal: found %v", found)
	}
}

// If the account is dropped whose privileges a seal's triggers use, no write succeeds, and verify.Check says why.
func TestSealOfAnAccountThatIsGone(t *testing.T) {
	w := newWorld(t, harness.MySQL)
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Sealed()}
	w.seal(t, rules...)
	w.exec(t, "DROP TRIGGER `sqlfence-seal:delete:books`",
		"CREATE DEFINER = `sqlfence_gone`@`nowhere` TRIGGER `sqlfence-seal:delete:books` BEFORE DELETE ON books FOR EACH ROW SET @x = 1")
	found := w.verify(t, harness.Books(rules...))
	if broken := withCode(found, "wrong-seal"); len(broken) != 1 || !strings.Contains(broken[0].Problem, "no account sqlfence_gone@nowhere") {
		t.Errorf("found %v", found)
	}
}
