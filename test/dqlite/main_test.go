// Package dqlite_test tests sqlfence on dqlite, a SQLite that Raft replicates. The tests need scripts/with-dqlite.
package dqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canonical/go-dqlite/v3/client"
	dqlite "github.com/canonical/go-dqlite/v3/driver"

	"github.com/sqlfence/sqlfence"
)

var shared *cluster // for tests that break no node

func TestMain(m *testing.M) {
	if os.Getenv(isNode) != "" {
		runNode()
		return
	}
	status := m.Run()
	if shared != nil {
		shared.close()
	}
	os.Exit(status)
}

// nodes returns the cluster that several tests share.
func nodes(t testing.TB) *cluster {
	t.Helper()
	if shared == nil {
		shared = startCluster(t, 3)
	}
	return shared
}

var databases atomic.Int64

// connector returns a connector to a new database on the cluster.
func (c *cluster) connector(t testing.TB) driver.Connector {
	t.Helper()
	return c.open(t, fmt.Sprintf("db%d", databases.Add(1)))
}

func (c *cluster) open(t testing.TB, name string) driver.Connector {
	t.Helper()
	store := client.NewInmemNodeStore()
	if err := store.Set(context.Background(), c.infos()); err != nil {
		t.Fatal(err)
	}
	d, err := dqlite.New(store, dqlite.WithLogFunc(func(client.LogLevel, string, ...any) {}),
		dqlite.WithAttemptTimeout(2*time.Second), dqlite.WithConnectionBackoffCap(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := d.OpenConnector(name)
	if err != nil {
		t.Fatal(err)
	}
	return connector
}

func fence(t testing.TB, c driver.Connector, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// bare opens the database without sqlfence.
func bare(t testing.TB, c driver.Connector) *sql.DB {
	t.Helper()
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func mustExec(t testing.TB, db execer, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func mustExecAll(t testing.TB, db execer, queries string) {
	t.Helper()
	for query := range strings.SplitSeq(queries, ";\n") {
		mustExec(t, db, query)
	}
}

// holding returns a context with tokens for the table and for its first row.
func holding(ctx context.Context, value int64) context.Context {
	return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: value},
		sqlfence.Token{Name: "books/1", Value: value})
}

func number(t testing.TB, db *sql.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// awaitWrite waits until the pool can write again.
func awaitWrite(t testing.TB, db *sql.DB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := db.ExecContext(ctx, "UPDATE books SET who = who")
		cancel()
		if err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
