package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/schema"
)

// registrationOf returns the registration that flags --table with these texts give.
func registrationOf(t *testing.T, name string, tables ...string) core.Registration {
	t.Helper()
	d, err := database.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var options []sqlfence.Option
	for _, text := range tables {
		o, err := parseTable(text)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, o)
	}
	db, err := d.Nowhere().Open(options...)
	if err != nil {
		t.Fatalf("%q: %v", tables, err)
	}
	defer db.Close()
	text, err := schema.Registration(db)
	if err != nil {
		t.Fatal(err)
	}
	var r core.Registration
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// An exported registration is read back unchanged, with each rule and each kind of name.
func TestRegistrationIsReadBack(t *testing.T) {
	tables := [][]string{
		{"books"},
		{"Shop.Books=row-fence:Fence_Token,ledger,resource:library,key:id,single-use,optional"},
		{`"odd=na,me"=row-fence:"a:b""c",resource:"x, y=z:""Ä"`, "order=ledger,key:select"},
		{"jobs=key:id,claim:attempt", "results=key:job_id,claimof:jobs,unfenced-inserts"},
		{`"Jobs"=key:"Id",claim:attempt,sealed,resource:q`, `results=key:job_id,claimof:"Jobs"`},
		{"books=row-fence:f,sealed-from-transaction"},
		{"books=ledger,unfenced-inserts,observe"},
		{"invoices=serial:version"},
		{`invoices=required-serial:"Version",edit-lock:by:since:"Ex:piry"`},
		{"Books=row-fence:f,resource:books"},
		{`shop."Books"=row-fence:f,resource:"shop.books"`},
		{"*=row-fence:f,ledger", "shop.*=ledger,resource:shop", "books=exempt"},
	}
	used := make(map[string]bool)
	for _, name := range database.Names() {
		for _, given := range tables {
			if name != "postgres" && slices.ContainsFunc(given, func(s string) bool { return strings.Contains(s, "sealed") }) {
				continue
			}
			first := registrationOf(t, name, given...)
			var again []string
			for _, table := range first.Tables {
				again = append(again, table.Table+"="+strings.Join(table.Rules, ","))
				for _, word := range table.Rules {
					used[splitOutsideQuotes(word, ':')[0]] = true
				}
			}
			second := registrationOf(t, name, again...)
			if !reflect.DeepEqual(first, second) {
				t.Errorf("%s: %q is written as\n%+v, and read back as\n%+v", name, given, first, second)
			}
			compareSettings(t, name, given, again)
		}
	}
	for rule := range rules {
		if !used[rule] {
			t.Errorf("no registration has the rule %s", rule)
		}
	}
}

// compareSettings checks that both registrations guard in the same way, however their names are spelled.
func compareSettings(t *testing.T, name string, given, again []string) {
	t.Helper()
	a, b := tablesOf(t, name, given), tablesOf(t, name, again)
	for i := range a {
		if a[i].Resource != b[i].Resource || a[i].Optional != b[i].Optional || a[i].Mode != b[i].Mode ||
			a[i].FromTransaction != b[i].FromTransaction || !reflect.DeepEqual(a[i].Rules, b[i].Rules) {
			t.Errorf("%s: %q guards as\n%+v, %q as\n%+v", name, given, a[i], again, b[i])
		}
	}
}

func tablesOf(t *testing.T, name string, texts []string) []*core.Table {
	t.Helper()
	d, err := database.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	o := &core.Options{Dialect: d.Dialect}
	for _, text := range texts {
		option, err := parseTable(text)
		if err != nil {
			t.Fatal(err)
		}
		option(o)
	}
	s, err := core.NewSettings(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Tables()
}

// A rule that is added to a table is exported, too: a new field needs a word in internal/core/registration.go.
func TestRegistrationHasEveryRule(t *testing.T) {
	for _, s := range []struct {
		of   any
		want string
	}{
		{core.Table{}, "Name Resource Optional Mode ModeSet FromTransaction Rules ClaimOf"},
		{rewrite.Table{}, "Schema Name FenceColumn Key Ledger SingleUse UnfencedInserts Sealed Claim ClaimOf Serial " +
			"SerialRequired Lock Pattern Exempt"},
	} {
		var fields []string
		for f := range reflect.TypeOf(s.of).Fields() {
			if f.IsExported() {
				fields = append(fields, f.Name)
			}
		}
		if got := strings.Join(fields, " "); got != s.want {
			t.Errorf("%T has the fields\n%s, and internal/core/registration.go knows\n%s", s.of, got, s.want)
		}
	}
}

// Programs with different registrations of a table are found, whatever the order of their files is.
func TestRegistrationsAreCompared(t *testing.T) {
	file := func(text string) registration {
		name := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRegistration(name)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const books = `{"tables": [{"table": "books", "rules": ["row-fence:f", "ledger"]}]}`
	for _, c := range []struct {
		other string
		found string
	}{
		{`{"tables": [{"table": "books", "rules": ["ledger", "row-fence:f"]}]}`, ""},
		{`{"tables": [{"table": "books", "rules": ["row-fence:f"]}]}`, "WARN "},
		{`{"tables": [{"table": "shop.books", "rules": ["row-fence:f", "ledger"]}]}`, "WARN "},
		{`{"tables": [{"table": "pens", "rules": ["ledger"]}]}`, "INFO INFO "},
		{`{"schema": "x", "tables": [{"table": "books", "rules": ["ledger", "row-fence:f"]}]}`, "WARN "},
	} {
		a, b := file(books), file(c.other)
		for _, all := range [][]registration{{a, b}, {b, a}} {
			tables, err := shared(sqlfence.Postgres, all)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range compare(tables, all) {
				got += f.Level.String() + " "
			}
			if got != c.found {
				t.Errorf("%s: %q, want %q", c.other, got, c.found)
			}
			if _, err := merged(tables, false); (err != nil) != (c.found == "WARN " && !strings.Contains(c.other, "schema")) {
				t.Errorf("%s: a command that doesn't compare: %v", c.other, err)
			}
		}
	}
}
