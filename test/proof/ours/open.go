package ours

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "github.com/lib/pq"              // postgres
	_ "github.com/mattn/go-sqlite3"    // sqlite3
	_ "modernc.org/sqlite"             // sqlite

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/tokens"
)

// A database holds the differences between databases.
type database struct {
	seals, ledgers bool
	native         bool              // it can be written to by pgx alone
	forms          map[string]string // of statements, by their name; the table is %[1]s
	rowFirst       bool              // an upsert's placeholders are by their place, the row's first
	// source is the driver of a process, and the data source name for it.
	source func(dsn string, process int) (driver, name string, err error)
	time   string // type of the times of a user's lock
	create string // of a table, with its name and the column of its mark
	// deleting sets the session's request number before a DELETE; empty if sessions have no settings.
	deleting, deleted string
}

var databases = map[string]*database{"postgres": &postgres, "pgbouncer": pooled(postgres), "mariadb": &mariadb, "galera": clustered(mariadb), "sqlite": &sqlite}

// levels are the isolation levels that the sessions of the processes begin with, in turn.
var levels = []string{"read committed", "repeatable read", "serializable", "read committed"}

func postgresSource(dsn string, process int) (string, string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", "", err
	}
	q := u.Query()
	q.Set("default_transaction_isolation", levels[process/2%len(levels)])
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // pgx doesn't take + for a space
	return []string{"pgx", "postgres"}[process%2], u.String(), nil
}

// pooled is a database with sessions that transactions share: they keep nothing.
func pooled(d database) *database {
	d.native, d.deleting, d.deleted = false, "", ""
	d.source = func(dsn string, process int) (string, string, error) {
		settings := []string{"&default_query_exec_mode=exec", "&binary_parameters=yes"}
		return []string{"pgx", "postgres"}[process%2], dsn + settings[process%2], nil
	}
	return &d
}

func mariadbSource(dsn string, process int) (string, string, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", "", err
	}
	c.InterpolateParams = process%2 == 1
	c.Params = map[string]string{"tx_isolation": "'" + []string{"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}[process/2%3] + "'"}
	return "mysql", c.FormatDSN(), nil
}

// clustered is a database on several nodes that all write: each process has one of them, and reads what was committed on
// any. The data source names are separated by blanks.
func clustered(d database) *database {
	d.seals, d.ledgers = false, false
	d.source = func(dsn string, process int) (string, string, error) {
		nodes := strings.Fields(dsn)
		driver, name, err := mariadbSource(nodes[process%len(nodes)], process)
		return driver, name + "&wsrep_sync_wait=7&innodb_lock_wait_timeout=1&idle_transaction_timeout=1", err
	}
	return &d
}

func sqliteSource(dsn string, process int) (string, string, error) {
	if process%2 == 0 {
		return "sqlite3", "file:" + dsn + "?_busy_timeout=4000&_journal_mode=WAL&_txlock=immediate&_synchronous=NORMAL", nil
	}
	return "sqlite", "file:" + dsn + "?_pragma=busy_timeout(4000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate", nil
}

func (w *worker) open(ctx context.Context, r fence.Request) error {
	var ok bool
	if w.database, ok = databases[r.Database]; !ok {
		return fmt.Errorf("no database is called %q", r.Database)
	}
	if err := w.connect(ctx, r); err != nil {
		return err
	}
	var err error
	if w.store, err = tokens.New(w.db); err != nil {
		return err
	}
	if w.leases, err = lease.New(w.db); err != nil {
		return err
	}
	if w.edited, err = rowlock.New(w.db, "edited"); err != nil {
		return err
	}
	if r.Setup {
		return w.setUp(ctx)
	}
	return w.db.PingContext(ctx)
}

// connect opens the database: of PostgreSQL's processes the second one by pgx alone.
func (w *worker) connect(ctx context.Context, r fence.Request) (err error) {
	if w.database.native && r.Process == 2 {
		if w.native, err = openNative(ctx, w.database, r.DSN, w.options()); err == nil {
			w.db = w.native.db.SQL()
		}
		return err
	}
	driver, name, err := w.database.source(r.DSN, r.Process)
	if err != nil {
		return err
	}
	if w.db, err = sqlfence.Open(driver, name, w.options()...); err == nil {
		w.db.SetMaxIdleConns(16)
	}
	return err
}

// tables are those that the database can have.
func (d *database) tables() (list []history.Table) { return history.For(d.seals, d.ledgers) }

func (w *worker) options() (opts []sqlfence.Option) {
	if w.observes {
		opts = append(opts, sqlfence.WithMode(sqlfence.Observe))
	}
	for _, t := range w.database.tables() {
		if t.Held {
			continue
		}
		opts = append(opts, sqlfence.WithTable(t.Name, rules(t)...))
	}
	return opts
}

func rules(t history.Table) (rules []sqlfence.Rule) {
	for _, r := range []struct {
		has  bool
		rule sqlfence.Rule
	}{
		{t.Fence, sqlfence.RowFence(t.Mark)}, {t.Single, sqlfence.SingleUse()}, {t.Ledger, sqlfence.Ledger()},
		{t.Keyed || t.Claim || t.ClaimOf != "", sqlfence.Key("id")}, {t.Claim, sqlfence.Claim(t.Mark)},
		{t.ClaimOf != "", sqlfence.ClaimOf(t.ClaimOf)}, {t.Serial, sqlfence.Serial(t.Mark)},
		{t.Edited, sqlfence.EditLock("editedby", "editedsince", "editedexpiry")}, {t.Sealed, sqlfence.Sealed()},
	} {
		if r.has {
			rules = append(rules, r.rule)
		}
	}
	return rules
}

func (w *worker) setUp(ctx context.Context) error {
	if err := w.leases.Setup(ctx); err != nil { // also the ledger
		return err
	}
	bypass := sqlfence.Bypass(ctx, "the tables of the proof")
	for _, t := range w.database.tables() {
		mark := ""
		if t.Mark != "" {
			mark = ", " + t.Mark + " bigint NOT NULL DEFAULT 0"
		}
		if t.Edited {
			mark += ", editedby bigint" + fmt.Sprintf(", editedsince %[1]s, editedexpiry %[1]s", w.database.time)
		}
		if _, err := w.db.ExecContext(bypass, fmt.Sprintf(w.database.create, t.Name, mark)); err != nil {
			return err
		}
		for row := int64(1); row <= t.Rows; row++ {
			if _, err := w.db.ExecContext(bypass, fmt.Sprintf("INSERT INTO %s (id, value) VALUES (%d, 0)", t.Name, row)); err != nil {
				return err
			}
		}
	}
	if !w.database.seals {
		return nil
	}
	return schema.Seal(ctx, w.db)
}
