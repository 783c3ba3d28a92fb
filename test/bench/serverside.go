package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqlfence/sqlfence"
)

// serverSide is what a write costs PostgreSQL: with 64 writers whose tokens have one
// name, and for planning and executing a statement that isn't prepared.
func serverSide() []*measurement {
	update := "UPDATE books SET price = $1 WHERE id = $2"
	args := func(id int64) []any { return []any{price(), id} }
	var all []*measurement
	for _, t := range []target{pgx, pq} {
		writers := &measurement{table: "64 writers", on: t.name, callers: 64, slices: 10}
		add := func(name string, fenced bool, start func(*stage) (work, error)) {
			writers.contestants = append(writers.contestants, contestant{name: name, durability: t.durability, fenced: fenced, start: metered(start)})
		}
		add("plain", false, t.updating(bare, rule{}, update, args))
		for _, r := range rules[:2] {
			add(r.name, true, t.updating(r.wrap(), r, update, args))
		}
		add("SELECT … FOR SHARE in a transaction, by hand", false, t.inTransaction(update,
			"SELECT token FROM fencing_tokens WHERE name = 'books' AND $1::int IS NOT NULL FOR SHARE", true))
		all = append(all, writers)
	}
	for _, what := range []string{"Planning Time", "Execution Time"} {
		m := &measurement{table: "EXPLAIN ANALYZE", name: strings.ToLower(what), on: "pgx"}
		m.contestants = append(m.contestants, contestant{name: "plain", start: explaining(what, func(*stage) (sent, error) {
			return sent{update, args(1)}, nil
		})})
		for _, r := range rules[:4] {
			m.contestants = append(m.contestants, contestant{name: r.name, fenced: true, start: explaining(what, func(s *stage) (sent, error) {
				return pgx.record(s, r, func(ctx context.Context, db *sql.DB) error {
					if r.name == "Serial" {
						ctx = sqlfence.WithSerial(ctx, 1)
					}
					return one(db.ExecContext(ctx, update, args(1)...))
				})
			})})
		}
		all = append(all, m)
	}
	return all
}

// The counters of a server.
const (
	meterWAL   = "bytes of WAL"
	meterMulti = "multixacts"
	meterCPU   = "µs of server CPU"
)

// metered adds the server's counters.
func metered(start func(*stage) (work, error)) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		w, err := start(s)
		if err != nil {
			return w, err
		}
		db, err := sql.Open("pgx", s.servers.Database.Near)
		if err != nil {
			return w, err
		}
		s.cleanup(func() { db.Close() })
		w.meters = func(ctx context.Context) (map[string]float64, error) {
			var wal, multi float64
			if err := db.QueryRowContext(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8, mxid_age('1'::xid)::float8").Scan(&wal, &multi); err != nil {
				return nil, err
			}
			meters := map[string]float64{meterWAL: wal, meterMulti: multi}
			if cpu, err := backendCPU(s.servers.DatabaseProcess); err == nil {
				meters[meterCPU] = float64(cpu) / float64(time.Microsecond)
			}
			return meters, nil
		}
		return w, nil
	}
}

// backendCPU returns how long the processes of a PostgreSQL server have run. It reads
// Linux's /proc.
func backendCPU(postmaster int) (total time.Duration, err error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", postmaster))
	if err != nil {
		return 0, err
	}
	for _, child := range strings.Fields(string(children)) {
		text, err := os.ReadFile("/proc/" + child + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			ns, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(ns)
		}
	}
	return total, nil
}

// explaining measures by the server's own clock how long it takes to plan or execute a
// statement.
func explaining(what string, statement func(*stage) (sent, error)) func(*stage) (work, error) {
	said := regexp.MustCompile(what + `: ([0-9.]+) ms`)
	return func(s *stage) (work, error) {
		query, err := statement(s)
		if err != nil {
			return work{}, err
		}
		sh, err := pgx.openShop(s, bare, 1)
		if err != nil {
			return work{}, err
		}
		var spent atomic.Int64
		return work{clock: func() time.Duration { return time.Duration(spent.Load()) }, call: func(ctx context.Context, _ int) error {
			tx, err := sh.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // the next call finds the same row
			text, err := explain(ctx, tx, query)
			if err != nil {
				return err
			}
			found := said.FindStringSubmatch(text)
			if found == nil {
				return fmt.Errorf("EXPLAIN said no %s: %s", what, text)
			}
			ms, err := strconv.ParseFloat(found[1], 64)
			spent.Add(int64(ms * float64(time.Millisecond)))
			return err
		}}, nil
	}
}

func explain(ctx context.Context, tx *sql.Tx, s sent) (string, error) {
	rows, err := tx.QueryContext(ctx, "EXPLAIN (ANALYZE, SUMMARY) "+s.query, s.args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), rows.Err()
}
