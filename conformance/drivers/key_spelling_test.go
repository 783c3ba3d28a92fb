package drivers

import (
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A number can be written in several ways, and the database makes them one. A
// row that is inserted under another spelling of its key is still that row.
func TestKeyInsertOfAnotherSpelling(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t, sqlfence.Ledger(), sqlfence.Key("id"))
		for _, key := range []string{"07", " 7", "+7"} {
			sh.resetKeys(t, 9)
			sh.raise(t, "books/"+key, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + key, Value: 1})
			for _, w := range []write{
				{"argument", "INSERT INTO books (id, isbn) VALUES ($1, $2)", []any{key, "i7"}},
				{"constant", "INSERT INTO books (id, isbn) VALUES ('" + key + "', $1)", []any{"i7"}},
			} {
				unchanged := sh.unchanged(t)
				if _, err := forms[0].run(ctx, sh.db, w.as(b.dialect)); err == nil {
					t.Errorf("%s %q: inserted past the token of books/7, which stands at 9", w.name, key)
				}
				unchanged()
				sh.exec(t, "DELETE FROM books WHERE id = 7")
			}
		}
	})
}
