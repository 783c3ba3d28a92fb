package concurrency_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// The scenario for which fencing tokens exist: a thousand clients each take a token, are delayed, and write their
// price. The final price must be that of the highest token whose write succeeded.

func TestThousandClientsRowFence(t *testing.T) { thousandClients(t, sqlfence.RowFence("fence_token")) }

func TestThousandClientsLedger(t *testing.T) { thousandClients(t, sqlfence.Ledger()) }

func thousandClients(t *testing.T, rule sqlfence.Rule) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		const clients = 1000
		sh := harness.Setting{Base: b}.Shop(t, rule)
		sh.Reset(t, 0)
		pool := 50
		if b.Dialect == sqlfence.SQLite {
			pool = 4 // more would only wait for the file
		}
		sh.DB.SetMaxOpenConns(pool)
		store, err := tokens.New(sh.DB)
		if err != nil {
			t.Fatal(err)
		}

		delays := newDelays(clients)
		prices := make([]int64, clients+1) // by token; 0 where the write was refused
		var wg sync.WaitGroup
		for client := range clients {
			price := int64(1000 + client)
			wg.Go(func() {
				token, err := store.Issue(t.Context(), "books")
				delays.wait(token.Value)
				defer delays.done()
				if err != nil {
					t.Error(err)
					return
				}
				ctx := sqlfence.WithFence(t.Context(), token)
				switch n, err := harness.Affected(sh.DB.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", price, 1)); {
				case err == nil && n == 1:
					prices[token.Value] = price // no other client has this token
				case err == nil:
					t.Errorf("token %v wrote %d rows", token, n)
				case !errors.Is(err, sqlfence.ErrStale):
					t.Errorf("token %v: %v", token, err)
				}
			})
		}
		wg.Wait()

		var highest, refused int
		for token, price := range prices[1:] {
			if price != 0 {
				highest = token + 1
			} else {
				refused++
			}
		}
		var final int64
		if err := sh.Plain.QueryRowContext(context.WithoutCancel(t.Context()), "SELECT price FROM books WHERE id = 1").Scan(&final); err != nil {
			t.Fatal(err)
		}
		if highest == 0 || final != prices[highest] {
			t.Errorf("the final price is %d, but token %d, the highest that succeeded, wrote %d", final, highest, prices[highest])
		}
		if refused == 0 {
			t.Error("nobody was refused: the test tests nothing")
		}
	})
}

// delays holds clients back for a random time, without a clock: clients are released in groups, shuffled, while further
// clients arrive. The client with token 1 is paused until all other clients are done, so that without a fence its price
// would stay.
type delays struct {
	mu      sync.Mutex
	coming  int // clients that haven't arrived
	working int // clients that aren't done
	waiting []chan struct{}
	rest    chan struct{} // closed when only the paused one is left
}

func newDelays(clients int) *delays {
	return &delays{coming: clients, working: clients, rest: make(chan struct{})}
}

func (d *delays) wait(token int64) {
	d.mu.Lock()
	pause := d.rest
	if token != 1 {
		pause = make(chan struct{})
		d.waiting = append(d.waiting, pause)
	}
	d.coming--
	if len(d.waiting) >= 100 || d.coming == 0 {
		rand.Shuffle(len(d.waiting), func(i, j int) { d.waiting[i], d.waiting[j] = d.waiting[j], d.waiting[i] })
		stay := len(d.waiting) / 3 // for a later group
		if d.coming == 0 {
			stay = 0
		}
		for _, ch := range d.waiting[stay:] {
			close(ch)
		}
		d.waiting = d.waiting[:stay]
	}
	d.mu.Unlock()
	<-pause
}

func (d *delays) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.working--; d.working == 1 {
		close(d.rest)
	}
}
