package sqlfence

import (
	"strings"
	"testing"
)

// Two spellings of one text are one name.
func TestTokenNamesAreNormalized(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	ctx := WithFence(t.Context(), Token{decomposed, 1}, Token{composed, 2})
	ctx = WithFence(ctx, Token{decomposed, 3})
	for _, name := range []string{composed, decomposed} {
		if got, ok := FenceFrom(ctx, name); !ok || got != (Token{composed, 3}) {
			t.Errorf("FenceFrom(%+q) = %+q, %v", name, got, ok)
		}
		if got, err := ParseToken(name + ":000000000000004"); got != (Token{composed, 4}) || err != nil {
			t.Errorf("ParseToken of %+q = %+q, %v", name, got, err)
		}
		table := newTable("books", []Rule{Resource(name)})
		if faults := table.check(postgres{}); faults != nil || table.resource != composed {
			t.Errorf("Resource(%+q) = %+q, %v", name, table.resource, faults)
		}
		table = newTable(`"`+name+`"`, nil)
		if faults := table.check(postgres{}); faults != nil || table.resource != composed {
			t.Errorf("resource of the table %+q = %+q, %v", name, table.resource, faults)
		}
	}
	// The limit is that of the normalised name.
	for name, ok := range map[string]bool{
		strings.Repeat("e\u0301", 256): true,
		strings.Repeat("e\u0301", 257): false,
		strings.Repeat("\u0958", 171):  false, // longer once normalised
	} {
		if err := ValidateName(name); (err == nil) != ok {
			t.Errorf("ValidateName of %d bytes: %v", len(name), err)
		}
		if _, err := ParseToken(name + ":000000000000001"); (err == nil) != ok {
			t.Errorf("ParseToken of a name of %d bytes: %v", len(name), err)
		}
	}
}
