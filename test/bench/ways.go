package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/sqlfence/sqlfence"
)

// ways are the ways to write a row that nobody newer may have written: without a guard,
// with one by hand, with what else is in use, and with sqlfence.
func ways() []*measurement {
	var all []*measurement
	add := func(table string, t target, callers int, far bool) {
		all = append(all, &measurement{table: table, on: t.name, callers: callers, far: far, contestants: t.ways()})
	}
	for _, t := range []target{mattn, modernc, mattnNormal, mattnFull, moderncFull, pq, pgx} {
		add("1 caller", t, 1, false)
	}
	for _, t := range []target{mattnNormal, mattnFull, pq, pgx} {
		add("64 callers", t, 64, false)
	}
	for _, t := range []target{pq, pgx} {
		add("Network", t, 1, true)
		add("Network", t, 64, true)
	}
	return all
}

// ways are the contestants on a target.
func (t target) ways() []contestant {
	update := fmt.Sprintf("UPDATE books SET price = %s WHERE id = %s", t.slot(1), t.slot(2))
	predicate := fmt.Sprintf("UPDATE books SET price = %s, fence_token = %s WHERE id = %s AND fence_token <= %s",
		t.slot(1), t.slot(2), t.slot(3), t.slot(4))
	way := func(name string, fenced bool, start func(s *stage) (work, error)) contestant {
		return contestant{name: name, durability: t.durability, fenced: fenced, start: start}
	}
	plain := func(wrap wrapping) func(*stage) (work, error) {
		return t.updating(wrap, rule{}, update, func(id int64) []any { return []any{price(), id} })
	}
	all := []contestant{
		way("plain write", false, plain(bare)),
		way("sqlmw, which does nothing", false, plain(viaSqlmw)),
		way("otelsql", false, plain(viaOtelsql)),
		way("sqlfence, table not registered", true, plain(fenced(sqlfence.WithTable("orders")))),
		way("AND fence_token <= …, by hand", false, t.updating(bare, rule{}, predicate,
			func(id int64) []any { return []any{price(), newest, id, newest} })),
	}
	for _, r := range rules[:2] {
		all = append(all,
			way("the SQL of "+r.name+", by hand", false, t.byHand(r, update)),
			way("sqlfence, "+r.name, true, t.updating(r.wrap(), r, update, func(id int64) []any { return []any{price(), id} })))
	}
	all = append(all, way("SELECT the token, then UPDATE (the blog)", false, t.twoStatements(update)))
	if !t.bare {
		all = append(all,
			way("SELECT … FOR UPDATE in a transaction", false, t.inTransaction(update,
				"SELECT fence_token FROM books WHERE id = $1 FOR UPDATE", true)),
			way("pg_advisory_xact_lock in a transaction", false, t.inTransaction(update,
				"SELECT pg_advisory_xact_lock($1)", false)))
	}
	return all
}

var prices atomic.Int64

// price returns another price than the last one: SQLite writes nothing where nothing changes.
func price() int64 { return 10 + prices.Add(1)%1000 }

// updating makes each caller write a separate row by db.Exec.
func (t target) updating(wrap wrapping, r rule, query string, args func(id int64) []any) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, wrap, 1)
		if err != nil {
			return work{}, err
		}
		contexts := r.contexts(s.callers)
		return work{call: func(ctx context.Context, caller int) error {
			return one(sh.db.ExecContext(contexts[caller], query, args(int64(caller+1))...))
		}}, nil
	}
}

// byHand sends sqlfence's statements by the bare driver. The second argument of query is the row's id.
func (t target) byHand(r rule, query string) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		const (
			somebody = 1     // the only row of the shop in which it is recorded
			asked    = 29791 // a price that no other argument is
		)
		statement, err := t.record(s, r, func(ctx context.Context, db *sql.DB) error {
			return one(db.ExecContext(ctx, query, asked, somebody))
		})
		if err != nil {
			return work{}, err
		}
		row, cost := lastArg(statement.args, somebody), lastArg(statement.args, asked)
		if row < 0 || cost < 0 {
			return work{}, fmt.Errorf("%q has no argument for the row's id, or for the price", statement.query)
		}
		return t.updating(bare, rule{}, statement.query, func(id int64) []any {
			args := append([]any(nil), statement.args...)
			args[row], args[cost] = id, price()
			return args
		})(s)
	}
}

// lastArg returns the index of the last argument with this value, or -1.
func lastArg(args []any, value int) int {
	for i := len(args) - 1; i >= 0; i-- {
		if fmt.Sprint(args[i]) == fmt.Sprint(value) {
			return i
		}
	}
	return -1
}

// twoStatements reads the newest token, compares, and writes: another one may take over
// between the two.
func (t target) twoStatements(update string) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, bare, 1)
		if err != nil {
			return work{}, err
		}
		read := "SELECT token FROM fencing_tokens WHERE name = " + t.slot(1)
		return work{call: func(ctx context.Context, caller int) error {
			var token int64
			if err := sh.db.QueryRowContext(ctx, read, "books").Scan(&token); err != nil {
				return err
			}
			if token > newest {
				return fmt.Errorf("stale: %d", token)
			}
			return one(sh.db.ExecContext(ctx, update, price(), caller+1))
		}}, nil
	}
}

// inTransaction locks, and writes under the lock.
func (t target) inTransaction(update, lock string, reads bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, bare, 1)
		if err != nil {
			return work{}, err
		}
		return work{call: func(ctx context.Context, caller int) error {
			tx, err := sh.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			var token int64
			if reads {
				if err := tx.QueryRowContext(ctx, lock, caller+1).Scan(&token); err != nil {
					return err
				}
			} else if _, err := tx.ExecContext(ctx, lock, caller+1); err != nil {
				return err
			}
			if token > newest {
				return fmt.Errorf("stale: %d", token)
			}
			if err := one(tx.ExecContext(ctx, update, price(), caller+1)); err != nil {
				return err
			}
			return tx.Commit()
		}}, nil
	}
}
