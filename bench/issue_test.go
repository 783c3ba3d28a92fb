package bench

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence/tokens"
)

// BenchmarkIssue lets 64 callers take tokens of one name, each as soon as it has
// got the one before: by the statement that one would write by hand, and by
// Issue, which coalesces the callers.
func BenchmarkIssue(b *testing.B) {
	const callers = 64
	ctx := context.Background()
	db := inSchema(b, "sqlfence_bench_issue")
	db.SetMaxIdleConns(callers)
	store, err := tokens.New(db)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Setup(ctx); err != nil {
		b.Fatal(err)
	}
	if err := store.Ensure(ctx, "books"); err != nil {
		b.Fatal(err)
	}
	b.Run("impl=plain", func(b *testing.B) {
		together(b, callers, func() error {
			var token int64
			return db.QueryRowContext(ctx,
				"UPDATE fencing_tokens SET token = token + 1 WHERE name = $1 RETURNING token", "books").Scan(&token)
		})
	})
	b.Run("impl=sqlfence", func(b *testing.B) {
		together(b, callers, func() error {
			_, err := store.Issue(ctx, "books")
			return err
		})
	})
}

// together makes b.N calls from several goroutines, after one each to warm up.
func together(b *testing.B, goroutines int, call func() error) {
	b.ReportAllocs()
	run := func(calls int64) {
		var taken atomic.Int64
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for taken.Add(1) <= calls {
					if err := call(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	run(int64(goroutines))
	b.ResetTimer()
	run(int64(b.N))
}

// inSchema opens PostgreSQL in a schema of the benchmark's own, so that it never
// touches a ledger that is there.
func inSchema(b *testing.B, schema string) *sql.DB {
	config, err := pgx.ParseConfig(postgres(b))
	if err != nil {
		b.Fatal(err)
	}
	config.RuntimeParams["search_path"] = schema
	db := stdlib.OpenDB(*config)
	drop := func() {
		if _, err := db.Exec("DROP SCHEMA IF EXISTS " + schema + " CASCADE"); err != nil {
			b.Error(err)
		}
	}
	b.Cleanup(func() { drop(); db.Close() })
	drop() // what an interrupted run has left
	if _, err := db.Exec("CREATE SCHEMA " + schema); err != nil {
		b.Fatal(err)
	}
	return db
}
