package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The tests of this file add the column while writers write.

// A crowd is a group of writers to books. Each writer has separate rows.
type crowd struct {
	stop    context.CancelFunc
	done    sync.WaitGroup
	writes  atomic.Int64
	longest atomic.Int64 // the slowest write in ns
	mu      sync.Mutex
	errs    []error
}

// writers starts a crowd on a table with this many rows. Each writer sends UPDATE, INSERT and DELETE.
func writers(t testing.TB, b harness.Base, db *sql.DB, number, rows int) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &crowd{stop: stop}
	queries := []string{
		"UPDATE books SET price = price + 1 WHERE id = $1",
		"INSERT INTO books (id, price) VALUES (1000000000 + $1, 1)",
		"DELETE FROM books WHERE id = 1000000000 + $1",
	}
	if b.Dialect == sqlfence.MySQL {
		queries = []string{
			"UPDATE books SET price = price + 1 WHERE id = ?",
			"INSERT INTO books (id, price) VALUES (1000000000 + ?, 1)",
			"DELETE FROM books WHERE id = 1000000000 + ?",
		}
	}
	for w := range number {
		c.done.Add(1)
		go func() {
			defer c.done.Done()
			for i := 0; ctx.Err() == nil; i++ {
				for _, query := range queries {
					start := time.Now()
					_, err := db.Exec(query, 1+(i*number+w)%rows)
					c.saw(time.Since(start), err)
				}
			}
		}()
	}
	t.Cleanup(func() { c.end() })
	return c
}

func (c *crowd) saw(took time.Duration, err error) {
	c.writes.Add(1)
	for old := c.longest.Load(); int64(took) > old && !c.longest.CompareAndSwap(old, int64(took)); old = c.longest.Load() {
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs = append(c.errs, err)
	}
}

// end stops the writers and returns their errors.
func (c *crowd) end() []error {
	c.stop()
	c.done.Wait()
	return c.errs
}

// goesOn waits until the writers have written some more.
func (c *crowd) goesOn(t testing.TB) {
	t.Helper()
	more := c.writes.Load() + 200
	harness.Eventually(t, "the writers go on", func() bool { return c.writes.Load() >= more })
}

// fill creates books with rows.
func fill(t testing.TB, b harness.Base, db *sql.DB, rows int) {
	t.Helper()
	harness.MustExec(t, db, "CREATE TABLE books (id bigint PRIMARY KEY, title varchar(100), price bigint)")
	if b.Dialect == sqlfence.Postgres {
		harness.MustExec(t, db, fmt.Sprintf("INSERT INTO books SELECT n, 'The title of a book, number ' || n, 10 FROM generate_series(1, %d) AS n", rows))
		return
	}
	harness.MustExec(t, db, fmt.Sprintf(`INSERT INTO books (id, title, price)
		WITH RECURSIVE d AS (SELECT 0 AS d UNION ALL SELECT d + 1 FROM d WHERE d < 999), n AS (SELECT a.d + 1000 * b.d + 1 AS n FROM d AS a, d AS b)
		SELECT n, CONCAT('The title of a book, number ', n), 10 FROM n WHERE n <= %d`, rows))
}

// servers runs test for the databases that have a server.
func servers(t *testing.T, test func(t *testing.T, b harness.Base)) {
	t.Helper()
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.SQLite {
			t.Skip("its one writer waits for the file by its busy timeout")
		}
		test(t, b)
	})
}

// While AddFence adds the column, no write fails, and the server doesn't rewrite the table's rows.
func TestAddFenceLive(t *testing.T) {
	servers(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		fill(t, b, plain, 10_000)
		before := stored(t, b, plain)
		crowd := writers(t, b, b.Raw(t, source), 4, 10_000)
		crowd.goesOn(t)
		if err := schema.AddFence(t.Context(), plain, "books", "fence_token"); err != nil {
			t.Error(err)
		}
		crowd.goesOn(t)
		if errs := crowd.end(); len(errs) > 0 {
			t.Errorf("%d of %d writes failed, the first with %v", len(errs), crowd.writes.Load(), errs[0])
		}
		if after := stored(t, b, plain); after != before {
			t.Errorf("the rows were in %s, now they are in %s", before, after)
		}
		var wrong int
		if err := plain.QueryRow("SELECT count(*) FROM books WHERE fence_token IS NULL OR fence_token <> 0").Scan(&wrong); err != nil || wrong > 0 {
			t.Errorf("%d rows have another mark than 0, %v", wrong, err)
		}
	})
}

// stored returns the file or number of the table, which changes when the server rewrites all rows.
func stored(t *testing.T, b harness.Base, db *sql.DB) (place string) {
	t.Helper()
	query := "SELECT relfilenode FROM pg_class WHERE oid = to_regclass('books')"
	if b.Dialect == sqlfence.MySQL {
		// A copied table has a new number.
		query = "SELECT table_id FROM information_schema.innodb_sys_tables WHERE name = CONCAT(DATABASE(), '/books')"
		if _, err := db.Exec(query); err != nil { // MySQL names this table innodb_tables
			query = "SELECT table_id FROM information_schema.innodb_tables WHERE name = CONCAT(DATABASE(), '/books')"
		}
	}
	if err := db.QueryRow(query).Scan(&place); err != nil {
		t.Fatal(err)
	}
	return place
}

// AddFence gives up and tries again while a transaction has the table open. Between the tries the writers write.
func TestAddFenceGivesWay(t *testing.T) {
	servers(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		fill(t, b, plain, 1000)
		tx := harness.Begin(context.Background(), t, plain, sql.LevelDefault)
		if _, err := tx.Exec("UPDATE books SET price = 0 WHERE id = 1000"); err != nil {
			t.Fatal(err)
		}
		crowd := writers(t, b, b.Raw(t, source), 2, 900)

		db, sent := b.Counted(t, source)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		added := make(chan error)
		go func() { added <- schema.AddFence(ctx, db, "books", "fence_token") }()
		for tries := 1; tries <= 2; tries++ {
			harness.Eventually(t, "another try", func() bool { return len(definitions(sent.Texts())) >= tries })
			crowd.goesOn(t)
		}
		cancel()
		if err := <-added; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want that of the context", err)
		}
		if _, err := tx.Exec("SELECT fence_token FROM books"); err == nil {
			t.Fatal("the column was added beside an open transaction")
		}

		go func() { added <- schema.AddFence(t.Context(), db, "books", "fence_token") }()
		harness.Eventually(t, "another try", func() bool { return len(definitions(sent.Texts())) >= 3 })
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-added; err != nil {
			t.Error(err)
		}
		crowd.goesOn(t)
		if errs := crowd.end(); len(errs) > 0 {
			t.Errorf("%d of %d writes failed, the first with %v", len(errs), crowd.writes.Load(), errs[0])
		}
	})
}

// definitions returns the statements that add a column.
func definitions(texts []string) (found []string) {
	for _, text := range texts {
		if text[0] == 'D' || text[0] == 'A' {
			found = append(found, text)
		}
	}
	return found
}

// AddFence waits for a VACUUM that runs for hours. Meanwhile writers can write, which they couldn't while AddFence
// waited for the table's lock.
func TestAddFenceBehindVacuum(t *testing.T) {
	const waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'books'::regclass AND NOT granted AND mode = 'ShareUpdateExclusiveLock'"
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		addsBehind(t, s, "LOCK TABLE books IN SHARE UPDATE EXCLUSIVE MODE", waiting, func(db *sql.DB) error { // VACUUM's
			return schema.AddFence(t.Context(), db, "books", "fence_token")
		})
	})
}

// In PostgreSQL the statement of AddFenceSQL tries again by itself.
func TestAddFenceSQLTriesAgain(t *testing.T) {
	const pausing = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND starts_with(query, 'DO ') AND datname = current_database()"
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		texts, err := schema.AddFenceSQL(s.Dialect, "books", "fence_token")
		if err != nil {
			t.Fatal(err)
		}
		addsBehind(t, s, "SELECT FROM books", pausing, func(db *sql.DB) error {
			_, err := db.Exec(texts[0])
			return err
		})
	})
}

// addsBehind runs add during a transaction that has executed lock, until the query waits counts one waiting session.
// Writers write meanwhile. When the transaction ends, add must succeed.
func addsBehind(t *testing.T, s harness.Setting, lock, waits string, add func(db *sql.DB) error) {
	t.Helper()
	source := s.DSN(t)
	plain := s.Raw(t, source)
	fill(t, s.Base, plain, 1000)
	tx := harness.Begin(context.Background(), t, plain, sql.LevelDefault)
	if _, err := tx.Exec(lock); err != nil {
		t.Fatal(err)
	}
	adder := s.Raw(t, s.AtLevel(t, source, s.Level))
	adding := harness.Go(func() error { return add(adder) })
	harness.Eventually(t, "it waits", func() bool {
		var n int
		if err := plain.QueryRow(waits).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	crowd := writers(t, s.Base, s.Raw(t, source), 2, 900)
	crowd.goesOn(t)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := adding.Wait(); err != nil {
		t.Error(err)
	}
}

// A partitioned table gets the column in all partitions.
func TestAddFencePartitions(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		plain := s.Raw(t, s.AtLevel(t, s.DSN(t), s.Level))
		for _, query := range []string{
			"CREATE TABLE books (id bigint, price bigint) PARTITION BY RANGE (id)",
			"CREATE TABLE books_1 PARTITION OF books FOR VALUES FROM (1) TO (100)",
			"CREATE TABLE articles (id bigint)",
			"CREATE TABLE papers () INHERITS (articles)",
		} {
			harness.MustExec(t, plain, query)
		}
		for _, name := range []string{"books", "articles", "papers", "books_1"} {
			if err := schema.AddFence(t.Context(), plain, name, "fence_token"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		harness.MustExec(t, plain, "INSERT INTO books_1 (id, fence_token) VALUES (1, 2)")
		harness.MustExec(t, plain, "INSERT INTO papers (id, fence_token) VALUES (1, 2)")
		harness.MustExec(t, plain, "CREATE VIEW shelf AS SELECT id FROM books")
		if err := schema.AddFence(t.Context(), plain, "shelf", "fence_token"); err == nil {
			t.Error("a view has got a column")
		}
	})
}

// A SQLite file has one writer at a time, which may hold the file for longer than the busy timeout.
func TestAddFenceBehindWriter(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("of SQLite alone")
		}
		source := b.DSN(t)
		plain := b.Raw(t, source)
		harness.MustExec(t, plain, "CREATE TABLE books (id bigint)")
		tx := harness.Begin(context.Background(), t, plain, sql.LevelDefault)
		if _, err := tx.Exec("INSERT INTO books (id) VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		db, sent := b.Counted(t, harness.Impatient(source))
		added := make(chan error)
		go func() { added <- schema.AddFence(t.Context(), db, "books", "fence_token") }()
		harness.Eventually(t, "several tries", func() bool { return len(definitions(sent.Texts())) >= 3 })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-added; err != nil {
			t.Error(err)
		}
		harness.MustExec(t, plain, "UPDATE books SET fence_token = 1")
	})
}

// A STRICT table gets the column, too.
func TestAddFenceStrict(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("of SQLite alone")
		}
		plain := b.Raw(t, b.DSN(t))
		harness.MustExec(t, plain, "CREATE TABLE books (id integer PRIMARY KEY) STRICT")
		for range 2 {
			if err := schema.AddFence(t.Context(), plain, "books", "fence_token"); err != nil {
				t.Error(err)
			}
		}
	})
}

// If the server would have to copy the table, AddFence changes nothing.
func TestAddFenceDoesNotCopy(t *testing.T) {
	servers(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.MySQL {
			t.Skip("of MySQL alone")
		}
		plain := b.Raw(t, b.DSN(t))
		harness.MustExec(t, plain, "CREATE TABLE books (id bigint) ROW_FORMAT=COMPRESSED")
		err := schema.AddFence(t.Context(), plain, "books", "fence_token")
		if err == nil || !strings.Contains(err.Error(), "copy the table") {
			t.Errorf("err = %v", err)
		}
	})
}
