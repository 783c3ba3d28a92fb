package lease_test

import (
	"bufio"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var leaseDuration = flag.Duration("lease.duration", 2*time.Second, "how long processes compete for leases, at least")

const (
	leaseProcesses  = 4
	leaseGoroutines = 16 // in each process
	leaseKeys       = 8
	leaseTTL        = 300 * time.Millisecond
)

// 64 goroutines in 4 processes compete for 8 keys. Meanwhile the processes are stopped beyond the ends of their leases,
// resumed and killed. Triggers record each change of the leases and of two registered tables. By this record no lease
// may be taken while another one was live, tokens must rise, and no write with an older token may follow a newer one.
func TestLeaseProcesses(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := quickDSN(b, b.DSN(t))
		db := b.Raw(t, dsn)
		harness.NewLeases(t, db)
		recordLeases(t, b, db)
		c := &competition{t: t, b: b, dsn: dsn}
		var workers []*leaseProcess
		for range leaseProcesses {
			workers = append(workers, c.start())
		}
		harness.Eventually(t, "a first write", func() bool { return countHistory(t, db, "what <> 'lease'") > 0 })
		start := time.Now()
		pause := leaseTTL + leaseTTL/2
		for round := 0; time.Since(start) < *leaseDuration || c.stale.Load() == 0; round++ {
			if time.Since(start) > *leaseDuration+harness.Patience {
				t.Fatal("no stale write was tried: the test shows nothing")
			}
			i := rand.IntN(len(workers))
			workers[i].signal(syscall.SIGSTOP)
			time.Sleep(pause) // not a wait: the other processes work meanwhile
			if round%4 == 3 {
				workers[i].kill()
				workers[i] = c.start()
			} else {
				workers[i].signal(syscall.SIGCONT)
			}
		}
		for _, w := range workers {
			w.end()
		}
		h := readHistory(t, db)
		for _, wrong := range h.check() {
			t.Error(wrong)
		}
		if h.grants == 0 || h.takeovers == 0 || h.writes == 0 {
			t.Error("the test shows nothing")
		}
		t.Logf("%v: %d leases granted, %d of them after an expiry; %d writes, %d stale ones refused",
			time.Since(start).Round(time.Second), h.grants, h.takeovers, h.writes, c.stale.Load())
	})
}

// quickDSN returns a DSN with settings that are fast and not durable.
func quickDSN(b harness.Base, dsn string) string {
	switch b.Name {
	case "mattn":
		return dsn + "&_synchronous=OFF"
	case "modernc":
		return dsn + "&_pragma=synchronous(OFF)"
	}
	return dsn
}

// A competition is the state that the processes share.
type competition struct {
	t     *testing.T
	b     harness.Base
	dsn   string
	stale atomic.Int64 // how many writes were refused
}

type leaseProcess struct {
	c     *competition
	cmd   *exec.Cmd
	stdin io.Closer
	read  sync.WaitGroup
}

const leaseWorkerEnv = "SQLFENCE_LEASE_WORKER" // base and DSN

func (c *competition) start() *leaseProcess {
	c.t.Helper()
	w := &leaseProcess{c: c, cmd: exec.Command(os.Args[0], "-test.run=^TestLeaseWorker$", "-test.v=false")}
	w.cmd.Env = append(os.Environ(), leaseWorkerEnv+"="+c.b.Name+" "+c.dsn)
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	w.cmd.Stderr = w.cmd.Stdout
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	w.read.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			switch line := lines.Text(); {
			case line == "stale":
				c.stale.Add(1)
			case line != "PASS" && line != "":
				c.t.Errorf("a worker says: %s", line)
			}
		}
	})
	return w
}

func (w *leaseProcess) signal(s syscall.Signal) {
	if err := w.cmd.Process.Signal(s); err != nil {
		w.c.t.Error(err)
	}
}

func (w *leaseProcess) kill() {
	w.signal(syscall.SIGKILL)
	w.read.Wait()
	_ = w.cmd.Wait() // it was killed
}

// end closes the process's input, so the process ends.
func (w *leaseProcess) end() {
	_ = w.stdin.Close()
	w.read.Wait()
	if err := w.cmd.Wait(); err != nil {
		w.c.t.Errorf("a worker ended with %v", err)
	}
}

// recordTexts are the parts of the triggers' SQL: the type of a counter, the clock and the end of a new lease in µs,
// and a trigger.
var recordTexts = map[sqlfence.Dialect]struct {
	serial, now, ends string
	trigger           func(name, when, insert string) []string
}{
	sqlfence.Postgres: {
		serial: "bigserial PRIMARY KEY",
		now:    "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		ends:   "(extract(epoch FROM NEW.expires_at) * 1000000)::bigint",
		trigger: func(name, when, insert string) []string {
			return []string{
				"CREATE FUNCTION " + name + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + insert + "; RETURN NULL; END $$",
				"CREATE TRIGGER " + name + " " + when + " FOR EACH ROW EXECUTE FUNCTION " + name + "()",
			}
		},
	},
	sqlfence.SQLite: {
		serial: "integer PRIMARY KEY AUTOINCREMENT",
		now:    "CAST(round((julianday('now') - 2440587.5) * 86400000) AS integer) * 1000",
		ends:   "NEW.expires_at * 1000",
		trigger: func(name, when, insert string) []string {
			return []string{"CREATE TRIGGER " + name + " " + when + " BEGIN " + insert + "; END"}
		},
	},
	sqlfence.MySQL: {
		serial: "bigint PRIMARY KEY AUTO_INCREMENT",
		now:    "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
		ends:   "NEW.expires_at",
		trigger: func(name, when, insert string) []string {
			return []string{"CREATE TRIGGER " + name + " " + when + " FOR EACH ROW " + insert}
		},
	},
}

// recordLeases creates the registered tables, and triggers that record the changes of these and of the leases, in order
// for each key.
func recordLeases(t *testing.T, b harness.Base, db *sql.DB) {
	t.Helper()
	texts := recordTexts[b.Dialect]
	harness.MustExec(t, db, "CREATE TABLE history (seq "+texts.serial+`, what text, "key" text, lock_id text, token bigint, at bigint, ends bigint)`)
	harness.MustExec(t, db, "CREATE TABLE accounts (id text PRIMARY KEY, writer bigint, fence_token bigint)")
	harness.MustExec(t, db, "CREATE TABLE notes (id text PRIMARY KEY, writer bigint)")
	for i := range leaseKeys {
		harness.MustExec(t, db, fmt.Sprintf("INSERT INTO accounts (id) VALUES ('%d')", i))
		harness.MustExec(t, db, fmt.Sprintf("INSERT INTO notes (id) VALUES ('%d')", i))
	}
	record := func(table, event, values string) {
		insert := `INSERT INTO history (what, "key", lock_id, token, at, ends) VALUES (` + values + ")"
		for _, query := range texts.trigger("record_"+table+"_"+strings.ToLower(event), "AFTER "+event+" ON "+table, insert) {
			harness.MustExec(t, db, query)
		}
	}
	ofLease := `'lease', NEW."key", NEW.lock_id, NEW.token, ` + texts.now + ", " + texts.ends
	record("fencing_leases", "INSERT", ofLease)
	record("fencing_leases", "UPDATE", ofLease)
	for _, table := range []string{"accounts", "notes"} {
		record(table, "UPDATE", "'"+table+"', concat('accounts/', NEW.id), NULL, NEW.writer, "+texts.now+", 0")
	}
}

func countHistory(t *testing.T, db *sql.DB, where string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM history WHERE " + where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
