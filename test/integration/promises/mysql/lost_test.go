package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const (
	queryCommand   = 0x03
	executeCommand = 0x17
)

// isWrite reports whether a message executes a guarded write of the books.
func isWrite(command byte, text []byte) bool {
	return command == executeCommand || command == queryCommand && bytes.Contains(text, []byte("sqlfence:"))
}

func isCommit(command byte, text []byte) bool {
	return command == queryCommand && strings.EqualFold(string(text), "COMMIT")
}

// A way sends an UPDATE of the row id.
type way struct {
	name string
	send func(ctx context.Context, db *sql.DB, id int) error
	lost func(command byte, text []byte) bool
}

var writeWays = []way{
	{"text", func(ctx context.Context, db *sql.DB, id int) error {
		_, err := db.ExecContext(ctx, fmt.Sprint("UPDATE books SET price = price + 1 WHERE id = ", id))
		return err
	}, isWrite},
	{"arguments", func(ctx context.Context, db *sql.DB, id int) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET price = price + ? WHERE id = ?", 1, id)
		return err
	}, isWrite},
	{"prepared", func(ctx context.Context, db *sql.DB, id int) error {
		stmt, err := db.PrepareContext(ctx, "UPDATE books SET price = price + ? WHERE id = ?")
		if err != nil {
			return err
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(ctx, 1, id)
		return err
	}, isWrite},
	{"write in a transaction", inTransaction, isWrite},
	{"commit", inTransaction, isCommit},
}

func inTransaction(ctx context.Context, db *sql.DB, id int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE books SET price = price + ? WHERE id = ?", 1, id); err != nil {
		return err
	}
	return tx.Commit()
}

// If the response to a write or a COMMIT is lost, the write is applied once, and its outcome is unknown. A write that
// surely wasn't sent is sent on another connection, and applied once.
func TestLostRepliesOfMySQL(t *testing.T) {
	for _, m := range modes[:2] {
		dsn := setup(t)
		plain := open(t, dsn)
		exec(t, plain, "INSERT INTO fencing_tokens VALUES ('books', 5)")
		for rule, r := range map[string]sqlfence.Rule{"row": sqlfence.RowFence("fence_token"), "ledger": sqlfence.Ledger()} {
			network := new(harness.Faulty)
			db := fence(t, network.DSN(t, m.with(t, dsn)), r)
			for _, w := range writeWays {
				for f := harness.Unsent; f < harness.Faults; f++ {
					t.Run(fmt.Sprint(m.name, "/", rule, "/", w.name, "/", f), func(t *testing.T) {
						exec(t, plain, "REPLACE INTO books (id, price) VALUES (1, 10)")
						if err := w.send(holding(5), db, 1); err != nil {
							t.Fatal(err)
						}
						network.Arm(f, w.lost)
						err := w.send(holding(5), db, 1)
						if !network.Met() {
							t.Fatal("no message met the fault")
						}
						wantOutcome(t, plain, w, f, err)
						if err := w.send(holding(5), db, 1); err != nil {
							t.Errorf("again with the same token: %v", err)
						}
					})
				}
			}
		}
	}
}

func wantOutcome(t *testing.T, plain *sql.DB, w way, f harness.Fault, err error) {
	t.Helper()
	var price int
	if err := plain.QueryRow("SELECT price FROM books WHERE id = 1 FOR SHARE").Scan(&price); err != nil {
		if err = plain.QueryRow("SELECT price FROM books WHERE id = 1 LOCK IN SHARE MODE").Scan(&price); err != nil {
			t.Fatal(err)
		}
	}
	inTx := strings.Contains(w.name, "transaction")
	commit := w.name == "commit"
	want, unknown := 12, !inTx
	switch {
	case inTx: // the transaction isn't committed
		want = 11
	case f == harness.Unsent && commit: // the transaction is lost with its connection
		want, unknown = 11, false
	case f == harness.Unsent:
		unknown = false
	case f == harness.CutShort:
		want = 11
	}
	if price != want {
		t.Errorf("price %d, want %d; %v", price, want, err)
	}
	if errors.Is(err, sqlfence.ErrUnknownOutcome) != unknown {
		t.Errorf("%v; want unknown: %v", err, unknown)
	}
	if (err == nil) != (f == harness.Unsent && !inTx && !commit) || unknown && errors.Is(err, driver.ErrBadConn) {
		t.Errorf("%v", err)
	}
}

// In a storm of faults each acknowledged write is applied once, no failed write is, and a write of unknown outcome is
// applied at most once.
func TestStormOnMySQL(t *testing.T) {
	const writers, rows = 4, 100
	for _, m := range modes[:2] {
		t.Run(m.name, func(t *testing.T) {
			dsn := setup(t)
			plain := open(t, dsn)
			exec(t, plain, "INSERT INTO fencing_tokens VALUES ('books', 5)")
			for id := range writers * rows {
				exec(t, plain, "INSERT INTO books (id, price) VALUES (?, 0)", 100+id)
			}
			outcomes := make([]error, writers*rows)
			var wg sync.WaitGroup
			for n := range writers {
				network := new(harness.Faulty)
				db := fence(t, network.DSN(t, m.with(t, dsn)), sqlfence.RowFence("fence_token"), sqlfence.Ledger())
				wg.Go(func() {
					r := rand.New(rand.NewPCG(1, uint64(n)))
					for i := range rows {
						w := writeWays[r.IntN(len(writeWays))]
						if r.IntN(3) > 0 {
							skip := r.IntN(4) // any message, including Prepare and BEGIN
							network.Arm(harness.Fault(r.IntN(int(harness.Faults))), func(byte, []byte) bool { skip--; return skip < 0 })
						}
						outcomes[n*rows+i] = w.send(holding(5), db, 100+n*rows+i)
						network.Arm(harness.NoFault, nil)
					}
				})
			}
			wg.Wait()
			counts := map[string]int{}
			for i, err := range outcomes {
				var price int
				if err := plain.QueryRow("SELECT price FROM books WHERE id = ?", 100+i).Scan(&price); err != nil {
					t.Fatal(err)
				}
				kind := "failed"
				switch {
				case err == nil:
					kind = "acknowledged"
				case errors.Is(err, sqlfence.ErrUnknownOutcome):
					kind = "unknown"
				}
				counts[fmt.Sprint(kind, " ", price)]++
				if kind == "acknowledged" && price != 1 || kind == "failed" && price != 0 || price > 1 {
					t.Errorf("%s, and applied %d times: %v", kind, price, err)
				}
			}
			t.Log(counts)
			if counts["unknown 1"] == 0 || counts["acknowledged 1"] == 0 {
				t.Error("the storm was none")
			}
		})
	}
}

// A COMMIT that is sent as a statement is reported as done or failed only if this is known. Sent again on another
// connection, COMMIT would commit nothing, and succeed.
func TestLostRepliesOfCommitStatementsOfMySQL(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	network := new(harness.Faulty)
	db := fence(t, network.DSN(t, dsn), sqlfence.RowFence("fence_token"))
	db.SetMaxOpenConns(1)
	for _, begin := range []string{"BEGIN", "START TRANSACTION", "SET autocommit = 0"} {
		for _, prepared := range []bool{false, true} {
			for f := harness.Unsent; f < harness.Faults; f++ {
				t.Run(fmt.Sprint(begin, "/", prepared, "/", f), func(t *testing.T) {
					exec(t, plain, "REPLACE INTO books (id, price) VALUES (1, 10)")
					exec(t, db, begin)
					if _, err := db.ExecContext(holding(5), "UPDATE books SET price = price + ? WHERE id = ?", 1, 1); err != nil {
						t.Fatal(err)
					}
					lost, send := isCommit, func() error { _, err := db.ExecContext(holding(5), "COMMIT"); return err }
					if prepared {
						stmt, err := db.Prepare("COMMIT")
						if err != nil {
							t.Fatal(err)
						}
						defer stmt.Close()
						lost = isWrite
						send = func() error { _, err := stmt.ExecContext(holding(5)); return err }
					}
					network.Arm(f, lost)
					err := send()
					if !network.Met() {
						t.Fatal("no message met the fault")
					}
					if !errors.Is(err, sqlfence.ErrUnknownOutcome) || errors.Is(err, driver.ErrBadConn) {
						t.Errorf("err = %v", err)
					}
					want := 11
					if f == harness.Unsent || f == harness.CutShort {
						want = 10
					}
					var price int
					if err := plain.QueryRow("SELECT price FROM books WHERE id = 1 LOCK IN SHARE MODE").Scan(&price); err != nil || price != want {
						t.Errorf("price = %d, %v; want %d", price, err, want)
					}
				})
			}
		}
	}
}
