package dialect_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fact"
)

// Each database has everything, and says yes or no to each fact.
func TestDatabasesAreComplete(t *testing.T) {
	all := dialect.All()
	if len(all) != 3 {
		t.Errorf("%d databases", len(all))
	}
	for i := range all {
		db := &all[i]
		for v, j := reflect.ValueOf(db).Elem(), 0; j < v.NumField(); j++ {
			if v.Field(j).IsZero() {
				t.Errorf("%s has no %s", db.Name, v.Type().Field(j).Name)
			}
		}
		for _, facts := range []any{db.Text.Facts()} {
			for _, name := range unsaid(reflect.ValueOf(facts)) {
				t.Errorf("%s doesn't say %s", db.Name, name)
			}
		}
	}
}

// unsaid returns the fields of a struct, or of a pointer to one, that are facts without an answer, or bools, of which
// that isn't known.
func unsaid(v reflect.Value) (names []string) {
	v = reflect.Indirect(v)
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		switch {
		case field.Type == reflect.TypeFor[fact.Fact]():
			if f.Uint() != uint64(fact.No) && f.Uint() != uint64(fact.Yes) {
				names = append(names, field.Name)
			}
		case f.Kind() == reflect.Bool:
			names = append(names, field.Name)
		case f.Kind() == reflect.Struct:
			names = append(names, unsaid(f)...)
		}
	}
	return names
}

func TestUnsaid(t *testing.T) {
	type inner struct{ C fact.Fact }
	type outer struct {
		A, B fact.Fact
		Name string
		inner
		Flag bool
	}
	got := unsaid(reflect.ValueOf(&outer{A: fact.Yes}))
	if want := []string{"B", "C", "Flag"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := unsaid(reflect.ValueOf(inner{fact.No})); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestOf(t *testing.T) {
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
