package drivers

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// An UPDATE tells the key of the row that is out of scope as it is.
func TestBadKeyWithQuoteIsTold(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b)
		db := b.fenced(t, s.source, books(sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")))
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/other", Value: 1})
		for _, key := range []string{"it's"} {
			s.reset(t, 0)
			s.exec(t, "UPDATE books SET isbn = $1 WHERE id = 1", key)
			_, err := db.ExecContext(ctx, setPrice, 30, 1)
			wantError(t, err, sqlfence.ErrOutOfScope)
			if err != nil && !strings.Contains(err.Error(), strconv.Quote("books/"+key)) {
				t.Errorf("key %q: %v", key, err)
			}
		}
	})
}
