package conformance

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// logged returns a side with these entries.
func logged(v variant, log ...entry) *side { return &side{variant: v, log: log} }

func TestCompare(t *testing.T) {
	shown := func(step, text string) entry { return entry{step: step, shown: text} }
	able := func(abilities ...string) entry { return entry{step: "able", abilities: abilities} }
	failed := logged(alone)
	failed.failures = []string{"no database"}
	failedWrapped := logged(wrapped)
	failedWrapped.failures = []string{"no guard"}

	for name, test := range map[string]struct {
		raw   []*side
		other *side
		want  []string // in the reason; none for no difference
	}{
		"equal":            {[]*side{logged(alone, shown("a", "1"))}, logged(wrapped, shown("a", "1")), nil},
		"empty":            {[]*side{logged(alone)}, logged(wrapped), nil},
		"another text":     {[]*side{logged(alone, shown("a", "1"))}, logged(wrapped, shown("a", "2")), []string{"a\n", "driver alone: 1", "with sqlfence: 2"}},
		"a step less":      {[]*side{logged(alone, shown("a", "1"), shown("b", "1"))}, logged(wrapped, shown("a", "1")), []string{"step 1: other steps"}},
		"a step more":      {[]*side{logged(alone)}, logged(wrapped, shown("a", "1")), []string{"step 0: other steps"}},
		"another step":     {[]*side{logged(alone, shown("a", "1"))}, logged(wrapped, shown("b", "1")), []string{"step 0: other steps"}},
		"an ability less":  {[]*side{logged(alone, able("x", "y", "z"))}, logged(wrapped, able("y")), []string{"lost: x, z"}},
		"an ability more":  {[]*side{logged(alone, able("x"))}, logged(wrapped, able("y", "x")), nil},
		"as the second":    {[]*side{logged(alone, shown("a", "1")), logged(alone, shown("a", "2"))}, logged(wrapped, shown("a", "2")), nil},
		"as neither":       {[]*side{logged(alone, shown("a", "1")), logged(alone, shown("a", "2"))}, logged(wrapped, shown("a", "3")), []string{"with sqlfence: 3"}},
		"another position": {[]*side{logged(alone, shown("a", "at column 5"))}, logged(wrapped, shown("a", "at column 50")), []string{"column 50"}},
		"moved by a guard": {[]*side{logged(alone, shown("a", "at column 5"))}, logged(wrappedRegistered, shown("a", "at column 50")), nil},
		"failed alone":     {[]*side{failed}, logged(wrapped), []string{"driver alone: no database"}},
		"failed wrapped":   {[]*side{logged(alone)}, failedWrapped, []string{"with sqlfence: no guard"}},
	} {
		got := compare(test.raw, test.other)
		if (got == "") != (test.want == nil) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q in it", name, got, want)
			}
		}
	}
}

func TestManyDifferencesAreShortened(t *testing.T) {
	raw, other := logged(alone), logged(wrapped)
	for i := range 20 {
		raw.log = append(raw.log, entry{step: fmt.Sprint("step ", i), shown: "1"})
		other.log = append(other.log, entry{step: fmt.Sprint("step ", i), shown: "2"})
	}
	if got := compare([]*side{raw}, other); !strings.Contains(got, "step 7\n") || strings.Contains(got, "step 8") || !strings.HasSuffix(got, "and 12 more") {
		t.Errorf("got %s", got)
	}
}

// Two values of different types have different texts.
func TestTextTellsTypesApart(t *testing.T) {
	seen := map[string]any{}
	for _, v := range []any{
		nil, 1, int64(1), 1.0, "1", []byte("1"), true, "true", "nil", io.EOF, fmt.Errorf("%w", io.EOF),
		errors.Join(io.EOF), errors.Join(io.EOF, io.EOF), fmt.Errorf("EOF%w", errNil{}), driver.ErrSkip,
	} {
		got := text(v)
		if other, ok := seen[got]; ok {
			t.Errorf("%T(%v) and %T(%v) are both %s", v, v, other, other, got)
		}
		seen[got] = v
	}
	if got := text(errors.New("at &{(0xc000123456)}")); !strings.Contains(got, "(address)") {
		t.Errorf("an address stays in %s", got)
	}
}

// errNil wraps nothing.
type errNil struct{}

func (errNil) Error() string { return "" }
func (errNil) Unwrap() error { return nil }

// The suite checks each dialect of WithDialect, and registers a table if the dialect permits this.
func TestDialectsAreChecked(t *testing.T) {
	for d := sqlfence.Dialect(1); d.String() != sqlfence.Dialect(0).String(); d++ {
		known := dialectOf(d)
		if known == nil {
			t.Errorf("there are no checks for %v", d)
			continue
		}
		_, err := sqlfence.WrapDriver(fakedb.Driver{}, sqlfence.WithDialect(d), sqlfence.WithTable("books"))
		if err != nil || known.blob == "" || known.slow == "" || len(known.unguardable) == 0 {
			t.Errorf("%v: %+v, but a table is registered with %v", d, known, err)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	const query = "UPDATE books SET price = ? WHERE id = ?"
	for d, want := range map[sqlfence.Dialect]string{
		sqlfence.Postgres: "UPDATE books SET price = $1 WHERE id = $2", sqlfence.SQLite: query, sqlfence.MySQL: query,
	} {
		if got := dialectOf(d).bind(query); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
