package verify_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/verify"
)

// A catalogue is a fake of SQLite that answers Check's queries. It has a table, with or without a fence column.
type catalogue struct {
	*fakedb.DB
	fit   atomic.Bool                   // the table has the fence column
	asked atomic.Int64                  // how many checks have begun
	hold  atomic.Pointer[chan struct{}] // checks wait for this channel
}

func newCatalogue() *catalogue {
	c := new(catalogue)
	c.DB = fakedb.New(c.answer)
	return c
}

func (c *catalogue) answer(ctx context.Context, call fakedb.Call) (fakedb.Response, error) {
	rows := func(rows ...[]any) (fakedb.Response, error) {
		const columns = 12
		for i := range rows {
			rows[i] = append(rows[i], make([]any, columns-len(rows[i]))...)
		}
		return fakedb.Response{Columns: make([]string, columns), Rows: rows}, nil
	}
	switch query := call.Query; {
	case strings.Contains(query, "type IN ('table', 'view') AND lower(name)"):
		c.asked.Add(1)
		if hold := c.hold.Load(); hold != nil {
			select {
			case <-*hold:
			case <-ctx.Done():
				return fakedb.Response{}, ctx.Err()
			}
		}
		return rows([]any{"main", "books", "table", "CREATE TABLE books (…)"})
	case strings.Contains(query, "FROM pragma_database_list"):
		return rows([]any{"main"})
	case strings.Contains(query, "pragma_table_xinfo") && c.fit.Load():
		return rows([]any{"main.books", "fence_token", "bigint", "bigint", int64(0), "0", "", int64(0), int64(1), int64(1), int64(1)})
	}
	return rows()
}

func (c *catalogue) open(t *testing.T, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	opts = append([]sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", sqlfence.RowFence("fence_token"))}, opts...)
	db, err := sqlfence.OpenDB(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// connect opens a new connection.
func connect(t *testing.T, db *sql.DB) error {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return err
}

func TestOnConnectRefusesUntilRepaired(t *testing.T) {
	c := newCatalogue()
	db := c.open(t, verify.OnConnect())
	for range 2 { // each connection looks again
		err := connect(t, db)
		var refused *verify.Error
		if !errors.As(err, &refused) || !errors.Is(err, sqlfence.ErrNotSetUp) || refused.Temporary() {
			t.Fatalf("%v, want a verify.Error, which is ErrNotSetUp and lasts", err)
		}
		if len(refused.Findings) != 1 || refused.Findings[0].Code != "missing-column" || !strings.Contains(err.Error(), refused.Findings[0].String()) || !strings.Contains(err.Error(), "WithoutGuards") {
			t.Errorf("found %v, error %q", refused.Findings, err)
		}
		if found, err := verify.Check(t.Context(), db); err != nil || len(found) != 1 {
			t.Errorf("Check: %v, %v; want what has refused the connection", found, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "SELECT 1"); !errors.Is(err, sqlfence.ErrNotSetUp) {
		t.Errorf("a statement runs: %v", err)
	}
	c.fit.Store(true)
	before := c.asked.Load()
	for range 3 {
		if err := connect(t, db); err != nil {
			t.Fatal(err)
		}
		c.fit.Store(false) // later connections don't check
	}
	if n := c.asked.Load() - before; n != 1 {
		t.Errorf("looked %d times, want once", n)
	}
}

// Connections that begin at the same time share one check and the check's result.
func TestConcurrentConnectionsLookOnce(t *testing.T) {
	for _, fit := range []bool{true, false} {
		c := newCatalogue()
		c.fit.Store(fit)
		hold := make(chan struct{})
		c.hold.Store(&hold)
		db := c.open(t, verify.OnConnect())
		var group sync.WaitGroup
		results := make(chan error, 20)
		for range 20 {
			group.Go(func() {
				conn, err := db.Conn(context.Background())
				if err == nil {
					defer conn.Close()
				}
				results <- err
			})
		}
		for db.Stats().OpenConnections < 20 || c.asked.Load() == 0 { // all have begun
			runtime.Gosched()
			if len(results) > 0 {
				t.Fatal(<-results)
			}
		}
		c.hold.Store(nil)
		close(hold)
		group.Wait()
		close(results)
		for err := range results {
			if fit != (err == nil) {
				t.Errorf("fit %v: %v", fit, err)
			}
		}
		// After a failed check the next connection checks again.
		if n := c.asked.Load(); fit && n != 1 || n > 3 {
			t.Errorf("fit %v: looked %d times", fit, n)
		}
	}
}

// The end of its context ends a connection's check, or its wait for another connection's check. The next connection
// checks again.
func TestDeadlineEndsTheLook(t *testing.T) {
	c := newCatalogue()
	c.fit.Store(true)
	hold := make(chan struct{})
	c.hold.Store(&hold)
	db := c.open(t, verify.OnConnect())
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 2)
	for range 2 {
		go func() { _, err := db.Conn(ctx); results <- err }()
	}
	for c.asked.Load() == 0 {
		runtime.Gosched()
	}
	cancel()
	for range 2 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
	}
	c.hold.Store(nil)
	if err := connect(t, db); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// OnConnect refuses no connection for tables that aren't enforced, nor for a ledger that package tokens will create. It
// logs these findings.
func TestOnConnectRefusesWhatIsEnforced(t *testing.T) {
	for name, opts := range map[string][]sqlfence.Option{
		"observe":   {sqlfence.WithMode(sqlfence.Observe)},
		"bypass":    {sqlfence.WithoutGuards("migration")},
		"no verify": nil,
	} {
		c := newCatalogue()
		var log bytes.Buffer
		opts = append(opts, sqlfence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if name != "no verify" {
			opts = append(opts, verify.OnConnect())
		}
		if err := connect(t, c.open(t, opts...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if asked := c.asked.Load(); asked != 0 != (name == "observe") {
			t.Errorf("%s: looked %d times", name, asked)
		}
		if logged := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "code=missing-column"); logged != (name == "observe") {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
	c := newCatalogue()
	c.fit.Store(true)
	db := c.open(t, verify.OnConnect(), sqlfence.WithTable("pens", sqlfence.RowFence("fence_token"), sqlfence.InMode(sqlfence.Observe)))
	if err := connect(t, db); err != nil {
		t.Errorf("an observed table that isn't there: %v", err)
	}
}

// opener opens connections as drivers without connectors do.
type opener struct{ *catalogue }

func (o opener) Open(string) (driver.Conn, error) { return o.Connect(context.Background()) }

// Connections that a driver opens without a connector are checked once for each data source name.
func TestOnConnectLooksOnceADataSource(t *testing.T) {
	c := newCatalogue()
	d, err := sqlfence.WrapDriver(opener{c}, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")), verify.OnConnect())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open("one"); !errors.Is(err, sqlfence.ErrNotSetUp) {
		t.Errorf("%v, want ErrNotSetUp", err)
	}
	c.fit.Store(true)
	before := c.asked.Load()
	for _, dsn := range []string{"one", "one", "two", "one"} {
		if _, err := d.Open(dsn); err != nil {
			t.Error(err)
		}
	}
	if n := c.asked.Load() - before; n != 2 {
		t.Errorf("looked %d times at two data sources", n)
	}
}

func TestCheckNeedsAFencedDatabase(t *testing.T) {
	if _, err := verify.Check(t.Context(), nil); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Error(err)
	}
	db := sql.OpenDB(newCatalogue())
	defer db.Close()
	if _, err := verify.Check(t.Context(), db); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Error(err)
	}
}

// A registration is compared with what the database has.
func ExampleCheck() {
	ctx := context.Background()
	shop := newCatalogue() // its table books has no column fence_token
	db, err := sqlfence.OpenDB(shop, sqlfence.WithDialect(sqlfence.SQLite),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	found, err := verify.Check(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range found {
		fmt.Println(f.Level, f.Code, f.Table)
		fmt.Println(f.Problem)
		fmt.Println(f.SQL)
	}
	// Output:
	// ERROR missing-column books
	// The table books has no column fence_token, or this role can't see it: the fence column of its registration.
	// ALTER TABLE `books` ADD COLUMN `fence_token` bigint NOT NULL DEFAULT 0
}

// No connection is made to a database in which a registration is wrong.
func ExampleOnConnect() {
	shop := newCatalogue() // its table books has no column fence_token
	db, err := sqlfence.OpenDB(shop, sqlfence.WithDialect(sqlfence.SQLite),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")), verify.OnConnect())
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	err = db.Ping()
	var refused *verify.Error
	if errors.As(err, &refused) {
		fmt.Println(errors.Is(err, sqlfence.ErrNotSetUp), refused.Findings[0].Code)
	}
	// Output: true missing-column
}
