//go:build linux

package storm

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // pgx
	_ "github.com/mattn/go-sqlite3"    // sqlite3

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A Target is a database that a storm goes over.
type Target struct {
	Database string // as a fence is told: postgres, mariadb, sqlite
	DSN      string // for the fences
	Admin    *sql.DB
	Nodes    []*sql.DB       // all servers, where they are several that write
	Wire     *Wire           // before the server; nil where there is none
	Tables   []history.Table // those that it can have
	Forms    []string        // kinds of statements that not all databases have
	Levels   []string        // of isolation
	TTL      time.Duration   // of leases: shorter than processes are stopped
	Patient  bool            // no request is given up

	version  string   // a query
	before   string   // what is before the server
	direct   string   // data source name past the wire
	crash    func()   // kills the server and starts it again
	faults   []Fault  // that others have not
	without  []string // kinds of faults that others have
	sessions string   // a query for those of the fences
	end      string   // one of them, by its number
	empty    []string // statements that empty the history and go on with its numbers; %d is the last one
}

// Databases are those that a storm knows.
var Databases = map[string]func(*testing.T) *Target{
	"postgres": Postgres, "pgbouncer": Pgbouncer, "synchronous standby": Synchronous, "stepping clock": SteppingClock,
	"full disk": FullDisk,
	"mariadb":   MariaDB, "sqlite": SQLite, "galera": Galera,
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err == nil {
		db.SetMaxOpenConns(1)
		err = db.Ping()
	}
	return harness.CloseAtEnd(t, db, err)
}

// Version returns which server it is.
func (db *Target) Version(t *testing.T) (version string) {
	t.Helper()
	if err := db.Admin.QueryRow(db.version).Scan(&version); err != nil {
		t.Fatal(err)
	}
	version, _, _ = strings.Cut(version, "-")
	version, _, _ = strings.Cut(version, " (")
	return version + db.before
}

// A session is one of the fences.
type session struct {
	on     *sql.DB
	number int
}

// ask returns the sessions of the fences.
func (db *Target) ask() (list []session, err error) {
	nodes := db.Nodes
	if nodes == nil {
		nodes = []*sql.DB{db.Admin}
	}
	for _, node := range nodes {
		of, err := db.askOne(node)
		if err != nil {
			return nil, err
		}
		list = append(list, of...)
	}
	return list, nil
}

func (db *Target) askOne(node *sql.DB) (list []session, err error) {
	rows, err := node.Query(db.sessions)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		s := session{on: node}
		if err := rows.Scan(&s.number); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// endSession ends one, if it hasn't ended.
func (db *Target) endSession(s session) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	_, _ = s.on.ExecContext(ctx, fmt.Sprintf(db.end, s.number))
}

// endOne ends a session of the fences.
func (db *Target) endOne(rng *rand.Rand) {
	if list, err := db.ask(); err == nil && len(list) > 0 {
		db.endSession(list[rng.IntN(len(list))])
	}
}

// quiet ends all sessions and waits for their end, so that the record then holds every landed write.
func (db *Target) quiet(t *testing.T) {
	t.Helper()
	if db.sessions == "" {
		return // the processes have ended, and with them their transactions
	}
	harness.Eventually(t, "no session is left", func() bool {
		list, err := db.ask()
		for _, session := range list {
			db.endSession(session)
		}
		if len(list) > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		return err == nil && len(list) == 0
	})
}
