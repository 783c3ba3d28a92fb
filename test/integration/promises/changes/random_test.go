package changes_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Several sessions write, commit and roll back. Readers read the count, the table and the count again. If both counts
// are equal, each reader that sees this count at any time has read the same rows. No count stands for two states of the
// table. Between their writes the sessions read, too, so a busy machine doesn't leave too few reads.
func TestRandomReadersWithEqualCountsSeeEqualTables(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		m := &model{counter: setup(t, db), db: db, rows: make(map[int64]string)}
		var writers, readers sync.WaitGroup
		var over atomic.Bool
		rounds := harness.Rounds(t, 400)
		for i := range 4 {
			writers.Go(func() { m.write(t, b, i, rounds) })
		}
		for range 2 {
			readers.Go(func() {
				for i := 0; !over.Load() && !t.Failed(); i++ {
					if i%2 == 0 {
						m.read(t)
					} else {
						m.readInCalm(t)
					}
				}
			})
		}
		writers.Wait()
		over.Store(true)
		readers.Wait()
		m.read(t)
		if t.Logf("%d counts were seen, and %d times one again", len(m.rows), m.again); len(m.rows) < min(rounds, mostReads)/2 {
			t.Error("too few counts were seen")
		}
	})
}

// mostReads is how often each session reads.
const mostReads = 20

type model struct {
	counter *changes.Counter
	db      *sql.DB
	price   atomic.Int64 // each price is written once

	calm sync.RWMutex // a reader that locks it for writing stops the sessions' writes

	mu    sync.Mutex
	rows  map[int64]string // the rows that a reader saw, by the count
	again int
}

// readInCalm reads while no session writes, for the sake of databases that are always busy.
func (m *model) readInCalm(t *testing.T) {
	m.calm.Lock()
	defer m.calm.Unlock()
	m.read(t)
}

func (m *model) read(t *testing.T) {
	before := count(t, m.counter, "books")
	found := harness.Describe(m.db.Query("SELECT id, price FROM books ORDER BY id"))
	if count(t, m.counter, "books") != before {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.rows[before]; ok {
		m.again++
		if known != found {
			t.Errorf("of the count %d the rows were\n%s\nand then\n%s", before, known, found)
		}
	}
	m.rows[before] = found
}

// write changes rows by random transactions. Each session updates a separate row. All sessions insert and delete other
// rows.
func (m *model) write(t *testing.T, b harness.Base, session, rounds int) {
	random := rand.New(rand.NewPCG(harness.Seed(t), uint64(session)))
	own := 1000 + session
	exec(t, m.db, fmt.Sprintf("INSERT INTO books (id, price) VALUES (%d, %d)", own, m.price.Add(1)))
	for round := range rounds {
		m.calm.RLock()
		var err error
		switch price := m.price.Add(1); random.IntN(4) {
		case 0:
			_, err = m.db.Exec(fmt.Sprintf("UPDATE books SET price = %d WHERE id = %d", price, own))
		case 1:
			_, err = m.db.Exec(fmt.Sprintf("INSERT INTO books (id, price) VALUES (%d, %d)", 1_000_000+price, price))
		default:
			err = m.transact(random, own, price)
		}
		m.calm.RUnlock()
		if err != nil && !harness.RefusedByIsolation(err) && b.Networked() {
			t.Error(err)
			return
		}
		if round%max(1, rounds/mostReads) == 0 {
			m.readInCalm(t)
		}
		if random.IntN(20) == 0 {
			m.db.SetMaxIdleConns(random.IntN(8)) // connections of the pool end, and new ones begin
		}
	}
}

func (m *model) transact(random *rand.Rand, own int, price int64) error {
	tx, err := m.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for range 1 + random.IntN(3) {
		query := fmt.Sprintf("UPDATE books SET price = %d WHERE id = %d", price, own)
		if random.IntN(3) == 0 {
			query = fmt.Sprintf("DELETE FROM books WHERE id = %d", 1_000_000+random.Int64N(price))
		}
		if _, err := tx.Exec(query); err != nil {
			return err
		}
	}
	if random.IntN(3) == 0 {
		return tx.Rollback()
	}
	return tx.Commit()
}
