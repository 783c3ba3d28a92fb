package keys_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A fickle key has the value 7 at the first call of Value, and 2 at later calls.
type fickle struct{ asked *int }

func (f fickle) Value() (driver.Value, error) {
	*f.asked++
	if *f.asked == 1 {
		return int64(7), nil
	}
	return int64(2), nil
}

// TestKeyIsAskedOnce: the guard calls Value once, and the value that it compares is sent. The caller's arguments don't
// change.
func TestKeyIsAskedOnce(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/7", Value: 9})
		for name, run := range harness.Ways {
			if b.Dialect == sqlfence.MySQL && !strings.HasPrefix(name, "prepared") {
				continue // its driver makes database/sql prepare the statement, and call Value again
			}
			s.Reset(t, 9)
			asked := 0
			args := []any{70, fickle{&asked}, &fickle{&asked}}
			if err := run(ctx, s.DB, "INSERT INTO books (price, id) VALUES ($1, $2)", args[0], args[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := s.State(t, true); got != "1:10@9 2:10@9 3:10@9 7:70@9" || asked != 1 {
				t.Errorf("%s: asked %d times, the books are %s", name, asked, got)
			}
			asked = 0
			if err := run(ctx, s.DB, "UPDATE books SET id = $1 WHERE id = 7", args[2]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := s.State(t, true); got != "1:10@9 2:10@9 3:10@9 7:70@9" || asked != 1 {
				t.Errorf("%s: asked %d times, the books are %s", name, asked, got)
			}
			asked = 1
			if err := run(ctx, s.DB, "INSERT INTO books (price, id) VALUES ($1, $2)", args[0], args[1]); !errors.Is(err, sqlfence.ErrOutOfScope) {
				t.Errorf("%s of another row: %v", name, err)
			}
		}
	})
}
