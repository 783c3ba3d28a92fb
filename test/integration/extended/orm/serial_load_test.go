package orm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const (
	ormEditors = 20
	ormEdits   = 10 // of each editor
)

// An ormEditor is an editor who writes through an ORM, in any of its ways.
type ormEditor struct {
	ormSerialShop
	orm       ormStore
	random    *rand.Rand
	versioned bool // writes under WithSerial
}

// read returns what the row has, and the context to write it with.
func (e ormEditor) read(ctx context.Context, id int64) (price int64, _ context.Context, err error) {
	var serial int64
	err = e.db.QueryRowContext(ctx, fmt.Sprintf("SELECT price, serial FROM books WHERE id = %d", id)).Scan(&price, &serial)
	if e.versioned {
		ctx = sqlfence.WithSerial(ctx, serial)
	}
	return price, ctx, err
}

func (e ormEditor) write(ctx context.Context, id, price int64) error {
	n := e.random.IntN(len(e.orm.updates))
	if e.random.IntN(2) == 0 {
		return e.orm.updates[n].run(ctx, id, price)
	}
	return e.orm.inTx(ctx, func(ctx context.Context, tx ormStore) error { return tx.updates[n].run(ctx, id, price) })
}

// ormEdited is what came out of the editors' work, by row: how often it was
// edited, by the editors' account and by the row's, and what the edits added up to.
type ormEdited struct {
	applied, price, serial [harness.EditedRows]int64
	conflicts              int64
}

// edit lets editors add 1 to the prices, each time to what they read. All have
// read the first row before any of them writes it, so that they do meet.
func (s ormSerialShop) edit(t *testing.T, orm ormStore, versioned bool) ormEdited {
	t.Helper()
	s.empty(t)
	for id := range int64(harness.EditedRows) {
		s.rows.Exec(t, "INSERT INTO books (id, isbn, title, price, serial) VALUES ($1, $2, 'a title', 0, 1)", id+1, ormISBN(id+1))
	}
	s.db.SetMaxOpenConns(16)
	if s.Dialect == sqlfence.SQLite {
		s.db.SetMaxOpenConns(4)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	many, edits := ormEditors, ormEdits
	until := ctx
	if f := flag.Lookup("serial-soak"); versioned && f.Value.String() != f.DefValue {
		many, edits = harness.Editors, math.MaxInt
		var end context.CancelFunc
		until, end = context.WithTimeout(ctx, *harness.SerialSoak)
		defer end()
	}

	var applied [harness.EditedRows]atomic.Int64
	var conflicts atomic.Int64
	// done counts the outcome, and tells whether the edit was applied.
	done := func(id int64, err error) bool {
		switch {
		case err == nil:
			applied[id-1].Add(1)
			return true
		case errors.Is(err, sqlfence.ErrConflict):
			conflicts.Add(1)
		case ctx.Err() == nil && !harness.RefusedUnderLoad(err):
			t.Error(err)
			cancel()
		}
		return false
	}
	var all, ready sync.WaitGroup
	ready.Add(many)
	for n := range many {
		e := ormEditor{s, orm, rand.New(rand.NewPCG(3, uint64(n))), versioned}
		all.Go(func() {
			price, with, err := e.read(ctx, 1)
			ready.Done()
			ready.Wait()
			if err == nil {
				err = e.write(with, 1, price+1)
			}
			done(1, err)
			for i := 0; i < edits && until.Err() == nil; i++ {
				id := 1 + e.random.Int64N(harness.EditedRows)
				for until.Err() == nil {
					price, with, err := e.read(ctx, id)
					if err == nil {
						err = e.write(with, id, price+1)
					}
					if done(id, err) {
						break
					}
				}
			}
		})
	}
	all.Wait()

	got := ormEdited{conflicts: conflicts.Load()}
	for i := range got.applied {
		got.applied[i] = applied[i].Load()
		row := s.rows.Plain.QueryRowContext(t.Context(), "SELECT price, serial FROM books WHERE id = $1", i+1)
		if err := row.Scan(&got.price[i], &got.serial[i]); err != nil {
			t.Fatal(err)
		}
		if got.serial[i]-1 != got.applied[i] {
			t.Errorf("row %d: %d edits were applied; its serial tells %d", i+1, got.applied[i], got.serial[i]-1)
		}
	}
	return got
}

// lost is how many edits are missing in the prices.
func (e ormEdited) lost() (n int64) {
	for i, applied := range e.applied {
		n += max(applied-e.price[i], e.price[i]-applied)
	}
	return n
}

// No update is lost of what editors write through ORMs. With -serial-soak there are
// as many of them as in TestSerialUnderLoad, for that long with each ORM.
func TestORMSerialUnderLoad(t *testing.T) {
	eachORMStore(t, func(t *testing.T, s ormSerialShop, orm ormStore) {
		start := time.Now()
		got := s.edit(t, orm, true)
		if got.lost() != 0 {
			t.Errorf("%d edits were lost: applied %d, prices %d", got.lost(), got.applied, got.price)
		}
		if got.conflicts == 0 {
			t.Error("nobody got in anybody's way: the test tests nothing")
		}
		t.Logf("%d applied, %d conflicts, %v", got.applied, got.conflicts, time.Since(start))
	})
}

// Those who don't say which version they have read do lose some, which shows that
// the other test would see it.
func TestORMSerialUnderLoadUncompared(t *testing.T) {
	eachORMStore(t, func(t *testing.T, s ormSerialShop, orm ormStore) {
		got := s.edit(t, orm, false)
		if got.conflicts != 0 {
			t.Errorf("%d conflicts without WithSerial", got.conflicts)
		}
		if got.lost() == 0 {
			t.Errorf("nothing was lost: applied %d, prices %d", got.applied, got.price)
		}
	})
}
