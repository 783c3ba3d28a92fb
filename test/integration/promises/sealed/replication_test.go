//go:build linux

package sealed_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A seal lets a subscription apply its changes, including the initial copy. A session that only sets
// session_replication_role is refused, even while the subscription's workers run.
func TestSubscription(t *testing.T) {
	server := harness.NewServer(t, "wal_level = logical\n")
	server.Start(t)
	b := harness.Bases[1]
	from, done := server.Open(t, b)
	defer done()
	harness.MustExec(t, from, "CREATE DATABASE copy")
	dsn := strings.Replace(server.DSN(), "/postgres?", "/copy?", 1)
	to := b.Raw(t, dsn)
	for _, db := range []*sql.DB{from, to} {
		harness.MustExec(t, db, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL, fence_token bigint NOT NULL)")
	}
	harness.MustExec(t, from, "INSERT INTO books VALUES (1, 10, 7), (2, 10, 0)")
	harness.MustExec(t, from, "CREATE PUBLICATION books FOR TABLE books")
	harness.MustExec(t, from, "SELECT pg_create_logical_replication_slot('books', 'pgoutput')")
	fenced := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sealed(b)))
	if err := schema.Seal(t.Context(), fenced); err != nil {
		t.Fatal(err)
	}
	harness.MustExec(t, to, "CREATE SUBSCRIPTION books CONNECTION '"+server.DSN()+"' PUBLICATION books WITH (create_slot = false)")
	wantCopy := func(want string) {
		t.Helper()
		harness.Eventually(t, "the subscriber to have "+want, func() bool { return harness.Marks(t, to) == want })
	}
	wantCopy("1:10@7 2:10@0")
	conn, err := to.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, query := range []string{"UPDATE books SET price = 99", "DELETE FROM books", "TRUNCATE books", "INSERT INTO books VALUES (9, 99, 9)"} {
		for _, role := range []string{"replica", "origin"} {
			if _, err := conn.ExecContext(t.Context(), "SET session_replication_role = "+role); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(t.Context(), query); err == nil || !strings.Contains(err.Error(), "FT001") {
				t.Errorf("%s as %s: %v", query, role, err)
			}
		}
	}
	harness.MustExec(t, from, "UPDATE books SET price = 20, fence_token = 8 WHERE id = 1")
	harness.MustExec(t, from, "DELETE FROM books WHERE id = 2")
	harness.MustExec(t, from, "INSERT INTO books VALUES (3, 30, 0)")
	wantCopy("1:20@8 3:30@0")
	harness.MustExec(t, from, "TRUNCATE books")
	wantCopy("")
	harness.MustExec(t, to, "ALTER SUBSCRIPTION books DISABLE")
	harness.MustExec(t, to, "ALTER SUBSCRIPTION books SET (slot_name = NONE)")
	harness.MustExec(t, to, "DROP SUBSCRIPTION books")
}
