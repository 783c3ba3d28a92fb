package serials_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An editor reads a row, waits, and writes the price that it read plus 1, each time in another form. A lost update is
// missing in the final price.
type editor struct {
	*harness.Shop
	random *rand.Rand
}

// edit reports whether the edit of the row was applied.
func (e editor) edit(ctx context.Context, id int) (applied bool, err error) {
	var price, serial int64
	if err := e.DB.QueryRowContext(ctx, "SELECT price, serial FROM books WHERE id = $1", id).Scan(&price, &serial); err != nil {
		return false, err
	}
	ctx = sqlfence.WithSerial(ctx, serial)
	w := harness.Write{Name: "", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{price + 1, id}}
	if e.Dialect == sqlfence.Postgres && e.random.IntN(4) == 0 {
		w = harness.Write{Name: "", Query: "INSERT INTO books (price, id) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price", Args: w.Args}
	}
	form := e.Forms()[e.random.IntN(len(e.Forms()))]
	if strings.HasPrefix(w.Query, "INSERT") {
		form = harness.Forms[e.random.IntN(4)] // the forms of Exec
	}
	if e.random.IntN(2) == 0 {
		n, err := form.Run(ctx, e.DB, w.As(e.Dialect))
		return n == 1, err
	}
	err = e.InTx(ctx, func(tx *sql.Tx) error {
		n, err := form.Run(ctx, tx, w.As(e.Dialect))
		applied = n == 1
		return err
	})
	return applied && err == nil, err
}

// No update is lost: in every row both the price and the serial have risen by the number of successful edits.
func TestSerialUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("writes for a while")
	}
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		sh.DB.SetMaxOpenConns(16)
		if s.Dialect == sqlfence.SQLite {
			sh.DB.SetMaxOpenConns(4)
		}
		for id := range harness.EditedRows {
			sh.Exec(t, "INSERT INTO books (id, price, serial) VALUES ($1, 1, 1)", id)
		}
		var applied [harness.EditedRows]atomic.Int64
		var conflicts atomic.Int64
		var sum atomic.Int64
		began := time.Now()
		// If the machine is slow, the editors continue until they have conflicted.
		goesOn := func() bool {
			took, little := time.Since(began), sum.Load() == 0 || sum.Load() < 1000 && conflicts.Load() == 0
			return took < *harness.SerialSoak || little && took < *harness.SerialSoak+harness.Patience
		}
		var wg sync.WaitGroup
		for n := range harness.Editors {
			e := editor{sh, rand.New(rand.NewPCG(2, uint64(n)))}
			wg.Go(func() {
				for goesOn() {
					id := e.random.IntN(harness.EditedRows)
					ok, err := e.edit(t.Context(), id)
					switch {
					case ok && err == nil:
						applied[id].Add(1)
						sum.Add(1)
					case errors.Is(err, sqlfence.ErrConflict):
						conflicts.Add(1)
					case err == nil || !harness.RefusedUnderLoad(err):
						t.Errorf("applied %v, %v", ok, err)
						return
					}
				}
			})
		}
		wg.Wait()
		for id := range harness.EditedRows {
			var price, serial int64
			if err := sh.Plain.QueryRow("SELECT price, serial FROM books WHERE id = $1", id).Scan(&price, &serial); err != nil {
				t.Fatal(err)
			}
			n := applied[id].Load()
			if price-1 != n || serial-1 != n {
				t.Errorf("row %d: %d edits were applied; its price tells %d, its serial %d", id, n, price-1, serial-1)
			}
		}
		t.Logf("%d edits, %d conflicts", sum.Load(), conflicts.Load())
		if sum.Load() == 0 || conflicts.Load() == 0 {
			t.Error("nobody got in anybody's way: the test tests nothing")
		}
	})
}
