package drivers

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

var serialSoak = flag.Duration("serial-soak", time.Second, "how long the editors of TestSerialUnderLoad write, in each setting; if given, also those of TestORMSerialUnderLoad")

const (
	editors    = 200
	editedRows = 10
)

// An editor reads a row, thinks, and writes what it made of it, each time in
// another form: the price that it read, and 1. What is lost is missing at the end.
type editor struct {
	*shop
	random *rand.Rand
}

// edit reports whether the edit of the row was applied.
func (e editor) edit(ctx context.Context, id int) (applied bool, err error) {
	var price, serial int64
	if err := e.db.QueryRowContext(ctx, "SELECT price, serial FROM books WHERE id = $1", id).Scan(&price, &serial); err != nil {
		return false, err
	}
	ctx = sqlfence.WithSerial(ctx, serial)
	w := write{"", "UPDATE books SET price = $1 WHERE id = $2", []any{price + 1, id}}
	if e.dialect == sqlfence.Postgres && e.random.IntN(4) == 0 {
		w = write{"", "INSERT INTO books (price, id) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price", w.args}
	}
	form := forms[e.random.IntN(len(forms))]
	if strings.HasPrefix(w.query, "INSERT") {
		form = forms[e.random.IntN(4)] // those of Exec
	}
	if e.random.IntN(2) == 0 {
		n, err := form.run(ctx, e.db, w.as(e.dialect))
		return n == 1, err
	}
	err = e.inTx(ctx, func(tx *sql.Tx) error {
		n, err := form.run(ctx, tx, w.as(e.dialect))
		applied = n == 1
		return err
	})
	return applied && err == nil, err
}

// No update is lost: every row has as many changes as edits were applied to it,
// in its price and in its serial.
func TestSerialUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("writes for a while")
	}
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.serialShop(t)
		sh.db.SetMaxOpenConns(16)
		if s.dialect == sqlfence.SQLite {
			sh.db.SetMaxOpenConns(4)
		}
		for id := range editedRows {
			sh.exec(t, "INSERT INTO books (id, price, serial) VALUES ($1, 1, 1)", id)
		}
		var applied [editedRows]atomic.Int64
		var conflicts atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), *serialSoak)
		defer cancel()
		var wg sync.WaitGroup
		for n := range editors {
			e := editor{sh, rand.New(rand.NewPCG(2, uint64(n)))}
			wg.Go(func() {
				for ctx.Err() == nil {
					id := e.random.IntN(editedRows)
					ok, err := e.edit(t.Context(), id)
					switch {
					case ok && err == nil:
						applied[id].Add(1)
					case errors.Is(err, sqlfence.ErrConflict):
						conflicts.Add(1)
					case err == nil || !refusedUnderLoad(err):
						t.Errorf("applied %v, %v", ok, err)
						return
					}
				}
			})
		}
		wg.Wait()
		var sum int64
		for id := range editedRows {
			var price, serial int64
			if err := sh.plain.QueryRow("SELECT price, serial FROM books WHERE id = $1", id).Scan(&price, &serial); err != nil {
				t.Fatal(err)
			}
			n := applied[id].Load()
			if sum += n; price-1 != n || serial-1 != n {
				t.Errorf("row %d: %d edits were applied; its price tells %d, its serial %d", id, n, price-1, serial-1)
			}
		}
		t.Logf("%d edits, %d conflicts", sum, conflicts.Load())
		if sum == 0 || conflicts.Load() == 0 {
			t.Error("nobody got in anybody's way: the test tests nothing")
		}
	})
}
