package dialect_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Each database sets all fields, and each fact to Yes or No. A missing fact would silently get another database's
// behaviour.
func TestDatabasesAreComplete(t *testing.T) {
	all := dialect.All()
	if len(all) != 3 {
		t.Errorf("%d databases", len(all))
	}
	// Fields that may be empty if a database lacks the feature.
	optional := map[string][]string{
		"Capabilities": {"LockPrivilege", "Unlimited", "Epoch", "LedgerState", "LedgerTriggers", "CreateLedgerFunction", "FindLedgerFunction", "FindLedgerSchema", "BuiltIn", "Qualified"},
		"Rules":        {"PlainStrings", "EscapeStrings", "Directive", "Encoding", "MaxName"}, "Grammar": {"Own", "NameWords"},
		"Dialect": {"Settings", "Uncut", "Prepared", "Others", "Itself", "Unsealable", "DefiningTables", "DefiningSchema", "RowNumbers", "KeyReturner", "RowCounter", "FoundCounter", "Search",
			"ClaimsAtOnce", "AmongClaims", "Unique", "Columns", "Narrow", "NoInteger", "Unalterable", "Strings", "ReadStrings", "ReadVersion", "OpenTx", "BeginTx", "LockLedger", "LockClaims"},
		"Texts": {"NotInteger", "Strict"}, "Protected": {"Code", "DefaultSchema", "Setting", "Setters", "DynamicSetting", "Argument"},
	}
	for i := range all {
		db := &all[i]
		for _, facts := range []any{db, db.Text.Capabilities(), db.Grammar, db.Grammar.Lex, db.Guard, &db.Guard.Capabilities, &db.Guard.Texts, &db.Guard.Protected, db.Session, db.Errors} {
			v := reflect.ValueOf(facts).Elem()
			for j := range v.NumField() {
				name := v.Type().Field(j).Name
				if v.Field(j).IsZero() && !slices.Contains(optional[v.Type().Name()], name) {
					t.Errorf("%s has no %v.%s", db.Name, v.Type(), name)
				}
			}
			for _, name := range unsaid(v) {
				t.Errorf("%s doesn't say %s", db.Name, name)
			}
		}
	}
}

// unsaid returns the fields of a struct that are unset facts, or bools, which can't show whether they were set.
func unsaid(v reflect.Value) (names []string) {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		switch {
		case field.Type == reflect.TypeFor[fact.Fact]():
			if f.Uint() != uint64(fact.No) && f.Uint() != uint64(fact.Yes) {
				names = append(names, field.Name)
			}
		case f.Kind() == reflect.Bool:
			names = append(names, field.Name)
		}
	}
	return names
}

func TestUnsaid(t *testing.T) {
	type inner struct{ C fact.Fact }
	type outer struct {
		A, B fact.Fact
		Name string
		Flag bool
	}
	got := unsaid(reflect.ValueOf(outer{A: fact.Yes}))
	if want := []string{"B", "Flag"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := unsaid(reflect.ValueOf(inner{fact.No})); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestOfReturnsTheDatabaseOrAnError(t *testing.T) {
	for d := range dialect.Dialect(5) {
		db, err := dialect.Of(d)
		if known := d >= dialect.Postgres && d <= dialect.MySQL; known != (err == nil) || known && db.Name != d.String() {
			t.Errorf("%d is %v, %v", d, db, err)
		}
	}
	if got := dialect.Dialect(0).String(); got != "unknown dialect" {
		t.Errorf("no dialect is %q", got)
	}
}

// A connection sends the version query with what keeps settings from limiting its rows.
func TestIsSettingsQuery(t *testing.T) {
	for _, db := range dialect.All() {
		if sent := sqltext.Whole(db.Text, db.Session.Version); sent != "" && !dialect.IsSettingsQuery(sent) {
			t.Errorf("%s: %q is the application's", db.Name, sent)
		}
	}
	if dialect.IsSettingsQuery("") {
		t.Error("an empty query is sqlfence's")
	}
}
