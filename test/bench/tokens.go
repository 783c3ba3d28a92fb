package main

import (
	"context"

	"github.com/sqlfence/sqlfence/tokens"
)

// issue takes tokens of one name, each caller as soon as it has got the one before.
func issue() []*measurement {
	var all []*measurement
	add := func(t target, callers int, far bool) {
		all = append(all, &measurement{table: "Tokens of one name", on: t.name, callers: callers, far: far, contestants: []contestant{
			{name: "UPDATE … RETURNING, by hand", durability: t.durability, start: t.counting},
			{name: "tokens.Issue", durability: t.durability, fenced: true, start: t.issuing},
		}})
	}
	for _, callers := range []int{1, 64, 256} {
		add(pgx, callers, false)
	}
	for _, callers := range []int{1, 64} {
		add(pgx, callers, true)
		add(mattnFull, callers, false)
	}
	return all
}

func (t target) counting(s *stage) (work, error) {
	sh, err := t.openShop(s, bare, 1)
	if err != nil {
		return work{}, err
	}
	query := "UPDATE fencing_tokens SET token = token + 1 WHERE name = " + t.slot(1) + " RETURNING token"
	return work{call: func(ctx context.Context, _ int) error {
		var token int64
		return sh.db.QueryRowContext(ctx, query, "books").Scan(&token)
	}}, nil
}

func (t target) issuing(s *stage) (work, error) {
	sh, err := t.openShop(s, bare, 1)
	if err != nil {
		return work{}, err
	}
	store, err := tokens.New(sh.db)
	if err != nil {
		return work{}, err
	}
	if err := store.Setup(context.Background()); err != nil {
		return work{}, err
	}
	return work{call: func(ctx context.Context, _ int) error {
		_, err := store.Issue(ctx, "books")
		return err
	}}, nil
}
