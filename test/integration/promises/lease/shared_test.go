package lease_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// together runs n calls at once.
func together(t *testing.T, n int, call func(i int) error) {
	t.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			if err := call(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
}

// Concurrent callers share statements, if the database supports sharing, and each caller gets the same result as alone.
// Two processes compete for each other's keys.
func TestLeaseSharedStatements(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := quickDSN(b, b.DSN(t))
		counted, c := b.Counted(t, dsn)
		plain := b.Raw(t, dsn)
		all := []*lease.Leases{harness.NewLeases(t, counted), harness.NewLeases(t, plain)}
		const keys, rounds = 24, 6
		c.Reset()
		var mu sync.Mutex
		last := make(map[string]int64)
		together(t, 2*keys, func(i int) error {
			key := fmt.Sprint("own/", i%keys)
			for range rounds {
				l, err := all[i/keys].Acquire(t.Context(), key, lease.Timeout(harness.Patience), lease.Interval(5*time.Millisecond), lease.Resume(fmt.Sprint("owner's ", i)))
				if err != nil {
					return err
				}
				mu.Lock()
				if l.Token().Value != last[key]+1 {
					t.Errorf("%v after %d", l.Token(), last[key])
				}
				last[key] = l.Token().Value
				mu.Unlock()
				if err := l.Release(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
		for key, token := range last {
			if current, err := harness.NewStore(t, plain).Current(t.Context(), key); err != nil || current.Value != token || token != 2*rounds {
				t.Errorf("%s: the ledger says %v, %v; the last token was %d", key, current, err, token)
			}
		}
		if live, err := all[1].List(t.Context()); err != nil || len(live) > 0 {
			t.Errorf("left: %v, %v", live, err)
		}
		shared := func() (takes, releases int) {
			for _, text := range c.Texts() {
				if strings.Contains(text, "json_to_recordset") && strings.Contains(text, "ON CONFLICT") {
					takes++
				} else if strings.Contains(text, "json_to_recordset") {
					releases++
				}
			}
			return takes, releases
		}
		if b.Dialect != sqlfence.Postgres {
			return
		}
		harness.Eventually(t, "shared statements that take and that release", func() bool {
			if takes, releases := shared(); takes > 0 && releases > 0 {
				return true
			}
			together(t, keys, func(i int) error { // on a busy machine only few calls overlap
				l, err := all[0].Acquire(t.Context(), fmt.Sprint("own/", i))
				if err != nil {
					return err
				}
				return l.Release(t.Context())
			})
			return t.Failed()
		})
	})
}

// turns are statements that hold off a name's next token, as a write under the old token does.
var turns = map[sqlfence.Dialect]string{
	sqlfence.Postgres: "SELECT pg_advisory_xact_lock_shared(hashtextextended('sqlfence:%s', 0))",
	sqlfence.MySQL:    "SELECT token FROM fencing_tokens WHERE name = '%s' LOCK IN SHARE MODE",
}

// Another session has locked the turn, the lease or the token of a key. Attempts at other keys aren't delayed, and the
// key is taken as soon as possible.
func TestLeaseSharedStatementsWaitForNobody(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("SQLite locks the file")
		}
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		leases := harness.NewLeases(t, db)
		const n = 20
		key := func(i int) string { return fmt.Sprint("k/", i) }
		together(t, n, func(i int) error {
			l, err := leases.Acquire(t.Context(), key(i))
			if err != nil {
				return err
			}
			return l.Release(t.Context())
		})
		tx := begin(t, db)
		for _, lock := range []string{
			fmt.Sprintf(turns[b.Dialect], key(5)),
			`SELECT "key" FROM fencing_leases WHERE "key" = '` + key(6) + "' FOR UPDATE",
			"SELECT name FROM fencing_tokens WHERE name = '" + key(7) + "' FOR UPDATE",
		} {
			if _, err := tx.Exec(lock); err != nil {
				t.Fatal(err)
			}
		}
		locked := func(i int) bool { return i >= 5 && i <= 7 }
		all := make([]*lease.Lease, n)
		var waiting sync.WaitGroup
		take := func(i int) (err error) {
			all[i], err = leases.Acquire(t.Context(), key(i), lease.Timeout(harness.Patience))
			return err
		}
		var free sync.WaitGroup
		for i := range n {
			group := &free
			if locked(i) {
				group = &waiting
			}
			group.Go(func() {
				if err := take(i); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		free.Wait() // otherwise the test would hang
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		for i, l := range all {
			if l == nil || l.Token().Value != 2 {
				t.Errorf("%d: %v", i, l)
			}
		}
	})
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Acquire commits with synchronous_commit = on, whatever the session's setting is; Release uses the session's setting.
// Each writes no more WAL records than needed: one for each locked or written row, and one for each index entry.
func TestLeaseWrites(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Name != "pgx" {
			t.Skip("pgx's statements can be sent again as they are")
		}
		dsn := b.DSN(t)
		counted, c := b.Counted(t, dsn)
		leases := harness.NewLeases(t, counted)
		db := b.Raw(t, dsn)
		const n = 24
		all := make([]*lease.Lease, n)
		acquire := func(i int) (err error) { all[i], err = leases.Acquire(t.Context(), fmt.Sprint("k/", i)); return err }
		release := func(i int) error { return all[i].Release(t.Context()) }
		var takes, releases []string
		harness.Eventually(t, "one text of a caller's own and a shared one of each", func() bool {
			together(t, n, acquire)
			together(t, n, release)
			takes, releases = texts(c, "INSERT INTO fencing_leases"), texts(c, "UPDATE fencing_leases")
			return len(takes) >= 2 && len(releases) >= 2
		})
		if len(takes) != 2 || len(releases) != 2 {
			t.Fatalf("%d and %d texts, want one of a caller's own and a shared one of each", len(takes), len(releases))
		}
		for _, text := range takes {
			if got := commits(t, db, "off", text, `'[{"key": "k/1", "lock_id": "x", "holder": "", "ttl": 1000000}]'`, `'k/1', 'x', '', 1000000, NULL, false`); got.synchronous != "on" || got.records > 7 {
				t.Errorf("%d records, and synchronous_commit = %s: %s", got.records, got.synchronous, text)
			}
		}
		held := "UPDATE fencing_leases SET lock_id = $1, expires_at = clock_timestamp() + interval '1 hour' WHERE key = 'k/1'"
		harness.MustExec(t, db, held, "z")
		for _, text := range takes { // an attempt at a held lease writes nothing
			if got := commits(t, db, "on", text, `'[{"key": "k/1", "lock_id": "x", "holder": "", "ttl": 1000000}]'`, `'k/1', 'x', '', 1000000, NULL, false`); got.records > 0 {
				t.Errorf("%d records for a lease that is held: %s", got.records, text)
			}
		}
		harness.MustExec(t, db, held, "x")
		for _, text := range releases {
			if got := commits(t, db, "on", text, `'[{"lock_id": "x", "release": "y"}]'`, `'x', 'y'`); got.synchronous != "on" || got.records > 5 {
				t.Errorf("%d records, and synchronous_commit = %s: %s", got.records, got.synchronous, text)
			}
		}
	})
}

// texts returns the distinct statements that contain part.
func texts(c *harness.Counter, part string) (found []string) {
	seen := make(map[string]bool)
	for _, text := range c.Texts() {
		if strings.Contains(text, part) && !strings.HasPrefix(text, "EXPLAIN") && !seen[text] {
			seen[text] = true
			found = append(found, text)
		}
	}
	return found
}

type written struct {
	synchronous string
	records     int
}

// commits executes a statement with constants as arguments, the JSON arguments if the statement is shared, and undoes
// its effect.
func commits(t *testing.T, db *sql.DB, before, text, shared, own string) (w written) {
	t.Helper()
	args := own
	if strings.Contains(text, "json_to_recordset") {
		args = shared
	}
	tx := begin(t, db)
	defer tx.Rollback()
	for _, s := range []string{"SET LOCAL synchronous_commit = " + before, "PREPARE lease_writes AS " + text} {
		if _, err := tx.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := tx.Query("EXPLAIN (ANALYZE, WAL, TIMING off, COSTS off) EXECUTE lease_writes(" + args + ")")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		var records int
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "WAL: records=%d", &records); n == 1 {
			w.records = max(w.records, records)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SHOW synchronous_commit").Scan(&w.synchronous); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("DEALLOCATE lease_writes"); err != nil {
		t.Fatal(err)
	}
	return w
}
