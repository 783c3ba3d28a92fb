package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sqlfence/sqlfence"
)

// kinds are the kinds of statements under each of the rules.
func kinds() []*measurement {
	var all []*measurement
	for _, t := range []target{mattn, modernc, mattnFull, pq, pgx} {
		for _, k := range t.kinds() {
			for _, prepared := range []bool{false, true} {
				m := &measurement{table: "db.Exec", on: t.name, name: k.name}
				if prepared {
					m.table, m.name = "Prepared", k.name+", prepared"
				}
				m.contestants = append(m.contestants, contestant{name: "plain", durability: t.durability,
					start: t.executing(k, bare, rule{}, prepared)})
				for _, r := range rules {
					m.contestants = append(m.contestants, contestant{name: r.name, durability: t.durability, fenced: true,
						start: t.executing(k, r.wrap(), r, prepared)})
				}
				all = append(all, m)
			}
		}
	}
	return all
}

// A kind is a kind of statement that writes one row.
type kind struct {
	name  string
	query string
	args  func(n int64) []any // of the n-th call
	undo  string              // adds the row again that the statement has deleted, with a mark
	keyed bool                // it writes row 1; else each call writes a new row
	reads bool                // it can be compared with a serial, which it then raises
}

func (t target) kinds() []kind {
	return []kind{
		{"UPDATE by key", fmt.Sprintf("UPDATE books SET price = %s WHERE id = %s", t.slot(1), t.slot(2)),
			func(n int64) []any { return []any{n, 1} }, "", true, true},
		{"INSERT", fmt.Sprintf("INSERT INTO books (id, title, price) VALUES (%s, %s, %s)", t.slot(1), t.slot(2), t.slot(3)),
			func(n int64) []any { return []any{n + 1_000, "a title", 30} }, "", false, false},
		{"upsert", fmt.Sprintf("INSERT INTO books (id, title, price) VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET price = excluded.price", t.slot(1), t.slot(2), t.slot(3)),
			func(n int64) []any { return []any{1, "a title", n} }, "", true, false},
		{"DELETE by key", fmt.Sprintf("DELETE FROM books WHERE id = %s", t.slot(1)),
			func(int64) []any { return []any{1} }, "INSERT INTO books (id, title, price, fence_token, serial) VALUES (1, 'a title', 10, %d, 1)", true, false},
	}
}

// executing lets one caller execute the kind's statement.
func (t target) executing(k kind, wrap wrapping, r rule, prepared bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		if r.name == "Key" && !k.keyed {
			// A token for each row that is added would be measured as well.
			return work{}, errSkip("a new row needs a new token")
		}
		sh, err := t.openShop(s, wrap, 100)
		if err != nil {
			return work{}, err
		}
		if err := r.seals(sh); err != nil {
			return work{}, err
		}
		execute, err := sh.execute(prepared, k.query)
		if err != nil {
			return work{}, err
		}
		fence := r.contexts(1)[0]
		var calls atomic.Int64
		w := work{call: func(context.Context, int) error {
			n := calls.Add(1)
			ctx := fence
			if r.name == "Serial" && k.reads {
				ctx = sqlfence.WithSerial(ctx, n)
			}
			return execute(ctx, k.args(n)...)
		}}
		if k.undo != "" {
			missing := false
			w.before = func(context.Context) error {
				if !missing {
					missing = true
					return nil
				}
				return setUp(sh.db, fmt.Sprintf(k.undo, r.mark()))
			}
		}
		return w, nil
	}
}
