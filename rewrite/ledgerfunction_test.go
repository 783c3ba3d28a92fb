package rewrite

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// With the function's schema a statement has the same guard, which calls the functions in this schema.
func TestWithLedgerFunction(t *testing.T) {
	calls := 0
	all := eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		r := newRewriter(t, d, rules)
		with := r.WithLedgerFunction(`sh"op`)
		plan, planWith := r.PlanFor(s.sql, variantOf(rules)), with.PlanFor(s.sql, variantOf(rules))
		if plan.Verdict != planWith.Verdict || plan.Refusal != planWith.Refusal || !reflect.DeepEqual(plan.Targets, planWith.Targets) {
			t.Fatalf("%v %v, with the function %v %v", plan.Verdict, plan.Refusal, planWith.Verdict, planWith.Refusal)
		}
		if plan.Verdict != guard.Guard {
			return
		}
		text, textWith := renderedOf(t, plan, valuesOf(plan, rules)), renderedOf(t, planWith, valuesOf(plan, rules))
		if !slices.Equal(sorted(text.Args), sorted(textWith.Args)) {
			t.Errorf("arguments %v, with the function %v", text.Args, textWith.Args)
		}
		const schema = `"sh""op".`
		calls += strings.Count(textWith.SQL, schema+sqltext.LedgerFunction+"(")
		if got := strings.ReplaceAll(textWith.SQL, schema+"sqlfence_", "sqlfence_"); got != text.SQL {
			t.Errorf("%s\nin a schema:\n%s", text.SQL, textWith.SQL)
		}
	})
	if !all {
		t.Skip("some samples haven't run: there is no counting the calls in all of them")
	}
	if calls < 20 {
		t.Errorf("%d calls of the function in all samples", calls)
	}
}

func TestWithLedgerFunctionWithoutADialect(t *testing.T) {
	r, err := New(databases.MySQL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.WithLedgerFunction("public") != r {
		t.Error("another rewriter")
	}
}

// sorted returns the values of arguments in an order that doesn't depend on where they
// stand first.
func sorted(args []Arg) (values []string) {
	for _, a := range args {
		values = append(values, fmt.Sprint(a.Of))
	}
	slices.Sort(values)
	return values
}
