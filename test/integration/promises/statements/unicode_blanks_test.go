package statements_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// For SQLite a blank beyond ASCII is part of a name. mattn's driver strips such blanks around the text after the first
// statement. So there `books` with a trailing blank is the table books.
func TestUnicodeBlanksHideNoWrite(t *testing.T) {
	var blanks []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.IsSpace(r) && r >= 0x80 {
			blanks = append(blanks, r)
		}
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("PostgreSQL's drivers send the text as it is")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		defer s.Unchanged(t)()
		for _, blank := range blanks {
			for _, query := range []string{
				"SELECT 1; DELETE FROM books%c", "SELECT 1; %cDELETE FROM books", "SELECT 1;%cUPDATE books SET price = 1",
				"SELECT 1; UPDATE books SET price = 30 WHERE id = id%c", "SELECT 1; SELECT 2; DELETE FROM books %c",
				"SELECT 1; DELETE FROM books WHERE id = :id%c", "DELETE FROM books%c",
			} {
				query = strings.ReplaceAll(query, "%c", string(blank))
				harness.Directly(func(name string, run harness.RunFunc) {
					harness.WantOnly(t, run(harness.Holding(t, 8), s.DB, query), sqlfence.ErrUnguardable)
				})
			}
			// In quotes and comments the blank is an ordinary character, so the statement passes.
			query := fmt.Sprintf("SELECT 'a%c' AS \"b%[1]c\" FROM books -- %[1]c", blank)
			if err := harness.Ways["query"](t.Context(), s.DB, query); err != nil {
				t.Errorf("%q: %v", query, err)
			}
		}
	})
}
