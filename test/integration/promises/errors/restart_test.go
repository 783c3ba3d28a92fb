//go:build linux

package errors_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The restart or crash of a server between two writes makes neither of them fail, with TLS and without.
func TestServerRestartedBetweenWrites(t *testing.T) {
	server := harness.NewServer(t, "")
	server.Certify(t)
	server.Start(t)
	restarts := map[string]func(*testing.T){"stopped": server.Stop, "crashed": server.Kill}
	hows := []string{"stopped", "crashed", "stopped with TLS", "crashed with TLS"}
	for i, m := range modes {
		for j, how := range hows {
			if testing.Short() && j != i%len(hows) { // each mode once, and each way
				continue
			}
			name, _, tls := strings.Cut(how, " ")
			down := restarts[name]
			t.Run(m.name+" "+how, func(t *testing.T) {
				plain, done := server.Open(t, m.driver())
				for _, query := range []string{
					"DROP TABLE IF EXISTS books",
					"CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL, fence_token bigint)",
					"INSERT INTO books VALUES (1, 10, 9)",
				} {
					harness.MustExec(t, plain, query)
				}
				done()
				dsn := server.DSN() + m.params
				if tls {
					dsn = strings.Replace(dsn, "sslmode=disable", "sslmode=require", 1)
				}
				db, err := sqlfence.Open(m.driver().DriverName, dsn, harness.Books(sqlfence.RowFence("fence_token")))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close() // dead connections may cause an error
				pool(t, db, 5)
				write := func() {
					t.Helper()
					if n, err := harness.Affected(db.ExecContext(harness.Holding(t, 9), countedWrites[0].Query, 1, 1)); n != 1 || err != nil {
						t.Errorf("%d rows, %v", n, err)
					}
				}
				write()
				down(t)
				server.StartAgain(t)
				for range 10 {
					write()
				}
				if price := server.Ask(t, "SELECT price FROM books WHERE id = 1"); price != "21" {
					t.Errorf("price %s, want 21", price)
				}
			})
		}
	}
}
