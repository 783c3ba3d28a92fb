package harness

import (
	"database/sql/driver"
	"fmt"
	"sync"
)

// A Tally is what a base driver was asked to open and to close.
type Tally struct {
	mu                     sync.Mutex
	conns, stmts, rows, tx kept
}

// kept counts the things of one kind.
type kept struct{ opened, open, again, orphans int }

// opened is an object that must be closed exactly once.
type opened struct {
	tally    *Tally
	kind     *kept
	conn     *opened // what it belongs to; nil for a connection
	children map[*opened]bool
	closed   bool
}

func (t *Tally) open(kind *kept, conn *opened) *opened {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind.opened++
	kind.open++
	o := &opened{tally: t, kind: kind, conn: conn, children: map[*opened]bool{}}
	if conn != nil {
		conn.children[o] = true
	}
	return o
}

// close records that an object was closed. When a connection closes, its open objects become orphans.
func (o *opened) close() {
	o.tally.mu.Lock()
	defer o.tally.mu.Unlock()
	if o.closed {
		o.kind.again++
		return
	}
	o.closed = true
	o.kind.open--
	if o.conn != nil {
		delete(o.conn.children, o)
	}
	for child := range o.children {
		child.closed = true
		child.kind.open--
		child.kind.orphans++
	}
}

// Leaks returns the open objects, of which conns may be connections. Orphaned statements come from database/sql: it
// forgets a statement that is closed while its connection is found to be too old.
func (t *Tally) Leaks(conns int) (leaks []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range []struct {
		name string
		kept
		want int
	}{{"connections", t.conns, conns}, {"statements", t.stmts, 0}, {"rows", t.rows, 0}, {"transactions", t.tx, 0}} {
		if k.open != k.want {
			leaks = append(leaks, fmt.Sprintf("%d %s open, want %d", k.open, k.name, k.want))
		}
		if k.name != "statements" && k.orphans+k.again > 0 {
			leaks = append(leaks, fmt.Sprintf("%d %s not closed before their connection, %d closed again", k.orphans, k.name, k.again))
		}
	}
	return leaks
}

// String lists what was opened.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d connections, %d statements (%d orphans), %d rows, %d transactions",
		t.conns.opened, t.stmts.opened, t.stmts.orphans, t.rows.opened, t.tx.opened)
}

// rows counts rows of the base driver. Counted rows hide the optional interfaces, so rows are counted only if the
// counter is quiet.
func (c *Counter) rows(conn *opened, rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil || !c.Quiet {
		return rows, err
	}
	return TalliedRows{rows, c.Tally.open(&c.Tally.rows, conn)}, nil
}

// TalliedRows counts as open rows until Close.
type TalliedRows struct {
	driver.Rows
	open *opened
}

// Close closes the rows.
func (r TalliedRows) Close() error {
	r.open.close()
	return r.Rows.Close()
}

func (c *Counter) tx(conn *opened, tx driver.Tx, err error) (driver.Tx, error) {
	if err != nil {
		return nil, err
	}
	return TalliedTx{tx, c.Tally.open(&c.Tally.tx, conn)}, nil
}

// TalliedTx counts as an open transaction until Commit or Rollback.
type TalliedTx struct {
	driver.Tx
	open *opened
}

// Commit ends the transaction.
func (tx TalliedTx) Commit() error {
	tx.open.close()
	return tx.Tx.Commit()
}

// Rollback ends the transaction.
func (tx TalliedTx) Rollback() error {
	tx.open.close()
	return tx.Tx.Rollback()
}
