package errors_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// commits are ways to send a COMMIT as a statement.
var commits = []struct {
	name string
	send func(context.Context, harness.Runner) error
}{
	{"exec", execute("COMMIT")},
	{"behind comments", execute(" -- the end\n/* of it */ commit work;")},
	{"end", execute("END")},
	{"chain", execute("COMMIT AND CHAIN")},
	{"behind another", execute("SELECT 1; COMMIT")},
	{"query", func(ctx context.Context, r harness.Runner) error {
		rows, err := r.QueryContext(ctx, "COMMIT")
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	}},
	{"prepared", func(ctx context.Context, r harness.Runner) error {
		stmt, err := r.PrepareContext(ctx, "COMMIT")
		if err != nil {
			return err
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(ctx)
		return err
	}},
}

func execute(query string) func(context.Context, harness.Runner) error {
	return func(ctx context.Context, r harness.Runner) error {
		_, err := r.ExecContext(ctx, query)
		return err
	}
}

// A COMMIT that is sent as a statement, and gets no response, has an unknown outcome, as with Tx.Commit. A second
// COMMIT on another connection would commit nothing and succeed, so the statement must not be sent again.
func TestLostRepliesOfCommitStatements(t *testing.T) {
	eachLossy(t, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, func(t *testing.T, s *harness.Shop, c *cutter) {
		for _, commit := range commits {
			for _, cut := range cuts[:2] {
				name := commit.name + "/" + cut.name
				if !harness.Keep(t, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					ctx := harness.Holding(t, 9)
					for name, begin := range map[string]func(*testing.T) harness.Runner{
						"connection": func(t *testing.T) harness.Runner {
							conn, err := s.DB.Conn(ctx)
							if err != nil {
								t.Fatal(err)
							}
							t.Cleanup(func() { _ = conn.Close() })
							return begun(t, conn)
						},
						"pool": func(t *testing.T) harness.Runner {
							s.DB.SetMaxOpenConns(1)
							t.Cleanup(func() { s.DB.SetMaxOpenConns(0) })
							return begun(t, s.DB)
						},
						"transaction": func(t *testing.T) harness.Runner {
							tx, err := s.DB.BeginTx(ctx, nil)
							if err != nil {
								t.Fatal(err)
							}
							t.Cleanup(func() { _ = tx.Rollback() })
							return tx
						},
					} {
						t.Run(name, func(t *testing.T) {
							if name == "pool" && s.IsPgx() {
								t.Skip("pgx doesn't give a connection with an open transaction out of its pool")
							}
							s.Reset(t, 9)
							r := begin(t)
							if _, err := r.ExecContext(ctx, "UPDATE books SET price = price + $1 WHERE id = $2", 1, 1); err != nil {
								t.Fatal(err)
							}
							c.arm("COMMIT", cut)
							err := commit.send(ctx, r)
							if done, landed := c.disarm(); !done || landed != 1 {
								t.Errorf("cut off: %v, executed %d times", done, landed)
							}
							wantUnknown(t, err, nil)
							wantPrice(t, s, 11)
						})
					}
				})
			}
		}
	})
}

// Retry reports a COMMIT without a response as unknown on each driver without sqlfence, too. pgx says that it sent
// nothing.
func TestLostRepliesOfUnfencedCommits(t *testing.T) {
	eachLossy(t, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, func(t *testing.T, s *harness.Shop, c *cutter) {
		for _, cut := range cuts[:2] {
			s.Reset(t, 9)
			err := sqlfence.Retry(t.Context(), c.raw, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE books SET price = price + $1 WHERE id = $2", 1, 1)
				c.arm("COMMIT", cut)
				return err
			})
			if done, landed := c.disarm(); !done || landed != 1 {
				t.Errorf("cut off: %v, executed %d times", done, landed)
			}
			wantUnknown(t, err, nil)
			wantPrice(t, s, 11)
		}
	})
}

func begun(t *testing.T, r harness.Runner) harness.Runner {
	t.Helper()
	if _, err := r.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	return r
}

// A COMMIT after no guarded write, or after writes that were already committed, keeps the driver's error.
func TestLostRepliesOfOtherCommits(t *testing.T) {
	eachLossy(t, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, func(t *testing.T, s *harness.Shop, c *cutter) {
		for name, before := range map[string]func(context.Context, *sql.Conn) error{
			"nothing": func(context.Context, *sql.Conn) error { return nil },
			"committed": func(ctx context.Context, conn *sql.Conn) error {
				for _, query := range []string{"BEGIN", "UPDATE books SET price = 1 WHERE id = 1", "COMMIT"} {
					if _, err := conn.ExecContext(ctx, query); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			t.Run(name, func(t *testing.T) {
				s.Reset(t, 9)
				ctx := harness.Holding(t, 9)
				conn, err := s.DB.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := before(ctx, conn); err != nil {
					t.Fatal(err)
				}
				begun(t, conn)
				if _, err := conn.ExecContext(ctx, "SELECT id FROM books"); err != nil {
					t.Fatal(err)
				}
				c.arm("COMMIT", cuts[0])
				_, err = conn.ExecContext(ctx, "COMMIT")
				c.disarm()
				if !errors.Is(err, driver.ErrBadConn) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
					t.Errorf("err = %v", err)
				}
			})
		}
	})
}

// A COMMIT whose context has ended isn't sent, and its outcome is known. The transaction remains open.
func TestCommitStatementWithAnEndedContext(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		ctx := harness.Holding(t, 9)
		conn, err := s.DB.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		begun(t, conn)
		w := countedWrites[0].As(b.Dialect)
		if _, err := conn.ExecContext(ctx, w.Query, w.Args...); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := execute("COMMIT")(ended, conn); !errors.Is(err, context.Canceled) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
			t.Errorf("err = %v", err)
		}
		if err := execute("COMMIT")(ctx, conn); err != nil {
			t.Errorf("again: %v", err)
		}
		var price int
		if err := s.Plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price); err != nil || price != 11 {
			t.Errorf("price = %d, %v", price, err)
		}
	})
}
