package main

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
)

// fenced is sqlfence with the rules. The application's statements stay unchanged.
func fenced(name string, rules ...sqlfence.Rule) approach {
	return approach{
		name:   name,
		create: []string{addToken},
		ledger: true,
		open: func(db *database) (*sql.DB, error) {
			return db.fenced(sqlfence.WithTable("books", rules...))
		},
		hold: func(ctx context.Context, p *process) error { return nil },
		write: func(ctx context.Context, p *process, s statement) (int64, error) {
			return send(p.holding(ctx), p.db, s)
		},
	}
}

func (p *process) holding(ctx context.Context) context.Context {
	return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: p.token})
}
