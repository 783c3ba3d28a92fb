package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/need"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// MySQL is the MySQL entry of Bases without translation, for tests and programs that use MySQL's SQL.
var MySQL = Base{Name: "mysql", DriverName: "mysql", Dialect: sqlfence.MySQL, OneAtATime: true, AsWritten: true}

// MySQLInterpolated is MySQL's driver with both settings that programs notice: the driver writes arguments into the
// statement, and counts the rows that an UPDATE finds.
var MySQLInterpolated = Base{Name: "mysql-interpolated", DriverName: "mysql", Dialect: sqlfence.MySQL, OneAtATime: true, AsWritten: true}

// programs are the bases of [EachProgram].
var programs = append(slices.DeleteFunc(slices.Clone(Bases), func(b Base) bool { return b.Name == MySQL.Name }), MySQL, MySQLInterpolated)

// MySQLDSN returns the MySQL or MariaDB server to test on, as PostgresDSN does
// for PostgreSQL.
func MySQLDSN(t testing.TB) string {
	t.Helper()
	return need.Server(t, "MYSQL", "scripts/with-mariadb go test ./...")
}

// mysqlAdmin creates and drops the tests' databases, and stays open until the process ends.
var mysqlAdmin struct {
	open sync.Once
	db   *sql.DB
	err  error
}

// MySQLDatabase creates a database and returns its DSN.
func MySQLDatabase(t testing.TB) string {
	t.Helper()
	dsn := MySQLDSN(t)
	holds(t, "MariaDB")
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "sqlfence_" + strings.ToLower(rand.Text())
	mysqlAdmin.open.Do(func() { mysqlAdmin.db, mysqlAdmin.err = sql.Open("mysql", dsn) })
	admin, err := mysqlAdmin.db, mysqlAdmin.err
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The limit turns a transaction that the test left open into a failure
		// instead of a hang.
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if _, err := admin.ExecContext(ctx, "DROP DATABASE "+name); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	cfg.DBName = name
	return cfg.FormatDSN()
}

// IsMariaDB reports whether the server is MariaDB, and no MySQL.
func (s *Shop) IsMariaDB(t testing.TB) bool { return isMariaDB(t, s.Plain) }

func isMariaDB(t testing.TB, db *sql.DB) (is bool) {
	t.Helper()
	if err := db.QueryRow("SELECT version() LIKE '%MariaDB%'").Scan(&is); err != nil {
		t.Fatal(err)
	}
	return is
}

func openMySQL(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	return CloseAtEnd(t, db, err)
}

// MySQLWith returns a DSN with its configuration changed.
func MySQLWith(t testing.TB, dsn string, change func(*mysql.Config)) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(cfg)
	return cfg.FormatDSN()
}

// mysqlInMode returns the DSN of a database whose sessions have a sql_mode.
func mysqlInMode(t testing.TB, mode string) string {
	t.Helper()
	return MySQLWith(t, MySQLDatabase(t), func(c *mysql.Config) { c.Params = map[string]string{"sql_mode": mode} })
}

// mysqlAtLevel looks up the variable's name, because MariaDB before 11.1 uses tx_isolation.
func mysqlAtLevel(t testing.TB, dsn string, level sql.IsolationLevel) string {
	t.Helper()
	var name, value string
	const known = "SHOW VARIABLES WHERE variable_name IN ('tx_isolation', 'transaction_isolation')"
	if err := openMySQL(t, dsn).QueryRow(known).Scan(&name, &value); err != nil {
		t.Fatal(err)
	}
	return MySQLWith(t, dsn, func(c *mysql.Config) {
		if c.Params == nil {
			c.Params = make(map[string]string)
		}
		c.Params[name] = "'" + strings.ToUpper(strings.ReplaceAll(level.String(), " ", "-")) + "'"
	})
}

// EachMySQLSession runs test for sessions that differ in what changes how statements are read,
// committed and answered. plain is a session like most, on the same database.
func EachMySQLSession(t *testing.T, test func(t *testing.T, db, plain *sql.DB)) {
	t.Helper()
	params := func(list map[string]string) func(*mysql.Config) {
		return func(c *mysql.Config) { c.Params = list }
	}
	for name, change := range map[string]func(*mysql.Config){
		"autocommit off":     params(map[string]string{"autocommit": "0"}),
		"no sql_mode":        params(map[string]string{"sql_mode": "''"}),
		"other sql_mode":     params(map[string]string{"sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,NO_ZERO_DATE,STRICT_ALL_TABLES'"}),
		"empty is NULL":      params(map[string]string{"sql_mode": "'EMPTY_STRING_IS_NULL,STRICT_ALL_TABLES'"}),
		"another time zone":  params(map[string]string{"time_zone": "'-07:30'"}),
		"snapshot isolation": params(map[string]string{"innodb_snapshot_isolation": "1"}),
		"off and snapshot":   params(map[string]string{"innodb_snapshot_isolation": "1", "autocommit": "0"}),
		"utf16":              params(map[string]string{"collation_connection": "utf16_general_ci"}),
		"latin1": func(c *mysql.Config) {
			c.Collation, c.Params = "latin1_swedish_ci", map[string]string{"charset": "latin1"}
		},
		"interpolated":       func(c *mysql.Config) { c.InterpolateParams = true },
		"times parsed":       func(c *mysql.Config) { c.ParseTime, c.Loc = true, time.Local },
		"several statements": func(c *mysql.Config) { c.MultiStatements = true },
	} {
		t.Run(name, func(t *testing.T) {
			dsn := MySQLDatabase(t)
			db, plain := MySQL.Raw(t, MySQLWith(t, dsn, change)), MySQL.Raw(t, dsn)
			if err := db.Ping(); strings.Contains(fmt.Sprint(err), "Unknown system variable") || strings.Contains(fmt.Sprint(err), "EMPTY_STRING_IS_NULL") {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			test(t, db, plain)
		})
	}
}

// mysqlWords are what the tests write otherwise. An upsert finds its row by any unique key, and a
// write that is asked for its rows, which only some may be, comes without: see [Base.Returns].
var mysqlWords = wordsOf(
	`(?is)^(\s*(?:UPDATE|INSERT|DELETE)\b.*?) RETURNING [^()]*$`, "$1",
	`(?is)^INSERT INTO (.*) ON CONFLICT (?:\([^()]*\) )?DO NOTHING$`, "INSERT IGNORE INTO $1",
	`(?i)\bON CONFLICT (?:\([^()]*\) )?DO UPDATE SET\b`, "ON DUPLICATE KEY UPDATE",
	`(?i)\bexcluded\.(\w+)`, "VALUES($1)",
	`(?i)\b(CAST\([^()]+ AS )text\)`, "${1}char)",
	`(?i)( AS )integer\)`, "${1}signed)",
	`(?i)^CREATE TEMP TABLE\b`, "CREATE TEMPORARY TABLE",
	`"((?:[^"']|"")+)"`, "`$1`",
	`(?is)^(\s*CREATE TABLE .*?|\s*ALTER TABLE .*?)\btext\b`, "${1}varchar(190)",
)

// mysqlIssue has the token come back as the id that was inserted last.
func mysqlIssue(ctx context.Context, db *sql.DB) (int64, error) {
	const query = "INSERT INTO fencing_tokens (name, token) VALUES ('books', LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(token + 1)"
	r, err := db.ExecContext(ctx, query)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// mysqlWaiting matches a waiting transaction in InnoDB's status.
var mysqlWaiting = regexp.MustCompile(`(?m)^LOCK WAIT .*\n(?:MariaDB|MySQL) thread id (\d+),`)

// mysqlWaiters counts the database's other sessions that wait for a lock. information_schema is no source: it repeats
// its last result if any session of any database has queried it within a tenth of a second.
func mysqlWaiters(t testing.TB, db *sql.DB, session int) (n int) {
	t.Helper()
	if !isMariaDB(t, db) { // which doesn't tell of who waits while the statement is planned
		const query = "SELECT COUNT(DISTINCT l.thread_id) FROM performance_schema.data_locks AS l JOIN performance_schema.threads AS t " +
			"ON t.thread_id = l.thread_id WHERE l.lock_status = 'WAITING' AND t.processlist_db = DATABASE() AND t.processlist_id <> ?"
		if err := db.QueryRow(query, session).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var kind, name, status string
	if err := db.QueryRow("SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
		t.Fatal(err)
	}
	_, now, _ := strings.Cut(status, "LIST OF TRANSACTIONS FOR EACH SESSION") // before it is the last deadlock
	for _, waits := range mysqlWaiting.FindAllStringSubmatch(now, -1) {
		var other int
		const query = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID = ? AND ID <> ?"
		if err := db.QueryRow(query, waits[1], session).Scan(&other); err != nil {
			t.Fatal(err)
		}
		n += other
	}
	return n
}
