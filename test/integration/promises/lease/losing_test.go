package lease_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A loser is a proxy for a database. Once armed, it breaks the connection instead of forwarding the response to an
// executed statement.
type loser struct {
	mu    sync.Mutex
	armed func(what string) bool
	then  func() // called before the client notices the loss
	lost  bool
}

// arm loses the next response for which wanted returns true. wanted gets PostgreSQL's CommandComplete, such as "UPDATE
// 1", or a statement of SQLite.
func (l *loser) arm(wanted func(what string) bool, then func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.then, l.lost = wanted, then, false
}

// wants reports whether the response to what must be lost. It returns true once for each call of arm.
func (l *loser) wants(what string) bool {
	l.mu.Lock()
	if l.armed == nil || !l.armed(what) {
		l.mu.Unlock()
		return false
	}
	then := l.then
	l.armed, l.lost = nil, true
	l.mu.Unlock()
	if then != nil {
		then()
	}
	return true
}

func (l *loser) hasLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// relay forwards messages between a client and PostgreSQL. If rows is true, the client still gets the rows of a lost
// response.
func (l *loser) relay(client, server net.Conn, rows bool) {
	go harness.Pass(server, client, func([]byte) {})
	defer client.Close()
	in := bufio.NewReader(server)
	var answer []byte
	cut := -1
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		message := append(head, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
		if _, err := io.ReadFull(in, message[5:]); err != nil {
			return
		}
		if head[0] == 'C' && l.wants(strings.TrimRight(string(message[5:]), "\x00")) { // CommandComplete
			cut = len(answer)
		}
		answer = append(answer, message...)
		switch head[0] {
		case 'Z', 'R', 'G': // ReadyForQuery, Authentication, CopyIn: the client's turn
			if cut >= 0 {
				if rows {
					_, _ = client.Write(answer[:cut])
				}
				return
			}
			if _, err := client.Write(answer); err != nil {
				return
			}
			answer = nil
		}
	}
}

// A losingConn is a connection to SQLite that executes a statement to its end before it loses the response.
type losingConn struct {
	driver.Conn
	loser *loser
}

type losingConnector struct {
	driver.Connector
	loser *loser
}

func (c losingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return losingConn{conn, c.loser}, err
}

func (c losingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return losingTx{tx, c.loser}, err
}

func (c losingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err == nil && c.loser.wants(query) {
		return nil, driver.ErrBadConn
	}
	return result, err
}

func (c losingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return losingRows{rows, query, c.loser}, nil
}

type losingRows struct {
	driver.Rows
	query string
	loser *loser
}

func (r losingRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == io.EOF && r.loser.wants(r.query) { // the statement has been executed
		return driver.ErrBadConn
	}
	return err
}

type losingTx struct {
	driver.Tx
	loser *loser
}

func (tx losingTx) Commit() error {
	err := tx.Tx.Commit()
	if err == nil && tx.loser.wants("COMMIT") {
		return driver.ErrBadConn
	}
	return err
}

// A losingDatabase is a database behind a loser.
type losingDatabase struct {
	*loser
	name    string
	dialect sqlfence.Dialect
	resends bool // the driver permits sending a statement again
	leases  *lease.Leases
	direct  *lease.Leases // not through the loser
}

// take and update recognize, by the texts that a loser gets, an attempt, and an extension or a release.
func (d *losingDatabase) take(what string) bool {
	return what == "SELECT 1" || what == "COMMIT"
}

func (d *losingDatabase) update(what string) bool {
	return what == "UPDATE 1" || strings.HasPrefix(what, "UPDATE fencing_leases")
}

// eachLoser runs test on every driver, plain and fenced, and in pgx's simple protocol. On PostgreSQL the whole response
// is lost, or everything after the rows. Separate tests lose each message of MySQL.
func eachLoser(t *testing.T, test func(t *testing.T, d *losingDatabase)) {
	t.Helper()
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		lose := losing[b.Dialect]
		if lose == nil {
			t.Skip("no answers are lost by their kind")
		}
		dsn := b.DSN(t)
		direct := harness.NewLeases(t, b.Raw(t, dsn))
		lose(t, b, dsn, func(name string, resends bool, l *loser, open func(t *testing.T) *sql.DB) {
			t.Run(name, func(t *testing.T) {
				d := &losingDatabase{loser: l, name: name, dialect: b.Dialect, resends: resends, direct: direct}
				d.leases = harness.NewLeases(t, open(t), lease.WithDialect(b.Dialect))
				test(t, d)
			})
		})
	})
}

type runLosing func(name string, resends bool, l *loser, open func(t *testing.T) *sql.DB)

// losing are ways to lose responses, for each database.
var losing = map[sqlfence.Dialect]func(t *testing.T, b harness.Base, dsn string, run runLosing){
	sqlfence.SQLite: func(t *testing.T, b harness.Base, dsn string, run runLosing) {
		l := new(loser)
		connector := losingConnector{b.Counting(t, dsn, &harness.Counter{Quiet: true}), l}
		run("plain", true, l, func(t *testing.T) *sql.DB { return harness.CloseAtEnd(t, sql.OpenDB(connector), nil) })
		run("fenced", true, l, func(t *testing.T) *sql.DB {
			db, err := sqlfence.OpenDB(connector, sqlfence.WithDialect(b.Dialect), harness.Books())
			return harness.CloseAtEnd(t, db, err)
		})
	},
	sqlfence.Postgres: func(t *testing.T, b harness.Base, dsn string, run runLosing) {
		for name, rows := range map[string]bool{"all of it": false, "behind its rows": true} {
			l := new(loser)
			through := harness.Relay(t, dsn, func(client, server net.Conn) { l.relay(client, server, rows) })
			run(name+", plain", b.Name == "pq", l, func(t *testing.T) *sql.DB { return b.Raw(t, through) })
			run(name+", fenced", b.Name == "pq", l, func(t *testing.T) *sql.DB { return b.Fenced(t, through, harness.Books()) })
			if b.Name == "pgx" {
				run(name+", simple", false, l, func(t *testing.T) *sql.DB {
					return b.Raw(t, through+"&default_query_exec_mode=simple_protocol")
				})
			}
		}
	},
}
