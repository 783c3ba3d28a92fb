package keys_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A number can be written in several ways, and the database stores one of them. A row inserted with another spelling of
// a key is stored under the usual spelling, so the INSERT needs the token of the stored key.
func TestKeyInsertOfAnotherSpelling(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger(), sqlfence.Key("id"))
		for _, key := range []string{"07", " 7", "+7"} {
			resetKeys(t, sh, 9)
			sh.Raise(t, "books/"+key, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + key, Value: 1})
			for _, w := range []harness.Write{
				{Name: "argument", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2)", Args: []any{key, "i7"}},
				{Name: "constant", Query: "INSERT INTO books (id, isbn) VALUES ('" + key + "', $1)", Args: []any{"i7"}},
			} {
				unchanged := sh.Unchanged(t)
				if _, err := harness.Forms[0].Run(ctx, sh.DB, w.As(b.Dialect)); err == nil {
					t.Errorf("%s %q: inserted past the token of books/7, which stands at 9", w.Name, key)
				}
				unchanged()
				sh.Exec(t, "DELETE FROM books WHERE id = 7")
			}
		}
	})
}
