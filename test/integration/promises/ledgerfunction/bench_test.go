package ledgerfunction_test

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// BenchmarkWriters has 64 writers with tokens of the same name. Each writer updates a different row. Plain and guarded
// writes take turns. It reports what a write costs the server: CPU, WAL, and multixacts of the whole server.
func BenchmarkWriters(b *testing.B) {
	const writers = 64
	for _, base := range harness.Bases[:2] {
		for _, prepared := range []bool{true, false} {
			name := base.Name + "/" + map[bool]string{true: "prepared", false: "exec"}[prepared]
			b.Run(name, func(b *testing.B) {
				dsn := base.DSN(b)
				plain := base.Raw(b, dsn)
				exec(b, plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL)")
				exec(b, plain, "CREATE TABLE fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)")
				exec(b, plain, "INSERT INTO fencing_tokens VALUES ('books', 1)")
				exec(b, plain, fmt.Sprintf("INSERT INTO books SELECT n, 0 FROM generate_series(1, %d) AS n", writers))
				exec(b, plain, tokens.LedgerFunction())
				fenced := base.Fenced(b, dsn, sqlfence.WithTable("books"))
				for _, db := range []*sql.DB{plain, fenced} {
					db.SetMaxOpenConns(writers)
					db.SetMaxIdleConns(writers)
				}
				b.ResetTimer()
				kinds := []struct {
					name string
					db   *sql.DB
					cost cost
				}{{name: "plain", db: plain}, {name: "fenced", db: fenced}}
				for range 5 {
					for i := range kinds {
						k := &kinds[i]
						before := costs(b, plain)
						writeAll(b, k.db, writers, max(b.N/5, writers), prepared)
						k.cost.add(costs(b, plain), before, max(b.N/5, writers))
					}
				}
				for _, k := range kinds {
					b.ReportMetric(k.cost.cpu/k.cost.writes, k.name+"-cpu-us/write")
					b.ReportMetric(k.cost.wal/k.cost.writes, k.name+"-wal-B/write")
					b.ReportMetric(k.cost.multis/k.cost.writes, k.name+"-multixacts/write")
				}
			})
		}
	}
}

// cost is the server's work for a number of writes.
type cost struct{ cpu, wal, multis, writes float64 }

func (c *cost) add(after, before cost, writes int) {
	c.cpu += after.cpu - before.cpu
	c.wal += after.wal - before.wal
	c.multis += after.multis - before.multis
	c.writes += float64(writes)
}

// costs returns the counters of the server. CPU is the CPU time of the server's processes in microseconds, if the
// server runs on this machine.
func costs(b *testing.B, db *sql.DB) (c cost) {
	b.Helper()
	exec(b, db, "CHECKPOINT")
	const query = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), next_multixact_id::text::bigint FROM pg_control_checkpoint()`
	if err := db.QueryRow(query).Scan(&c.wal, &c.multis); err != nil {
		b.Fatal(err)
	}
	rows, err := db.Query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			b.Fatal(err)
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
		for _, field := range fields[12:14] { // user and system time
			ticks, _ := strconv.ParseFloat(field, 64)
			c.cpu += ticks * 10000
		}
	}
	return c
}

func writeAll(b *testing.B, db *sql.DB, writers, n int, prepared bool) {
	b.Helper()
	ctx := sqlfence.WithFence(b.Context(), sqlfence.Token{Name: "books", Value: 1})
	const query = "UPDATE books SET price = price + $1 WHERE id = $2"
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		b.Fatal(err)
	}
	defer stmt.Close()
	var next atomic.Int64
	var wg sync.WaitGroup
	for id := range writers {
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
				var err error
				if prepared {
					_, err = stmt.ExecContext(ctx, 1, id+1)
				} else {
					_, err = db.ExecContext(ctx, query, 1, id+1)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func exec(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
