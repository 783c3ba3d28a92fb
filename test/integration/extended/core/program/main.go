// Program is what docs/trusted-core.md is counted on: a program with RowFence and Ledger on PostgreSQL, from Open to
// refused writes. It is built with the coverage of the packages that it may enter, and writes their counters of all that
// it does to the folder ALL, and those of one UPDATE, of a text and on a connection that sqlfence knows, to WARM.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

func main() {
	if err := run(context.Background(), os.Getenv("DSN"), os.Getenv("ALL"), os.Getenv("WARM")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dsn, all, warm string) error {
	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	issuer, err := tokens.New(db)
	if err != nil {
		return err
	}
	if err := issuer.Setup(ctx); err != nil {
		return err
	}
	first, err := issuer.Issue(ctx, "books")
	if err != nil {
		return err
	}
	if err := writes(sqlfence.WithFence(ctx, first), db, nil); err != nil {
		return err
	}
	if err := writes(ctx, db, sqlfence.ErrNoFence); err != nil {
		return err
	}
	if _, err := issuer.Issue(ctx, "books"); err != nil {
		return err
	}
	if err := writes(sqlfence.WithFence(ctx, first), db, sqlfence.ErrStale); err != nil {
		return err
	}
	newest, err := issuer.Current(ctx, "books")
	if err != nil {
		return err
	}
	if err := write(sqlfence.WithFence(ctx, newest), db, update, nil); err != nil {
		return err
	}
	if err := coverage.WriteCountersDir(all); err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := write(sqlfence.WithFence(ctx, newest), db, update, nil); err != nil {
		return err
	}
	if err := coverage.WriteCountersDir(warm); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(all), coverage.WriteMetaDir(warm))
}

const update = "UPDATE books SET price = $1 WHERE id = $2"

// writes executes a statement of each kind, whose error has to be want.
func writes(ctx context.Context, db *sql.DB, want error) error {
	if err := write(ctx, db, update, want); err != nil {
		return err
	}
	for _, query := range []string{
		"INSERT INTO books (price, id) VALUES ($1, $2)",
		"INSERT INTO books (price, id) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
		"DELETE FROM books WHERE price < $1 AND id = $2",
	} {
		if err := write(ctx, db, query, want); err != nil {
			return err
		}
	}
	_, err := db.ExecContext(ctx, "SELECT count(*) FROM books")
	return err
}

func write(ctx context.Context, db *sql.DB, query string, want error) error {
	if _, err := db.ExecContext(ctx, query, 30, 2); !errors.Is(err, want) {
		return fmt.Errorf("%s: %w, want %v", query, err, want)
	}
	return nil
}
