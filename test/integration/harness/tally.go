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

// opened is one thing that is to be closed once.
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

// close notes that a thing was closed. A connection leaves those of its things
// that are still open as orphans.
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

// Leaks tells what is open, of which conns connections may be. Orphaned
// statements are database/sql's own: it forgets one that is closed at the moment
// in which its connection is found to be too old.
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

// rows counts rows of the base driver. What they can do beyond the least is
// hidden then, so they are only where the counter is quiet.
func (c *Counter) rows(conn *opened, rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil || !c.Quiet {
		return rows, err
	}
	return TalliedRows{rows, c.Tally.open(&c.Tally.rows, conn)}, nil
}

// TalliedRows are rows that are counted until they are closed.
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

// TalliedTx is a transaction that is counted until it ends.
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
