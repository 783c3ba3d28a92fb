package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// refused measures writes that the database refuses: writes with a stale token, and a write that violates a CHECK.
func refused() []*measurement {
	var all []*measurement
	for _, t := range []target{mattn, modernc, pq, pgx} {
		all = append(all, &measurement{table: "Refused", on: t.name, contestants: t.refused()})
	}
	for _, t := range []target{pq, pgx} {
		all = append(all, &measurement{table: "Refused over a network", on: t.name, far: true, contestants: t.refused()})
	}
	return all
}

func (t target) refused() []contestant {
	all := []contestant{{name: "CHECK, plain", durability: t.durability, start: t.refusing(bare, rule{}, -1, func(err error) bool { return err != nil })}}
	for _, r := range rules[:2] {
		late := r
		late.fences = func(ctx context.Context, _ int) context.Context {
			return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: newest - 1})
		}
		all = append(all,
			contestant{name: "CHECK, " + r.name, durability: t.durability, fenced: true,
				start: t.refusing(r.wrap(), r, -1, func(err error) bool { return err != nil && !errors.Is(err, sqlfence.ErrStale) })},
			contestant{name: "stale, " + r.name, durability: t.durability, fenced: true,
				start: t.refusing(r.wrap(), late, 30, isStale)})
	}
	return all
}

func isStale(err error) bool { return errors.Is(err, sqlfence.ErrStale) }

// refusing writes a price that isn't accepted, or with a token that isn't.
func (t target) refusing(wrap wrapping, r rule, price int, want func(error) bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, wrap, 1)
		if err != nil {
			return work{}, err
		}
		query := fmt.Sprintf("UPDATE books SET price = %s WHERE id = %s", t.slot(1), t.slot(2))
		fence := r.contexts(1)[0]
		return work{call: func(context.Context, int) error {
			if _, err := sh.db.ExecContext(fence, query, price, 1); !want(err) {
				return fmt.Errorf("not refused as it should be: %v", err)
			}
			return nil
		}}, nil
	}
}
