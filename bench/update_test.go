package bench

import (
	"context"
	"database/sql"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"

	"github.com/sqlfence/sqlfence"
)

// A setting is a database and the statement to measure on it.
type setting struct {
	name, driver string
	dsn          func(b *testing.B) string
	plain        string // without a guard
	byHand       string // with the same guard, written by hand; the token comes last
}

var settings = []setting{
	{
		name: "mattn", driver: "sqlite3",
		dsn:   func(*testing.B) string { return ":memory:" },
		plain: "UPDATE bench_books SET price = ? WHERE id = ?",
		byHand: "UPDATE bench_books SET price = ?1, `fence_token` = CASE WHEN COALESCE(CAST(`bench_books`.`fence_token` AS INTEGER), 0) <= ?3 " +
			"THEN ?3 ELSE json_extract('{}', 'sqlfence:stale:0:' || `bench_books`.`fence_token`) END WHERE id = ?2",
	},
	{name: "pgx", driver: "pgx", dsn: postgres, plain: postgresPlain, byHand: postgresByHand},
	{name: "pq", driver: "postgres", dsn: postgres, plain: postgresPlain, byHand: postgresByHand},
}

const (
	postgresPlain  = "UPDATE bench_books SET price = $1 WHERE id = $2"
	postgresByHand = `UPDATE bench_books SET price = $1, ("fence_token") = ROW(CASE WHEN COALESCE("bench_books"."fence_token", 0) <= $3::bigint ` +
		`THEN $3::bigint ELSE ('sqlfence:stale:0:' || "bench_books"."fence_token")::bigint END) WHERE id = $2`
)

func postgres(b *testing.B) string {
	dsn := os.Getenv("SQLFENCE_POSTGRES_DSN")
	if dsn == "" {
		b.Skip("SQLFENCE_POSTGRES_DSN is not set; run make bench")
	}
	return dsn
}

// BenchmarkUpdate compares a fenced UPDATE with the same guard written by hand
// on the bare driver, and with no guard at all.
func BenchmarkUpdate(b *testing.B) {
	for _, s := range settings {
		b.Run("db="+s.name, func(b *testing.B) {
			for _, how := range []string{"exec", "prepared"} {
				b.Run("how="+how, func(b *testing.B) {
					b.Run("impl=plain", func(b *testing.B) { s.measure(b, how, s.bare(b), s.plain, 30, 1) })
					b.Run("impl=hand", func(b *testing.B) { s.measure(b, how, s.bare(b), s.byHand, 30, 1, int64(1_000_000)) })
					b.Run("impl=sqlfence", func(b *testing.B) { s.measure(b, how, s.fenced(b), s.plain, 30, 1) })
				})
			}
		})
	}
}

// BenchmarkUnregistered compares a statement that concerns no registered table.
func BenchmarkUnregistered(b *testing.B) {
	for _, s := range settings {
		b.Run("db="+s.name, func(b *testing.B) {
			b.Run("impl=plain", func(b *testing.B) { s.measure(b, "exec", s.bare(b), "SELECT 1") })
			b.Run("impl=sqlfence", func(b *testing.B) { s.measure(b, "exec", s.fenced(b), "SELECT 1") })
		})
	}
}

func (s setting) measure(b *testing.B, how string, db *sql.DB, query string, args ...any) {
	ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "bench_books", Value: 1_000_000})
	s.setUp(b, db)
	exec := func() (sql.Result, error) { return db.ExecContext(ctx, query, args...) }
	if how == "prepared" {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			b.Fatal(err)
		}
		defer stmt.Close()
		exec = func() (sql.Result, error) { return stmt.ExecContext(ctx, args...) }
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := exec(); err != nil {
			b.Fatal(err)
		}
	}
}

func (s setting) bare(b *testing.B) *sql.DB {
	db, err := sql.Open(s.driver, s.dsn(b))
	return one(b, db, err)
}

func (s setting) fenced(b *testing.B) *sql.DB {
	db, err := sqlfence.Open(s.driver, s.dsn(b), sqlfence.WithTable("bench_books", sqlfence.RowFence("fence_token")))
	return one(b, db, err)
}

// one keeps to one connection: a database in memory belongs to it, and a pool's
// choice would be measured too.
func one(b *testing.B, db *sql.DB, err error) *sql.DB {
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { db.Close() })
	return db
}

func (s setting) setUp(b *testing.B, db *sql.DB) {
	ctx := sqlfence.Bypass(context.Background(), "set-up of a benchmark")
	for _, q := range []string{
		"DROP TABLE IF EXISTS bench_books",
		"CREATE TABLE bench_books (id bigint PRIMARY KEY, price bigint, fence_token bigint)",
		"INSERT INTO bench_books (id, price) VALUES (1, 10)",
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			b.Fatal(err)
		}
	}
	if s.driver != "sqlite3" {
		b.Cleanup(func() { _, _ = db.Exec("DROP TABLE IF EXISTS bench_books") })
	}
}
