package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

var tokenChecks = []check{
	{name: "token at execution", guarantee: tokenAtExecution,
		explanation: "A statement prepared at start-up is guarded by the token of each execution's own context."},
	{name: "paused writer", guarantee: pausedWriter,
		explanation: "G1, G2: a writer that is overtaken while it is paused, also in a transaction, is refused when it " +
			"wakes up."},
}

var raceChecks = []check{
	{name: "competing writers", guarantee: competingWriters,
		explanation: "G1, G2: of many writers at once none that holds an older token comes after one that holds a newer."},
}

func tokenAtExecution(f *fenced) {
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		for _, prepareCtx := range []context.Context{context.Background(), holding(3), holding(20)} {
			f.reset(9)
			stmt := must(db.PrepareContext(prepareCtx, f.bind("UPDATE books SET price = ? WHERE id = ?")))
			f.wantStale(fence.name, errorOf(stmt.ExecContext(holding(8), 30, 1)), 8, 9)
			f.issue(10)
			must(stmt.ExecContext(holding(10), 30, 1))
			f.wantError(fence.name+" without a token", errorOf(stmt.ExecContext(context.Background(), 31, 1)),
				sqlfence.ErrNoFence)
			f.issue(11)
			must(stmt.ExecContext(holding(11), 32, 1))
			f.wantStale(fence.name, errorOf(stmt.ExecContext(holding(10), 33, 1)), 10, 11)
			f.must(stmt.Close())
		}
	}
}

func pausedWriter(f *fenced) {
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		query := f.bind("UPDATE books SET price = ? WHERE id = ?")
		f.reset(1)
		first := must(f.store.Issue(context.Background(), "books"))
		older := sqlfence.WithFence(context.Background(), first)
		paused := must(db.BeginTx(older, nil))
		defer paused.Rollback() // where the check fails before it ends
		alone := f.alone()
		if alone { // no other can overtake it
			f.must(paused.Rollback())
		}
		second := must(f.store.Issue(context.Background(), "books"))
		newer := sqlfence.WithFence(context.Background(), second)
		must(db.ExecContext(newer, query, 50, 1))
		f.wantStale(fence.name, errorOf(db.ExecContext(older, query, 40, 1)), first.Value, second.Value)
		if !alone {
			f.wantStale(fence.name+", in a transaction begun before", errorOf(paused.ExecContext(older, query, 40, 1)),
				first.Value, second.Value)
			f.must(paused.Rollback())
		}
		must(db.ExecContext(newer, query, 60, 1))
		var price int
		f.must(f.plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price))
		f.want(fence.name+": price", price, 60)
	}
}

// alone reports whether an open transaction that has sent nothing blocks all other writers, as BEGIN IMMEDIATE does in
// SQLite.
func (f *fenced) alone() bool {
	if !f.dialect.oneWriter {
		return false
	}
	ctx := context.Background()
	conn := must(f.plain.Conn(ctx))
	defer conn.Close()
	exec := func(query string) error { return errorOf(conn.ExecContext(ctx, query)) }
	var patience int64
	if conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&patience) != nil {
		return false // a database that is only like SQLite
	}
	f.must(exec("PRAGMA busy_timeout = 0"))
	err := exec("BEGIN IMMEDIATE")
	if err == nil {
		f.must(exec("ROLLBACK"))
	} else if !dberr.IsBusy(err) {
		f.must(err)
	}
	f.must(exec(fmt.Sprintf("PRAGMA busy_timeout = %d", patience)))
	return err != nil
}

// competingWriters lets several writers at once take tokens, and write each token as the price. After a successful
// write, the writer must never read a price below its token. The last price must be the highest token that was written.
func competingWriters(f *fenced) {
	const writers, rounds = 6, 5
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		f.reset(1)
		var mu sync.Mutex
		var passed []int64
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range rounds {
					token, err := f.store.Issue(context.Background(), "books")
					if err != nil {
						f.errorf("%s: issue: %v", fence.name, err)
						return
					}
					_, err = db.ExecContext(sqlfence.WithFence(context.Background(), token),
						f.bind("UPDATE books SET price = ? WHERE id = ?"), token.Value, 1)
					if err != nil {
						f.wantError(fence.name, err, sqlfence.ErrStale)
						continue
					}
					var price int64
					if err := f.plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price); err != nil ||
						price < token.Value {
						f.errorf("%s: after the write of %d the price is %d, %v", fence.name, token.Value, price, err)
					}
					mu.Lock()
					passed = append(passed, token.Value)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(passed) == 0 {
			f.errorf("%s: no writer passed", fence.name)
			continue
		}
		var price int64
		f.must(f.plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price))
		f.want(fence.name+": last price of "+fmt.Sprint(passed), price, slices.Max(passed))
	}
}
