package orders_test

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A mode is how transactions run: at an isolation level, or with one of SQLite's ways to begin them.
type mode struct {
	name      string
	level     sql.IsolationLevel
	begin     string // the statement that begins a transaction; empty: BeginTx with the level
	params    string // of SQLite's DSN
	snapshots bool   // a statement may see the state at the transaction's beginning
	prepare   string // statements that set the mode up
}

// A database is a base with a particular way for sessions to wait.
type database struct {
	harness.Base
	name    string
	modes   []mode
	endsTx  bool   // a failed statement ends its transaction
	ordered bool   // only sessions that write rows crosswise can deadlock
	silent  bool   // a stale write that reaches no row may have no error
	upsert  string // the clause after VALUES that makes an INSERT an upsert of the column tag
	open    func(t *testing.T, d *database, m mode) (dsn string)

	// waits returns the sessions that wait for a lock. It is nil if the database refuses a session instead of letting
	// it wait.
	waits func(ctx context.Context, conn *sql.DB) (map[int]waiter, error)

	itsName string // the query for the name of the database that a session is in
}

// A waiter is a session that waits for a lock.
type waiter struct {
	in string // the name of the session's database
	of []int  // the sessions that it waits for, if the database reports them
}

var databases = []*database{
	{
		Base: written(harness.Bases[1]),
		name: "PostgreSQL",
		modes: []mode{
			{name: "read committed", level: sql.LevelReadCommitted},
			{name: "repeatable read", level: sql.LevelRepeatableRead, snapshots: true},
			{name: "serializable", level: sql.LevelSerializable, snapshots: true},
		},
		endsTx:  true,
		ordered: true,
		upsert:  "ON CONFLICT (id) DO UPDATE SET tag = excluded.tag",
		open:    openPostgres,
		waits:   postgresWaits,
		itsName: "SELECT current_database()",
	},
	{
		Base: harness.MySQL,
		name: "MariaDB",
		modes: []mode{
			{name: "read committed", level: sql.LevelReadCommitted},
			{name: "repeatable read", level: sql.LevelRepeatableRead},
			{name: "serializable", level: sql.LevelSerializable},
		},
		upsert:  "ON DUPLICATE KEY UPDATE tag = VALUES(tag)",
		open:    openMySQL,
		waits:   mysqlWaits,
		itsName: "SELECT DATABASE()",
	},
	{
		Base: written(harness.Bases[2]),
		name: "SQLite",
		modes: []mode{
			{name: "WAL, deferred", begin: "BEGIN", params: "_journal_mode=WAL", snapshots: true},
			{name: "WAL, immediate", begin: "BEGIN IMMEDIATE", params: "_journal_mode=WAL"},
			{name: "rollback journal, deferred", begin: "BEGIN", params: "_journal_mode=DELETE"},
			{name: "rollback journal, immediate", begin: "BEGIN IMMEDIATE", params: "_journal_mode=DELETE"},
		},
		silent: true,
		upsert: "ON CONFLICT (id) DO UPDATE SET tag = excluded.tag",
		open:   openSQLite,
	},
}

func written(b harness.Base) harness.Base {
	b.AsWritten = true
	return b
}

// writes reports whether such a write is guarded under the rules; "" is for none.
func (d *database) writes(r ruleset, kind string) bool {
	switch kind {
	case "fresh": // no session knows the claim of a row that another session has added
		return !r.has("Claim")
	}
	return true
}

// text writes a statement's placeholder as the database reads it.
func (d *database) text(query string) string {
	if d.Dialect == sqlfence.Postgres {
		return strings.ReplaceAll(query, "?", "$1")
	}
	return query
}

// openPostgres creates a database, because the ledger's turns are locks by name within a database. Where it may, it
// makes the server look for deadlocks at once.
func openPostgres(t *testing.T, d *database, m mode) string {
	dsn := harness.PostgresDatabase(t)
	var super string
	if err := d.Raw(t, dsn).QueryRow("SELECT current_setting('is_superuser')").Scan(&super); err != nil {
		t.Fatal(err)
	}
	dsn = d.AtLevel(t, dsn, m.level)
	if super == "on" {
		dsn += "&deadlock_timeout=5ms"
	}
	return dsn
}

func postgresWaits(ctx context.Context, conn *sql.DB) (map[int]waiter, error) {
	const query = `SELECT DISTINCT l.pid, a.datname, array_to_string(pg_blocking_pids(l.pid), ' ')
FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted AND a.datname IS NOT NULL`
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waits := make(map[int]waiter)
	for rows.Next() {
		var pid int
		var w waiter
		var blocking string
		if err := rows.Scan(&pid, &w.in, &blocking); err != nil {
			return nil, err
		}
		for _, of := range strings.Fields(blocking) {
			n, err := strconv.Atoi(of)
			if err != nil {
				return nil, err
			}
			w.of = append(w.of, n)
		}
		if len(w.of) != 0 { // otherwise the session has the lock by now
			waits[pid] = w
		}
	}
	return waits, rows.Err()
}

func openMySQL(t *testing.T, d *database, m mode) string {
	return harness.MySQLWith(t, d.AtLevel(t, d.DSN(t), m.level), func(c *mysql.Config) {
		c.Params["innodb_lock_wait_timeout"], c.Params["lock_wait_timeout"] = "300", "300"
	})
}

var innodbWaits = regexp.MustCompile(`(?m)^LOCK WAIT .*\n(?:MariaDB|MySQL) thread id (\d+),`)

// mysqlWaits: information_schema's tables about locks are too old by up to a tenth of a second.
func mysqlWaits(ctx context.Context, conn *sql.DB) (map[int]waiter, error) {
	var kind, name, status string
	if err := conn.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
		return nil, err
	}
	_, now, _ := strings.Cut(status, "LIST OF TRANSACTIONS FOR EACH SESSION")
	inside := make(map[string]bool)
	for _, found := range innodbWaits.FindAllStringSubmatch(now, -1) {
		inside[found[1]] = true
	}
	rows, err := conn.QueryContext(ctx, "SELECT ID, COALESCE(DB, ''), COALESCE(STATE, '') FROM information_schema.PROCESSLIST")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waits := make(map[int]waiter)
	for rows.Next() {
		var id int
		var w waiter
		var state string
		if err := rows.Scan(&id, &w.in, &state); err != nil {
			return nil, err
		}
		if inside[strconv.Itoa(id)] || strings.HasPrefix(state, "Waiting for ") && strings.HasSuffix(state, " lock") {
			waits[id] = w
		}
	}
	return waits, rows.Err()
}

// openSQLite opens a database in which a statement fails at once if it meets a lock.
func openSQLite(t *testing.T, d *database, m mode) string {
	file, _, _ := strings.Cut(d.DSN(t), "?")
	return file + "?_busy_timeout=0&_synchronous=OFF&" + m.params
}
