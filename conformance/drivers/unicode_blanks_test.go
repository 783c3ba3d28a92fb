package drivers

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/sqlfence/sqlfence"
)

// To SQLite a blank that isn't ASCII is part of a name; mattn's driver cuts such
// blanks off around what follows the first statement, so that `books` with one
// behind it is the table books.
func TestUnicodeBlanksHideNoWrite(t *testing.T) {
	var blanks []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.IsSpace(r) && r >= 0x80 {
			blanks = append(blanks, r)
		}
	}
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.SQLite {
			t.Skip("PostgreSQL's drivers send the text as it is")
		}
		s := newShop(t, b, sqlfence.RowFence("fence_token"))
		s.reset(t, 9)
		defer s.unchanged(t)()
		for _, blank := range blanks {
			for _, query := range []string{
				"SELECT 1; DELETE FROM books%c", "SELECT 1; %cDELETE FROM books", "SELECT 1;%cUPDATE books SET price = 1",
				"SELECT 1; UPDATE books SET price = 30 WHERE id = id%c", "SELECT 1; SELECT 2; DELETE FROM books %c",
				"SELECT 1; DELETE FROM books WHERE id = :id%c", "DELETE FROM books%c",
			} {
				query = strings.ReplaceAll(query, "%c", string(blank))
				directly(func(name string, run runFunc) {
					wantOnly(t, run(holding(t, 8), s.db, query), sqlfence.ErrUnguardable)
				})
			}
			// In quotes it is nobody's but the name's.
			query := fmt.Sprintf("SELECT 'a%c' AS \"b%[1]c\" FROM books -- %[1]c", blank)
			if err := ways["query"](t.Context(), s.db, query); err != nil {
				t.Errorf("%q: %v", query, err)
			}
		}
	})
}
