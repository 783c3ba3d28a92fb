package tidb_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// addSix executes a guarded write, which adds 6 to the price of the first row, in one way.
var addSix = []struct {
	name string
	do   func(ctx context.Context, db *sql.DB) error
}{
	{"Exec", func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET price = price + 6 WHERE id = 1")
		return err
	}},
	{"Exec with arguments", func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET price = price + ? WHERE id = 1", 6)
		return err
	}},
	{"Query", func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "UPDATE books SET price = price + 6 WHERE id = 1")
		if err == nil {
			rows.Next()
			err = errors.Join(rows.Err(), rows.Close())
		}
		return err
	}},
	{"Query of a prepared statement", func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "UPDATE books SET price = price + ? WHERE id = 1", 6)
		if err == nil {
			rows.Next()
			err = errors.Join(rows.Err(), rows.Close())
		}
		return err
	}},
	{"after COMMIT AND CHAIN, which doesn't chain on TiDB", func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "COMMIT AND CHAIN")
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE books SET price = price + 6 WHERE id = 1")
		}
		_ = tx.Rollback()
		return err
	}},
}

// Whichever message of a guarded write meets a fault of the network: a write without an error has landed once, and a
// failed write hasn't landed, unless the error is ErrUnknownOutcome. The pool gets no connection with an open
// transaction.
func TestOutcomeOfALedgerWriteWhenTheNetworkFails(t *testing.T) {
	dsn, plain := setup(t)
	for _, way := range addSix {
		for n, last := 1, false; !last; n++ {
			for fault := harness.NoFault; fault < harness.Faults; fault++ {
				reset(t, plain)
				exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 5)")
				ctx, cancel := context.WithCancel(holding(5))
				network := new(harness.Faulty)
				db := fence(t, network.DSN(t, dsn), sqlfence.Ledger())
				db.SetMaxOpenConns(1)
				exec(t, withContext{db, ctx}, "UPDATE books SET price = price WHERE id = 2") // queries the server
				before, messages, met := priceOfFirst(t, plain), 0, ""
				network.Arm(fault, func(_ byte, text []byte) bool {
					if messages++; messages == n {
						met = string(text)
					}
					return messages == n
				})
				err := way.do(ctx, db)
				network.Arm(harness.NoFault, func(byte, []byte) bool { return false })
				landed, unknown := priceOfFirst(t, plain)-before, errors.Is(err, sqlfence.ErrUnknownOutcome)
				switch {
				case err == nil && landed != 6, err != nil && !unknown && landed != 0, landed != 0 && landed != 6:
					t.Errorf("%s: fault %d of message %d, %.20q: %v; the price has changed by %d", way.name, fault, n, met, err, landed)
				}
				var open int64
				if err := db.QueryRow("SELECT @@tidb_current_ts").Scan(&open); err != nil || open != 0 {
					t.Errorf("%s: fault %d of message %d: a transaction is open: %d, %v", way.name, fault, n, open, err)
				}
				last = messages < n
				cancel()
				_ = db.Close()
			}
		}
	}
}

// If the context of a write ends while the write waits for the lock of its token's name, the outcome is known: the write
// hasn't landed.
func TestOutcomeIsKnownIfTheContextEndsDuringTheWaitForTheLedger(t *testing.T) {
	dsn, plain := setup(t)
	reset(t, plain)
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 5)")
	before := priceOfFirst(t, plain)
	for _, way := range addSix {
		db := fence(t, dsn, sqlfence.Ledger())
		db.SetMaxOpenConns(1)
		exec(t, withContext{db, holding(5)}, "UPDATE books SET price = price WHERE id = 2") // queries the server
		locker, err := plain.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, locker, "SELECT token FROM fencing_tokens WHERE name = 'books' FOR UPDATE")
		ctx, cancel := context.WithCancel(holding(5))
		ended := make(chan error)
		go func() { ended <- way.do(ctx, db) }()
		harness.Eventually(t, "the write waits", func() bool { return waiting(t, plain) })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want context.Canceled and no ErrUnknownOutcome", way.name, err)
		}
		if err := locker.Rollback(); err != nil {
			t.Error(err)
		}
		var open int64
		if err := db.QueryRow("SELECT @@tidb_current_ts").Scan(&open); err != nil || open != 0 {
			t.Errorf("%s: a transaction is open: %d, %v", way.name, open, err)
		}
		if after := priceOfFirst(t, plain); after != before {
			t.Errorf("%s: the price has changed from %d to %d", way.name, before, after)
		}
		_ = db.Close()
	}
}

// In Observe mode neither a token nor the call that sends a write keeps the write from being applied once.
func TestObservedLedgerWritesAreApplied(t *testing.T) {
	dsn, plain := setup(t)
	for _, interpolates := range []bool{false, true} {
		db, err := sqlfence.Open("mysql", harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.InterpolateParams = interpolates }),
			sqlfence.WithMode(sqlfence.Observe), sqlfence.WithTable("books", sqlfence.Ledger()))
		harness.CloseAtEnd(t, db, err)
		for _, way := range addSix {
			for value := range int64(4) {
				reset(t, plain)
				exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 2)")
				ctx, cancel := context.WithCancel(t.Context())
				if value > 0 {
					ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: value})
				}
				before := priceOfFirst(t, plain)
				err := way.do(ctx, db)
				cancel()
				if changed := priceOfFirst(t, plain) - before; err != nil || changed != 6 {
					t.Errorf("%s, token %d, interpolates %v: %v; the price has changed by %d", way.name, value, interpolates, err, changed)
				}
			}
		}
	}
}
