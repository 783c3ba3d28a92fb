package keys_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// If a row of an UPDATE has a key that no token covers, the error quotes this key unchanged.
func TestBadKeyWithQuoteIsTold(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")))
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/other", Value: 1})
		for _, key := range []string{"it's"} {
			s.Reset(t, 0)
			s.Exec(t, "UPDATE books SET isbn = $1 WHERE id = 1", key)
			_, err := db.ExecContext(ctx, harness.SetPrice, 30, 1)
			harness.WantError(t, err, sqlfence.ErrOutOfScope)
			if err != nil && !strings.Contains(err.Error(), strconv.Quote("books/"+key)) {
				t.Errorf("key %q: %v", key, err)
			}
		}
	})
}
