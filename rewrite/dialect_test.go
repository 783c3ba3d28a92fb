package rewrite

import (
	"reflect"
	"testing"
)

// guardedDialects are those that a rewriter takes tables for.
func guardedDialects(t testing.TB) (all []Dialect) {
	t.Helper()
	for d := range dialects {
		if _, err := Dialect(d).guarded(); err == nil {
			all = append(all, Dialect(d))
		}
	}
	return all
}

// Each dialect either is guarded, with all its parts, or is refused.
func TestDialects(t *testing.T) {
	if got := guardedDialects(t); !reflect.DeepEqual(got, []Dialect{Postgres, SQLite}) {
		t.Errorf("guarded are %v", got)
	}
	for d := Dialect(0); d < Dialect(len(dialects)+1); d++ {
		says, err := d.guarded()
		_, newErr := New(d, []Table{{Name: "books", Ledger: true}})
		if (err == nil) != (newErr == nil) {
			t.Errorf("%v: %v, but New says %v", d, err, newErr)
		}
		if err != nil {
			continue
		}
		if d.String() == Dialect(0).String() {
			t.Errorf("%d has no name", d)
		}
		if says.maxInputs() <= 0 || says.secondLook() == nil {
			t.Errorf("%v: %d arguments, %v", d, says.maxInputs(), says.secondLook())
		}
		for name, parts := range map[string][]string{
			"integer":  pair(says.integer()),
			"keyText":  pair(says.keyText()),
			"less":     triple(says.compares(less)),
			"equal":    triple(says.compares(equal)),
			"or equal": triple(says.compares(lessOrEqual)),
			"greatest": triple(says.greatest()),
			"assigns":  triple(says.assigns()),
			"assigned": triple(says.assigned()),
		} {
			if joined(parts) == "" {
				t.Errorf("%v says nothing for %s", d, name)
			}
		}
		if joined(triple(says.compares(less))) == joined(triple(says.compares(lessOrEqual))) {
			t.Errorf("%v compares alike", d)
		}
	}
}

func pair(a, b string) []string      { return []string{a, b} }
func triple(a, b, c string) []string { return []string{a, b, c} }

func joined(parts []string) (all string) {
	for _, p := range parts {
		all += p
	}
	return all
}

// The rules are in the order of precedence, and each is asked by its name there.
func TestPrecedence(t *testing.T) {
	want := []rule{ledger{}, key{}, rowFence{}, serial{}, editLock{}}
	if !reflect.DeepEqual(precedence[:], want) {
		t.Errorf("got %T", precedence)
	}
	for i, r := range map[int]rule{ruleLedger: ledger{}, ruleKey: key{}, ruleRowFence: rowFence{}, ruleSerial: serial{}, ruleEditLock: editLock{}} {
		if precedence[i] != r {
			t.Errorf("rule %d is %T", i, precedence[i])
		}
	}
}
