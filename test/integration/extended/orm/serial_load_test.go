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
	ormEdits   = 10 // by each editor
)

// An ormEditor reads a row and writes it through an ORM, each time in a random one of the ORM's ways.
type ormEditor struct {
	ormSerialShop
	orm       ormStore
	random    *rand.Rand
	versioned bool // writes under WithSerial
}

// read returns the row's price, and the context for the write: with the row's version if the editor is versioned.
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

// ormEdited is the outcome for each row: the edits that the editors count as applied, the row's final price and serial.
// Each edit adds 1 to the price.
type ormEdited struct {
	applied, price, serial [harness.EditedRows]int64
	conflicts              int64
}

// edit lets several editors read a price, add 1 and write the sum. All editors read the first row before the first
// write, so that at least the writes to this row conflict.
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
	// done counts the outcome, and reports whether the edit was applied.
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

// lost returns the number of applied edits that are missing in the prices.
func (e ormEdited) lost() (n int64) {
	for i, applied := range e.applied {
		n += max(applied-e.price[i], e.price[i]-applied)
	}
	return n
}

// No edit that editors write through an ORM under WithSerial is lost. With -serial-soak each ORM runs for the given
// time, with as many editors as TestSerialUnderLoad.
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

// Editors that write without WithSerial lose edits. This shows that TestORMSerialUnderLoad would detect a lost edit.
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
