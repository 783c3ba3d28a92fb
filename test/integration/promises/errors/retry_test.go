package errors_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// What becomes of a write whose reply is lost: it is applied, and the client
// can't know. What was found by running these, with lib/pq 1.12.3 and pgx 5.12.0:
//
// database/sql sends a statement again, up to twice more, on driver.ErrBadConn,
// which a driver may only return if the server can't have executed it. Both
// drivers return it for statements that were sent:
//
//   - lib/pq for each end of file: conn.handleError makes ErrBadConn of io.EOF
//     whether it was met before or after sending. So all forms are concerned,
//     with and without arguments, prepared or not; of queries those whose first
//     message is lost. A connection that is reset isn't: *net.OpError stays.
//   - pgx where it uses the simple protocol, that is Exec without arguments in
//     every mode, and everything in simple_protocol that isn't prepared: MultiResultReader.NextResult
//     peeks, which closes the connection and drops the error; then
//     receiveMessage finds it closed, which is a connLockError, and these always
//     call themselves safe to retry.
//
// So a guarded write outside of a transaction doesn't return driver.ErrBadConn once it was
// sent. In a transaction nothing is sent again, and nothing of it is committed.

// countedWrites show in the row how often they were applied. Each has its command's tag.
var countedWrites = []harness.Write{
	{Name: "UPDATE", Query: "UPDATE books SET price = price + $1 WHERE id = $2", Args: []any{1, 1}},
	{Name: "INSERT", Query: "INSERT INTO books (id, price) SELECT max(id) + $1, 10 FROM books", Args: []any{1}},
	{Name: "DELETE", Query: "DELETE FROM books WHERE id = $1", Args: []any{1}},
	{Name: "INSERT", Query: "INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = books.price + excluded.price", Args: []any{1, 1}},
}

// A mode is a driver of PostgreSQL with a DSN's parameters.
type mode struct{ base, name, params string }

var modes = []mode{
	{"pq", "pq", ""},
	{"pgx", "pgx cache_statement", "&default_query_exec_mode=cache_statement"},
	{"pgx", "pgx exec", "&default_query_exec_mode=exec"},
	{"pgx", "pgx simple_protocol", "&default_query_exec_mode=simple_protocol"},
	{"fencepgx", "fencepgx cache_statement", "&default_query_exec_mode=cache_statement"},
	{"fencepgx", "fencepgx exec", "&default_query_exec_mode=exec"},
	{"fencepgx", "fencepgx simple_protocol", "&default_query_exec_mode=simple_protocol"},
}

// tested returns the modes. A short run has only the default modes of pgx and of fencepgx.
func tested() []mode {
	if !testing.Short() {
		return modes
	}
	return slices.DeleteFunc(slices.Clone(modes), func(m mode) bool { return !strings.HasSuffix(m.name, " cache_statement") })
}

func (m mode) driver() harness.Base {
	return harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == m.base })]
}

// eachLossy runs test for the PostgreSQL drivers, pgx in several modes, with a
// shop and with a cutter before it.
func eachLossy(t *testing.T, rules []sqlfence.Rule, test func(t *testing.T, s *harness.Shop, c *cutter)) {
	t.Helper()
	harness.NeedPostgres(t)
	for _, m := range tested() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each has its own database and cutter, and mostly waits
			s := harness.NewShop(t, m.driver())
			c := newCutter(t, s.Source)
			s.DB = s.Fenced(t, c.dsn+m.params, harness.Books(rules...))
			s.Plain = s.Raw(t, s.Source)
			c.raw = s.Raw(t, c.dsn+m.params)
			test(t, s, c)
		})
	}
}

// A write is applied once and reported as unknown, and the error wraps the base driver's error, except
// driver.ErrBadConn. A repeated write with the same token isn't stale.
func TestRetryOfLostReply(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			t.Parallel()
			eachLossy(t, []sqlfence.Rule{fence.Rule}, func(t *testing.T, s *harness.Shop, c *cutter) {
				for _, f := range harness.Forms {
					for i, w := range countedWrites {
						for _, cut := range cuts {
							if i > 0 && cut.name != cuts[0].name {
								continue // the other kinds of write need only one cut
							}
							name := fmt.Sprint(f.Name, "/", w.Query, "/", cut.name)
							if !harness.Keep(t, name) { // each costs three sessions
								continue
							}
							t.Run(name, func(t *testing.T) {
								s.Reset(t, 9)
								_, _, errRaw := c.lose(t, cut, w, unprepared(s.Base, f), t.Context(), c.raw)
								s.Reset(t, 9)
								landed, _, err := c.lose(t, cut, w, f, harness.Holding(t, 9), s.DB)
								if landed != 1 || err == nil {
									t.Errorf("applied %d times, %v", landed, err)
								}
								wantUnknown(t, err, errRaw)
								if _, err := f.Run(harness.Holding(t, 9), s.DB, w); err != nil {
									t.Errorf("again with the same token: %v", err)
								}
							})
						}
					}
				}
			})
		})
	}
}

// unprepared returns the form in which pgx sends a prepared statement that fencepgx guards: without the preparation.
func unprepared(b harness.Base, f harness.Form) harness.Form {
	name := strings.TrimPrefix(f.Name, "prepared ")
	if b.Name != "fencepgx" || name == f.Name {
		return f
	}
	return harness.Forms[slices.IndexFunc(harness.Forms, func(f harness.Form) bool { return f.Name == name })]
}

// With SingleUse a write whose reply is lost has used its token up. If the write were sent again, it would be stale
// because of its own stored token.
func TestRetrySingleUse(t *testing.T) {
	eachLossy(t, []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.SingleUse()}, func(t *testing.T, s *harness.Shop, c *cutter) {
		for _, f := range harness.Forms {
			s.Reset(t, 8)
			landed, _, err := c.lose(t, cuts[0], countedWrites[0], f, harness.Holding(t, 9), s.DB)
			if landed != 1 || err == nil || errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s: applied %d times, %v", f.Name, landed, err)
			}
		}
	})
}

// lose runs a write whose reply is cut off, and returns how often the write was applied.
func (c *cutter) lose(t *testing.T, cut cut, w harness.Write, f harness.Form, ctx context.Context, r harness.Runner) (landed int, n int64, _ error) {
	t.Helper()
	c.arm(w.Name, cut)
	n, err := f.Run(ctx, r, w)
	done, landed := c.disarm()
	if !done {
		t.Fatalf("no reply was cut off; the write: %d rows, %v", n, err)
	}
	return landed, n, err
}

var port = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

// wantUnknown fails the test unless err is ErrUnknownOutcome and no other error of sqlfence, and wraps the error that
// the base driver alone returned for the lost connection. raw is nil if the base driver repeated the write.
func wantUnknown(t *testing.T, err, raw error) {
	t.Helper()
	harness.WantError(t, err, sqlfence.ErrUnknownOutcome)
	for _, sentinel := range harness.Sentinels {
		if errors.Is(err, sentinel) {
			t.Errorf("a lost connection is taken for %v: %v", sentinel, err)
		}
	}
	if errors.Is(err, driver.ErrBadConn) {
		t.Errorf("%v: database/sql would send it again", err)
	}
	if pgconn.SafeToRetry(err) {
		t.Errorf("%v: a program of pgx's would send it again", err)
	}
	if err == nil || raw == nil || errors.Is(raw, driver.ErrBadConn) {
		return
	}
	var got, want *net.OpError
	if errors.As(err, &got) != errors.As(raw, &want) {
		t.Errorf("the network's error: %v; the base driver alone: %v", err, raw)
	}
	if text := port.ReplaceAllString(raw.Error(), ""); !strings.Contains(port.ReplaceAllString(err.Error(), ""), text) {
		t.Errorf("err = %v; the base driver alone: %v", err, raw)
	}
}

// In a transaction a lost reply ends the transaction. If the lost reply is that of COMMIT, the transaction is applied
// once and reported as ErrUnknownOutcome.
func TestRetryInTransaction(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			t.Parallel()
			eachLossy(t, []sqlfence.Rule{fence.Rule}, func(t *testing.T, s *harness.Shop, c *cutter) {
				w := countedWrites[0]
				for _, f := range harness.Forms {
					for _, tag := range []string{w.Name, "COMMIT"} {
						for _, cut := range cuts[:1] {
							name := fmt.Sprint(f.Name, "/", tag, "/", cut.name)
							if !harness.Keep(t, name) {
								continue
							}
							t.Run(name, func(t *testing.T) {
								s.Reset(t, 9)
								c.arm(tag, cut)
								err := s.InTx(harness.Holding(t, 9), func(tx *sql.Tx) error {
									_, err := f.Run(harness.Holding(t, 9), tx, w)
									return err
								})
								done, landed := c.disarm()
								if !done || landed != 1 || err == nil || errors.Is(err, sqlfence.ErrStale) {
									t.Errorf("cut off: %v, executed %d times, %v", done, landed, err)
								}
								price := 10
								if tag == "COMMIT" {
									price = 11
								}
								if errors.Is(err, sqlfence.ErrUnknownOutcome) != (tag == "COMMIT") {
									t.Errorf("the reply of %s was lost: %v", tag, err)
								}
								wantPrice(t, s, price)
								err = s.InTx(harness.Holding(t, 9), func(tx *sql.Tx) error {
									_, err := f.Run(harness.Holding(t, 9), tx, w)
									return err
								})
								if err != nil {
									t.Errorf("again with the same token: %v", err)
								}
								wantPrice(t, s, price+1)
							})
						}
					}
				}
			})
		})
	}
}

// wantPrice waits for this price of book 1, because the server ends a lost session a moment later.
func wantPrice(t *testing.T, s *harness.Shop, want int) {
	t.Helper()
	var price int
	if err := s.Plain.QueryRow("SELECT price FROM books WHERE id = 1 FOR SHARE").Scan(&price); err != nil || price != want {
		t.Errorf("price = %d, %v; want %d", price, err, want)
	}
}
