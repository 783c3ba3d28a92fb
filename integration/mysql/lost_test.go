package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// A fault is what becomes of a message and its answer.
type fault int

const (
	noFault   fault = iota
	unsent          // the connection breaks before a byte is sent
	cutShort        // in the middle of the message
	closed          // behind it: the server has answered, and the client sees the end
	reset           // likewise, and the client sees an error
	tornReply       // likewise, within the answer
	faults
)

// faulty is a network whose next message that is wanted meets a fault.
type faulty struct {
	mu     sync.Mutex
	next   fault
	wanted func(command byte, text []byte) bool
	met    int
}

func (f *faulty) arm(next fault, wanted func(command byte, text []byte) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.wanted, f.met = next, wanted, 0
}

func (f *faulty) take(message []byte) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted == nil || len(message) < 5 || !f.wanted(message[4], message[5:]) {
		return noFault
	}
	f.wanted = nil
	f.met++
	return f.next
}

var networks atomic.Int64

// dsn returns the data source name through the network.
func (f *faulty) dsn(t testing.TB, dsn string, m mode) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(m.with(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // of each fault it says a line
	under := cfg.Net
	cfg.Net = fmt.Sprint("faulty", networks.Add(1))
	mysql.RegisterDialContext(cfg.Net, func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, under, addr)
		return &faultyConn{Conn: conn, network: f}, err
	})
	return cfg.FormatDSN()
}

// A faultyConn is used for messages of one piece.
type faultyConn struct {
	net.Conn
	network *faulty
	fault   fault // of the answer
	broken  error
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	switch what := c.network.take(b); what {
	case unsent:
		c.broken = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
		return 0, c.broken
	case cutShort:
		c.broken = &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
		n, _ := c.Conn.Write(b[:len(b)/2])
		_ = c.Conn.Close()
		return n, c.broken
	default:
		c.fault = what
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) Read(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	n, err := c.Conn.Read(b)
	switch c.fault {
	case closed:
		n, c.broken = 0, io.EOF
	case reset:
		n, c.broken = 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case tornReply:
		n, c.broken = n/2, io.EOF
		return n, nil
	default:
		return n, err
	}
	_ = c.Conn.Close()
	return n, c.broken
}

const (
	queryCommand   = 0x03
	executeCommand = 0x17
)

// isWrite is for the message that executes a guarded write of the books.
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

// A write, or a COMMIT, whose answer is lost is applied once and unknown; what was surely not sent is
// sent on another connection, and applied once.
func TestLostRepliesOfMySQL(t *testing.T) {
	for _, m := range modes[:2] {
		dsn := setup(t)
		plain := open(t, dsn)
		exec(t, plain, "INSERT INTO fencing_tokens VALUES ('books', 5)")
		for rule, r := range map[string]sqlfence.Rule{"row": sqlfence.RowFence("fence_token"), "ledger": sqlfence.Ledger()} {
			network := new(faulty)
			db := fence(t, network.dsn(t, dsn, m), r)
			for _, w := range writeWays {
				for f := unsent; f < faults; f++ {
					t.Run(fmt.Sprint(m.name, "/", rule, "/", w.name, "/", f), func(t *testing.T) {
						exec(t, plain, "REPLACE INTO books (id, price) VALUES (1, 10)")
						if err := w.send(holding(5), db, 1); err != nil {
							t.Fatal(err)
						}
						network.arm(f, w.lost)
						err := w.send(holding(5), db, 1)
						if network.met != 1 {
							t.Fatalf("%d faults, want 1", network.met)
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

func wantOutcome(t *testing.T, plain *sql.DB, w way, f fault, err error) {
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
	case inTx: // nothing of it is committed
		want = 11
	case f == unsent && commit: // the transaction is lost with its connection
		want, unknown = 11, false
	case f == unsent:
		unknown = false
	case f == cutShort:
		want = 11
	}
	if price != want {
		t.Errorf("price %d, want %d; %v", price, want, err)
	}
	if errors.Is(err, sqlfence.ErrUnknownOutcome) != unknown {
		t.Errorf("%v; want unknown: %v", err, unknown)
	}
	if (err == nil) != (f == unsent && !inTx && !commit) || unknown && errors.Is(err, driver.ErrBadConn) {
		t.Errorf("%v", err)
	}
}

// In a storm of faults what is acknowledged is applied once, what is called failed isn't, and what
// is unknown is applied once at most.
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
				network := new(faulty)
				db := fence(t, network.dsn(t, dsn, m), sqlfence.RowFence("fence_token"), sqlfence.Ledger())
				wg.Go(func() {
					r := rand.New(rand.NewPCG(1, uint64(n)))
					for i := range rows {
						w := writeWays[r.IntN(len(writeWays))]
						if r.IntN(3) > 0 {
							skip := r.IntN(4) // any message, that of Prepare or BEGIN too
							network.arm(fault(r.IntN(int(faults))), func(byte, []byte) bool { skip--; return skip < 0 })
						}
						outcomes[n*rows+i] = w.send(holding(5), db, 100+n*rows+i)
						network.arm(noFault, nil)
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
