package sqlfence

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A name in two normalization forms is one name.
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
		db, err := OpenDB(new(fakedb.DB), WithDialect(Postgres), WithTable("books", Resource(name)), WithTable(`"`+name+`"`))
		if err != nil {
			t.Fatal(err)
		}
		s, err := fenced.SettingsOf("", db)
		if err != nil {
			t.Fatal(err)
		}
		if tables := s.Tables(); tables[0].Resource != composed || tables[1].Resource != composed {
			t.Errorf("resources by %+q: %+v", name, tables)
		}
	}
	// The limit is that of the normalised name.
	for name, ok := range map[string]bool{
		strings.Repeat("e\u0301", 256): true,
		strings.Repeat("e\u0301", 257): false,
		strings.Repeat("\u0958", 171):  false, // longer once normalised
	} {
		if err := (Token{Name: name, Value: 1}).Validate(); (err == nil) != ok {
			t.Errorf("Validate of a name of %d bytes: %v", len(name), err)
		}
		if _, err := ParseToken(name + ":000000000000001"); (err == nil) != ok {
			t.Errorf("ParseToken of a name of %d bytes: %v", len(name), err)
		}
	}
}
