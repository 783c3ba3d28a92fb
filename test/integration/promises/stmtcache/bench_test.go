package stmtcache_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// BenchmarkExec runs db.Exec in turns in these ways: on the bare driver; fenced with and without a statement cache; the
// guarded text prepared by hand on the bare driver, which is the best that a cache can reach; and a check and a write
// as two statements. It reports each time as a multiple of the bare driver's.
func BenchmarkExec(b *testing.B) {
	for _, base := range harness.Bases {
		if base.Dialect != sqlfence.SQLite {
			continue
		}
		for _, journal := range []string{"memory", "wal"} {
			for _, w := range benchWrites {
				b.Run("db="+base.Name+"/journal="+journal+"/write="+w.name, func(b *testing.B) {
					inTurns(b, []contender{
						{"raw", open(b, base, journal, -1, w), w.plain},
						{"cache", open(b, base, journal, 64, w), w.plain},
						{"none", open(b, base, journal, 0, w), w.plain},
						byHand(b, open(b, base, journal, -1, w), w),
						{"two", open(b, base, journal, -1, w), w.twice},
					})
				})
			}
		}
	}
}

type benchWrite struct {
	name, query string
	rules       []sqlfence.Rule
	table       rewrite.Table // the same rules for package rewrite
	args        func(n int) []any
}

const (
	setOne  = "UPDATE books SET price = ? WHERE id = ?"
	setMany = "UPDATE books SET price = ?, title = ?, author = ?, stock = ?, updated = ? WHERE id = ? AND stock >= 0"
)

var (
	rowFence = rewrite.Table{Name: "books", FenceColumn: "fence_token"}
	ledger   = rewrite.Table{Name: "books", Ledger: true}
	serial   = rewrite.Table{Name: "books", Serial: "serial"}
)

var benchWrites = []benchWrite{
	{"row fence", setOne, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, rowFence, update},
	{"ledger", setOne, []sqlfence.Rule{sqlfence.Ledger()}, ledger, update},
	{"serial", setOne, []sqlfence.Rule{sqlfence.Serial("serial")}, serial, update},
	{"ledger insert", "INSERT INTO books (id, price) VALUES (?, ?)", []sqlfence.Rule{sqlfence.Ledger()}, ledger, insert},
	{"ledger literal", "UPDATE books SET price = 30 WHERE id = 1", []sqlfence.Rule{sqlfence.Ledger()}, ledger, nothing},
	{"ledger delete", "DELETE FROM books WHERE id = ?", []sqlfence.Rule{sqlfence.Ledger()}, ledger, absent},
	{"row fence of many", setMany, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, rowFence, updateMany},
	{"ledger of many", setMany, []sqlfence.Rule{sqlfence.Ledger()}, ledger, updateMany},
}

func update(n int) []any { return []any{n, 1} }
func insert(n int) []any { return []any{n + 10, 1} }
func nothing(int) []any  { return nil }
func absent(n int) []any { return []any{n + 10} }
func updateMany(n int) []any {
	return []any{n, "a title", "an author", n, "2026-01-01", 1}
}

func (w benchWrite) plain(ctx context.Context, db *sql.DB, n int) error {
	_, err := db.ExecContext(ctx, w.query, w.args(n)...)
	return err
}

// twice is a check and a write that relies on it, as programs have without a fence.
func (w benchWrite) twice(ctx context.Context, db *sql.DB, n int) error {
	var token int64
	if err := db.QueryRowContext(ctx, "SELECT token FROM fencing_tokens WHERE name = ?", "books").Scan(&token); err != nil {
		return err
	}
	return w.plain(ctx, db, n)
}

// byHand executes the guarded statement's text, prepared by hand.
func byHand(b *testing.B, db *sql.DB, w benchWrite) contender {
	r, err := rewrite.New(dialect.SQLite, []rewrite.Table{w.table})
	if err != nil {
		b.Fatal(err)
	}
	text, added, err := r.Plan(w.query).Default()
	if err != nil {
		b.Fatal(err)
	}
	stmt, err := db.Prepare(text)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stmt.Close() })
	values := rewrite.Values{Tables: []rewrite.TableValues{{Tokens: []rewrite.Token{{Name: "books", Value: 5}}}}}
	return contender{"hand", db, func(ctx context.Context, _ *sql.DB, n int) error {
		args := w.args(n)
		for _, arg := range added {
			args = append(args, arg.Value(&values))
		}
		_, err := stmt.ExecContext(ctx, args...)
		return err
	}}
}

// open opens a database, fenced if a cache size is given.
func open(b *testing.B, base harness.Base, journal string, size int, w benchWrite) *sql.DB {
	dsn := "file::memory:"
	if journal == "wal" {
		dsn = base.DSN(b)
	}
	var db *sql.DB
	if size < 0 {
		db = base.Raw(b, dsn)
	} else {
		db = base.Fenced(b, dsn, harness.Books(w.rules...), sqlfence.WithStatementCache(size))
	}
	db.SetMaxOpenConns(1)
	ctx := sqlfence.Bypass(b.Context(), "set-up")
	for _, q := range []string{
		"CREATE TABLE fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)",
		"INSERT INTO fencing_tokens VALUES ('books', 5)",
		"CREATE TABLE books (id integer PRIMARY KEY, price integer, title text, author text, stock integer NOT NULL DEFAULT 1, updated text, fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1)",
		"INSERT INTO books (id, price) VALUES (1, 10)",
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

type contender struct {
	name string
	db   *sql.DB
	run  func(ctx context.Context, db *sql.DB, n int) error
}

// inTurns runs the contenders a few times in turns, and reports the median of each one's times as a multiple of the
// first one's.
func inTurns(b *testing.B, all []contender) {
	const batch = 50
	times := make([][]float64, len(all))
	ctx, n := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5}), 0
	for b.Loop() {
		for i, c := range all {
			began := time.Now()
			for k := range batch {
				if err := c.run(ctx, c.db, n+k); err != nil {
					b.Fatal(err)
				}
			}
			times[i] = append(times[i], float64(time.Since(began)))
		}
		n += batch
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	raw := median(times[0])
	b.ReportMetric(raw/batch, "raw-ns")
	for i, c := range all[1:] {
		b.ReportMetric(median(times[i+1])/raw, c.name+"/raw")
	}
}
