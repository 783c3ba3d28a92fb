package dqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/verify"
)

const schema = `CREATE TABLE books (id integer PRIMARY KEY, isbn text UNIQUE, price integer NOT NULL DEFAULT 0,
	fence_token integer NOT NULL DEFAULT 0, version integer NOT NULL DEFAULT 1, who text, since integer, till integer);
CREATE TABLE results (job_id integer PRIMARY KEY, price integer);
INSERT INTO books (id, isbn, fence_token, version) VALUES (1, 'a', 5, 5), (2, 'b', 5, 5), (3, 'c', 5, 5);
CREATE TABLE fencing_tokens (name text NOT NULL PRIMARY KEY, token bigint NOT NULL);
INSERT INTO fencing_tokens VALUES ('books', 5), ('books/1', 5)`

// A rule is a registration of books. refused is the error of a write under the stale context.
type rule struct {
	rules        []sqlfence.Rule
	fresh, stale func(ctx context.Context) context.Context
	refused      error
	lacks        []string // kinds of statement that the rule refuses on every SQLite
}

func tokenOf(value int64) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return holding(ctx, value) }
}

func rowToken(value int64) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context {
		return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/1", Value: value})
	}
}

func serial(value int64) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return sqlfence.WithSerial(ctx, value) }
}

func editor(name string) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return sqlfence.WithEditor(ctx, name) }
}

var rules = map[string]rule{
	"RowFence": {rules: []sqlfence.Rule{sqlfence.RowFence("fence_token")}, fresh: tokenOf(5), stale: tokenOf(4),
		refused: sqlfence.ErrStale},
	"RowFence and Key": {rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
		fresh: rowToken(5), stale: rowToken(4), refused: sqlfence.ErrStale},
	"Ledger": {rules: []sqlfence.Rule{sqlfence.Ledger()}, fresh: tokenOf(5), stale: tokenOf(4),
		refused: sqlfence.ErrStale},
	"Ledger and Key": {rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}, fresh: rowToken(5),
		stale: rowToken(4), refused: sqlfence.ErrStale, lacks: []string{"replace"}},
	"RowFence and Ledger": {rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
		fresh: tokenOf(5), stale: tokenOf(4), refused: sqlfence.ErrStale},
	"Claim": {rules: []sqlfence.Rule{sqlfence.Claim("version"), sqlfence.Key("id")}, fresh: rowToken(5),
		stale: rowToken(4), refused: sqlfence.ErrStale, lacks: []string{"replace"}},
	"Serial": {rules: []sqlfence.Rule{sqlfence.Serial("version")}, fresh: serial(5), stale: serial(4),
		refused: sqlfence.ErrConflict, lacks: []string{"upsert", "replace"}},
	"EditLock": {rules: []sqlfence.Rule{sqlfence.EditLock("who", "since", "till")}, fresh: editor("ada"),
		stale: editor("grace"), refused: sqlfence.ErrLocked, lacks: []string{"replace"}},
}

var writes = map[string]string{
	"update":  "UPDATE books SET price = price + 1 WHERE id = 1",
	"upsert":  "INSERT INTO books (id, price) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET price = books.price + 1",
	"replace": "REPLACE INTO books (id, isbn, price) VALUES (1, 'a', 1)",
	"delete":  "DELETE FROM books WHERE id = 1",
}

// Under each rule a fresh write passes, and a stale write is refused and changes nothing. After another node has become
// the leader, the same pool repeats both.
func TestRules(t *testing.T) {
	c := ownCluster(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			connector := c.connector(t)
			plain := bare(t, connector)
			mustExecAll(t, plain, schema)
			db := fence(t, connector, sqlfence.WithTable("books", r.rules...))
			r.play(t, plain, db)
			c.handOver(t)
			awaitWrite(t, plain)
			r.play(t, plain, db)
		})
	}
}

func (r rule) play(t *testing.T, plain, db *sql.DB) {
	t.Helper()
	unchanged := func() bool {
		return number(t, plain, "SELECT count(*) FROM books WHERE id = 1 AND price = 0 AND version = 5") == 1
	}
	for kind, query := range writes {
		mustExec(t, plain, "REPLACE INTO books (id, isbn, price, fence_token, version, who, since, till) VALUES "+
			"(1, 'a', 0, 5, 5, 'ada', 1, 9000000000000)")
		refused := r.refused
		if slices.Contains(r.lacks, kind) {
			refused = sqlfence.ErrUnguardable
		}
		if err := again(func() error { return send(r.stale(t.Context()), db, query) }); !errors.Is(err, refused) {
			t.Errorf("%s: %v, want %v", kind, err, refused)
		}
		if !unchanged() {
			t.Errorf("%s: A STALE WRITE LANDED", kind)
		}
		err := db.QueryRowContext(r.fresh(t.Context()), query+" RETURNING price").Scan(new(int64))
		if !errors.Is(err, sqlfence.ErrUnguardable) || !unchanged() {
			t.Errorf("%s with RETURNING: %v", kind, err)
		}
		err = again(func() error { return inTx(r.fresh(t.Context()), db, query) })
		if refused == sqlfence.ErrUnguardable {
			if !errors.Is(err, refused) {
				t.Errorf("%s, fresh: %v", kind, err)
			}
		} else if err != nil || unchanged() {
			t.Errorf("%s, fresh: %v", kind, err)
		}
	}
}

// again repeats do while it fails because the pool's connection belongs to a former leader.
func again(do func() error) error {
	for range 10 {
		err := do()
		if err == nil || !errors.Is(err, sqlfence.ErrUnknownOutcome) && !errors.Is(err, driver.ErrBadConn) {
			return err
		}
	}
	return do()
}

func send(ctx context.Context, db execer, query string) error {
	_, err := db.ExecContext(ctx, query)
	return err
}

func inTx(ctx context.Context, db *sql.DB, query string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := send(ctx, tx, query); err != nil {
		return err
	}
	return tx.Commit()
}

// ClaimOf compares the claim in a row of another table.
func TestClaimOf(t *testing.T) {
	connector := nodes(t).connector(t)
	plain := bare(t, connector)
	mustExecAll(t, plain, schema)
	db := fence(t, connector, sqlfence.WithTable("books", sqlfence.Claim("version"), sqlfence.Key("id")),
		sqlfence.WithTable("results", sqlfence.ClaimOf("books"), sqlfence.Key("job_id")))
	const query = "INSERT INTO results (job_id, price) VALUES (1, 1) ON CONFLICT (job_id) DO UPDATE SET price = 2"
	if _, err := db.ExecContext(rowToken(4)(t.Context()), query); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("stale: %v", err)
	}
	if _, err := db.ExecContext(rowToken(5)(t.Context()), query); err != nil {
		t.Error(err)
	}
	if n := number(t, plain, "SELECT count(*) FROM results WHERE price = 1"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// Sealed is refused as on every SQLite. verify.Check reports nothing, and ATTACH fails.
func TestVerifyAndSealed(t *testing.T) {
	connector := nodes(t).connector(t)
	mustExecAll(t, bare(t, connector), schema)
	storeOf(t, bare(t, connector))
	if _, err := sqlfence.OpenDB(connector, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"),
		sqlfence.Sealed())); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("Sealed: %v", err)
	}
	db := fence(t, connector, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Error(err)
	}
	for _, f := range found {
		t.Errorf("%v", f)
	}
	if _, err := db.ExecContext(t.Context(), "ATTACH DATABASE 'other' AS other"); err == nil {
		t.Error("ATTACH succeeded")
	}
}

// Concurrent writers under different tokens write all rows. At the end every row must hold the write of the highest
// token that succeeded.
func TestConcurrentWriters(t *testing.T) {
	connector := nodes(t).connector(t)
	plain := bare(t, connector)
	mustExecAll(t, plain, schema)
	db := fence(t, connector, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	var newest atomic.Int64
	newest.Store(5)
	var writers sync.WaitGroup
	for g := range 4 {
		writers.Go(func() {
			for i := range 25 {
				value := int64(6 + 4*i + g)
				_, err := db.ExecContext(holding(t.Context(), value), "UPDATE books SET price = ?", value)
				switch {
				case err == nil:
					for at := newest.Load(); at < value && !newest.CompareAndSwap(at, value); at = newest.Load() {
					}
				case !errors.Is(err, sqlfence.ErrStale):
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if n := number(t, plain, fmt.Sprint("SELECT count(*) FROM books WHERE price = ", newest.Load())); n != 3 {
		t.Errorf("%d rows have what the newest has written", n)
	}
}
