package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

var poolChecks = []check{
	{name: "pool", steps: pool,
		explanation: "Connections are opened, reused and closed as with the driver alone: the pool's statistics are the same."},
	{name: "ping", steps: ping,
		explanation: "Ping, of the database and of a connection, answers as with the driver alone."},
	{name: "many goroutines", steps: manyGoroutines,
		explanation: "Many goroutines that use the database at once get the answers that they get with the driver alone."},
}

func pool(s *side) {
	use := func(step string) {
		res, err := s.db.ExecContext(s.ctx, "UPDATE books SET price = price + 1 WHERE id = 1")
		s.show(step, resultText(res, err), statsText(s.db.Stats()))
		s.show(step+", query", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")),
			statsText(s.db.Stats()))
		_, err = s.db.ExecContext(s.ctx, "UPDATE books SET price = NULL")
		s.show(step+", error", err, statsText(s.db.Stats()))
	}
	use("default")
	s.db.SetMaxOpenConns(1)
	use("one connection")
	s.db.SetMaxIdleConns(0)
	use("no idle connections")
	s.db.SetMaxIdleConns(2)
	s.db.SetConnMaxLifetime(time.Nanosecond)
	use("short life")
	s.db.SetConnMaxLifetime(0)
	s.db.SetMaxOpenConns(2)
	a := must(s.db.Conn(s.ctx))
	b := must(s.db.Conn(s.ctx))
	s.show("two connections", statsText(s.db.Stats()))
	s.show("closed", a.Close(), b.Close(), statsText(s.db.Stats()))
}

func ping(s *side) {
	s.show("database", s.db.PingContext(context.Background()))
	c := must(s.db.Conn(s.ctx))
	s.show("connection", c.PingContext(context.Background()))
	tx := must(c.BeginTx(context.Background(), nil))
	s.show("in a transaction", c.PingContext(s.ctx), tx.Rollback(), c.Close())
	s.show("pool", statsText(s.db.Stats()))
}

func manyGoroutines(s *side) {
	const goroutines, rounds = 6, 5
	s.db.SetMaxOpenConns(3)
	insert := must(s.db.PrepareContext(s.ctx, s.bind("INSERT INTO books (id, price) VALUES (?, ?)")))
	var mu sync.Mutex
	var seen []string
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				id := 100 + g*rounds + i
				res, err := insert.ExecContext(s.ctx, id, i)
				one := fmt.Sprintf("%d: insert %s", id, resultAffected(res, err))
				res, err = s.db.ExecContext(s.ctx, s.bind("UPDATE books SET price = price + ? WHERE id = ?"), g, id)
				one += " update " + resultAffected(res, err)
				one += " read " + string(rowsText(s.db.QueryContext(s.ctx, s.bind("SELECT id, price FROM books WHERE id = ?"), id)))
				mu.Lock()
				seen = append(seen, one)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(seen)
	for _, one := range seen {
		s.show("goroutine", one)
	}
	s.show("closing", insert.Close())
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
}
