package drivers

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

var rowMark = tokens.Mark{Table: "books", Column: "fence_token"}

func TestTokensRepair(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		repair := func(floor int64) {
			t.Helper()
			if err := store.Repair(ctx, floor); err != nil {
				t.Fatal(err)
			}
		}
		issueToken(t, store, "books")
		if err := store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: 90}); err != nil {
			t.Fatal(err)
		}
		for _, floor := range []int64{0, -1, sqlfence.MaxToken + 1} {
			if err := store.Repair(ctx, floor); errors.Is(err, sqlfence.ErrTokenLimit) != (floor > 0) || errors.Is(err, sqlfence.ErrInvalid) != (floor < 1) {
				t.Errorf("Repair to %d: %v", floor, err)
			}
		}
		wantRows(t, db, "books=1", "pens=90")
		repair(50)
		wantRows(t, db, "=50", "books=50", "pens=90")
		repair(10)
		wantRows(t, db, "=50", "books=50", "pens=90")
		if err := store.Ensure(ctx, "hats"); err != nil {
			t.Fatal(err)
		}
		// Names that are known, that are new, and another Store.
		for name, want := range map[string]int64{"books": 51, "pens": 91, "hats": 51, "cups": 51} {
			for i := range int64(2) {
				if got := issueToken(t, newStore(t, db), name); got != want+i {
					t.Errorf("%s = %d, want %d", name, got, want+i)
				}
			}
		}
		for key, want := range map[string]int64{"books": 53, "jobs": 51} {
			l := mustAcquire(t, newLeases(t, db), key)
			wantToken(t, l, key, want)
			mustRelease(t, l)
			wantToken(t, mustAcquire(t, newLeases(t, db), key), key, want+1)
		}
		repair(sqlfence.MaxToken - 20)
		var wg sync.WaitGroup
		results := make(chan error, 64)
		for range 64 {
			wg.Go(func() {
				_, err := store.Issue(ctx, "new")
				results <- err
			})
		}
		wg.Wait()
		close(results)
		issued := 0
		for err := range results {
			if err == nil {
				issued++
			} else if !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Error(err)
			}
		}
		if issued != 20 {
			t.Errorf("%d tokens issued, 20 were left", issued)
		}
		repair(sqlfence.MaxToken)
		if _, err := store.Issue(ctx, "newer"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Issue of a new name over the limit: %v", err)
		}
		if _, err := newLeases(t, db).Acquire(ctx, "newer"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Acquire of a new key over the limit: %v", err)
		}
	})
}

// After Repair, who holds an older token is stale where the ledger guards.
func TestTokensRepairMakesHoldersStale(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.reset(t, 8)
		if err := newStore(t, sh.db).Repair(t.Context(), 20); err != nil {
			t.Fatal(err)
		}
		_, err := forms[0].run(holding(t, 8), sh.db, rowWrites[0])
		wantStale(t, err, 8, 20)
	})
}

// Whoever has waited for Repair to end, with a name that the ledger didn't know, begins
// above its floor, also with a snapshot from before.
func TestTokensRepairHoldsForNewNames(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.shop(t)
		app := s.raw(t, sh.source)
		store, leases := newStore(t, app), newLeases(t, app)
		for floor := int64(100); floor <= 300; floor += 100 {
			// Statements that the driver has prepared take their snapshot before they
			// wait; so do those that are on their way when Repair comes.
			for i := range 4 {
				issueToken(t, store, fmt.Sprintf("warm-%d-%d", floor, i))
				mustRelease(t, mustAcquire(t, leases, fmt.Sprintf("warm lease-%d-%d", floor, i)))
			}
			tx, err := sh.plain.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("LOCK TABLE fencing_tokens IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			repaired := make(chan error, 1)
			go func() { repaired <- newStore(t, sh.plain).Repair(t.Context(), floor) }()
			waiting := func(n int) {
				t.Helper()
				eventually(t, "those who wait for the table", func() bool {
					var got int
					err := sh.plain.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'fencing_tokens'::regclass").Scan(&got)
					return err == nil && got >= n
				})
			}
			waiting(1)
			var callers sync.WaitGroup
			for i := range 2 {
				callers.Go(func() {
					token, err := store.Issue(t.Context(), fmt.Sprintf("new-%d-%d", floor, i))
					if err != nil || token.Value <= floor {
						t.Errorf("Issue of a new name = %v, %v; want one above %d", token, err, floor)
					}
				})
				callers.Go(func() {
					l, err := leases.Acquire(t.Context(), fmt.Sprintf("new lease-%d-%d", floor, i), lease.Timeout(time.Minute))
					if err != nil || l.Token().Value <= floor {
						t.Errorf("Acquire of a new key = %v, %v; want a token above %d", l, err, floor)
					}
				})
			}
			waiting(5)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			callers.Wait()
			if err := <-repaired; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A server that keeps its timeline to itself: tokens are issued all the same, and the
// log says once what that means.
func TestTokensWithoutTimelines(t *testing.T) {
	for _, test := range []struct{ name, ddl string }{
		{"no privilege", "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_walfile_name(pg_lsn) FROM PUBLIC"},
		{"no function", "ALTER FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RENAME TO pg_walfile_gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				if b.dialect != sqlfence.Postgres {
					t.Skip("SQLite has no timelines")
				}
				// Functions are a database's own, so this needs one.
				admin := b.raw(t, postgresDSN(t))
				name := "sqlfence_" + strings.ToLower(rand.Text())
				role := name + "_app"
				mustExec(t, admin, "CREATE DATABASE "+name)
				u, err := url.Parse(postgresDSN(t))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					for _, query := range []string{"DROP DATABASE " + name + " WITH (FORCE)", "DROP ROLE IF EXISTS " + role} {
						if _, err := admin.ExecContext(context.Background(), query); err != nil {
							t.Error(err)
						}
					}
				})
				u.Path = "/" + name
				owner := b.raw(t, u.String())
				for _, query := range []string{"CREATE ROLE " + role, "GRANT ALL ON SCHEMA public TO " + role, test.ddl} {
					mustExec(t, owner, query)
				}
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, nil))
				db := b.raw(t, u.String()+"&role="+role)
				store := setupStore(t, db, tokens.WithLogger(logger))
				for want := int64(1); want <= 3; want++ {
					if got := issueToken(t, store, "books"); got != want {
						t.Errorf("token = %d, want %d", got, want)
					}
				}
				if err := store.Repair(t.Context(), 50); err != nil {
					t.Fatal(err)
				}
				if got := issueToken(t, store, "books"); got != 51 {
					t.Errorf("token after Repair = %d, want 51", got)
				}
				if n := strings.Count(log.String(), "timeline"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
					t.Errorf("logged %d times, want one warning:\n%s", n, &log)
				}
				wantToken(t, mustAcquire(t, newLeases(t, db, lease.WithLogger(logger)), "jobs"), "jobs", 51)
			})
		})
	}
}

// rotating is a shop whose marks are poisoned: nobody's token writes any more.
type rotating struct {
	plain *sql.DB
	store *tokens.Store
	open  func(opts ...sqlfence.Option) *sql.DB
}

// eachRotating runs test on every base, with a Store on a bare and a fenced database.
func eachRotating(t *testing.T, test func(t *testing.T, b base, r rotating)) {
	eachBase(t, func(t *testing.T, b base) {
		for _, fenced := range []bool{false, true} {
			t.Run(fmt.Sprintf("fenced=%v", fenced), func(t *testing.T) {
				dsn := b.dsn(t)
				r := rotating{plain: b.raw(t, dsn)}
				r.open = func(opts ...sqlfence.Option) *sql.DB { return b.fenced(t, dsn, opts...) }
				db := r.plain
				if fenced {
					db = r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
				}
				r.store = setupStore(t, db)
				mustExec(t, r.plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint)")
				mustExec(t, r.plain, "INSERT INTO books VALUES (1, 10, 800000000000000), (2, 10, 800000000000000), (3, 10, 0), (4, 10, NULL)")
				test(t, b, r)
			})
		}
	})
}

func setPrices(t *testing.T, db *sql.DB, token sqlfence.Token) error {
	t.Helper()
	_, err := db.ExecContext(sqlfence.WithFence(t.Context(), token), "UPDATE books SET price = price + 1")
	return err
}

func TestTokensRotate(t *testing.T) {
	eachRotating(t, func(t *testing.T, b base, r rotating) {
		ctx := t.Context()
		rowOnly := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		both := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
		old := sqlfence.Token{Name: "books", Value: issueToken(t, r.store, "books")}
		wantError(t, setPrices(t, rowOnly, old), sqlfence.ErrStale)
		for _, name := range []string{"books/1", "books/x/y", "booksellers", "books-3"} {
			issueToken(t, r.store, name)
		}

		n, err := r.store.Rotate(ctx, "books", rowMark)
		if n != 2 || err != nil {
			t.Fatalf("Rotate = %d, %v; want 2 marks", n, err)
		}
		retired := fmt.Sprint(int64(sqlfence.MaxToken + 1))
		wantRows(t, r.plain, "books="+retired, "books-3=1", "books/1="+retired, "books/x/y="+retired, "booksellers=1")

		second := sqlfence.Resource("books-2")
		rowOnly2 := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), second))
		both2 := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger(), second))
		fresh := sqlfence.Token{Name: "books-2", Value: issueToken(t, r.store, "books-2")}
		if fresh.Value != 1 {
			t.Errorf("first token of the new name = %d", fresh.Value)
		}
		for _, db := range []*sql.DB{rowOnly2, both2} {
			if err := setPrices(t, db, fresh); err != nil {
				t.Errorf("the new name's token: %v", err)
			}
		}
		for _, value := range []int64{old.Value, 800_000_000_000_000, sqlfence.MaxToken} {
			wantError(t, setPrices(t, both, sqlfence.Token{Name: "books", Value: value}), sqlfence.ErrStale)
		}
		wantError(t, setPrices(t, both2, old), sqlfence.ErrNoFence)
		if err := setPrices(t, rowOnly2, fresh); err != nil {
			t.Errorf("the new name's token after the old one's: %v", err)
		}
		for _, name := range []string{"books", "books/1"} {
			if _, err := r.store.Issue(ctx, name); !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Errorf("Issue of the retired %s: %v", name, err)
			}
			if err := r.store.Adopt(ctx, sqlfence.Token{Name: name, Value: sqlfence.MaxToken}); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Adopt of the retired %s: %v", name, err)
			}
			if _, err := newLeases(t, r.plain).Acquire(ctx, name); !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Errorf("Acquire of the retired %s: %v", name, err)
			}
		}
		if n, err := r.store.Rotate(ctx, "books"); n != 0 || err != nil {
			t.Errorf("Rotate again = %d, %v", n, err)
		}
		if err := setPrices(t, both2, fresh); err != nil {
			t.Errorf("after Rotate again: %v", err)
		}
	})
}

// All of it or nothing, and nothing for what is no name.
func TestTokensRotateChangesNothing(t *testing.T) {
	eachRotating(t, func(t *testing.T, b base, r rotating) {
		issueToken(t, r.store, "books")
		for _, test := range []struct {
			name, rotate string
			marks        []tokens.Mark
			want         error
		}{
			{"unknown name", "bokos", []tokens.Mark{rowMark}, sqlfence.ErrUnknownName},
			{"empty name", "", []tokens.Mark{rowMark}, sqlfence.ErrInvalid},
			{"unknown table", "books", []tokens.Mark{rowMark, {Table: "bokos", Column: "fence_token"}}, nil},
			{"unknown column", "books", []tokens.Mark{rowMark, {Table: "books", Column: "fnce"}}, nil},
			{"no table", "books", []tokens.Mark{rowMark, {Column: "fence_token"}}, sqlfence.ErrInvalid},
			{"no column", "books", []tokens.Mark{rowMark, {Table: "books"}}, sqlfence.ErrInvalid},
			{"not a name", "books", []tokens.Mark{{Table: "books SET price = 0 --", Column: "fence_token"}}, sqlfence.ErrInvalid},
			{"not a column", "books", []tokens.Mark{{Table: "books", Column: "price = 0, fence_token"}}, sqlfence.ErrInvalid},
		} {
			n, err := r.store.Rotate(t.Context(), test.rotate, test.marks...)
			if n != 0 || err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%s: %d, %v; want %v", test.name, n, err, test.want)
			}
			wantRows(t, r.plain, "books=1")
			var poisoned, cheap int
			if err := r.plain.QueryRow("SELECT count(*), count(CASE WHEN price <> 10 THEN 1 END) FROM books WHERE fence_token > 1").Scan(&poisoned, &cheap); poisoned != 2 || cheap != 0 || err != nil {
				t.Errorf("%s: %d marks and %d prices left, %v", test.name, poisoned, cheap, err)
			}
		}
	})
}

// The names are read as WithTable and RowFence read them.
func TestTokensRotateQuotes(t *testing.T) {
	eachRotating(t, func(t *testing.T, b base, r rotating) {
		schema := "main"
		if b.dialect == sqlfence.Postgres {
			if err := r.plain.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
				t.Fatal(err)
			}
		}
		issueToken(t, r.store, "books")
		mustExec(t, r.plain, `CREATE TABLE "Odd ""; .books" (id integer PRIMARY KEY, "select ""mark" bigint)`)
		mustExec(t, r.plain, `INSERT INTO "Odd ""; .books" VALUES (1, 5)`)
		n, err := r.store.Rotate(t.Context(), "books",
			tokens.Mark{Table: schema + `."Odd ""; .books"`, Column: `"select ""mark"`},
			tokens.Mark{Table: "BOOKS", Column: "Fence_Token"})
		if n != 3 || err != nil {
			t.Errorf("Rotate = %d, %v; want 3 marks", n, err)
		}
	})
}

// Rotate waits for the writes under way, and no other comes in between.
func TestTokensRotateWaitsForWritesUnderWay(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for _, rule := range []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()} {
			sh := s.shop(t, rule)
			sh.reset(t, 8)
			store := newStore(t, sh.db)
			tx, err := sh.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: s.level})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if _, err := forms[0].run(holding(t, 8), tx, freshInserts[0]); err != nil {
				t.Fatal(err)
			}
			var pid int
			if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var rotated error
			go func() {
				defer close(done)
				_, rotated = store.Rotate(context.WithoutCancel(t.Context()), "books", rowMark)
			}()
			sh.wantBlocked(t, pid, done)
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			<-done
			if rotated != nil {
				t.Error(rotated)
			}
			var marks int
			if err := sh.plain.QueryRow("SELECT count(*) FROM books WHERE fence_token <> 0").Scan(&marks); marks != 0 || err != nil {
				t.Errorf("%d marks left, %v", marks, err)
			}
		}
	})
}

// Rows that the role can't see would keep their marks: it is told.
func TestTokensRotateBehindRowSecurity(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("SQLite has no row-level security")
		}
		dsn := b.dsn(t)
		owner := b.raw(t, dsn)
		setupStore(t, owner)
		role := "sqlfence_" + strings.ToLower(rand.Text())
		for _, query := range []string{
			"CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint)", "INSERT INTO books VALUES (1, 9), (2, 9)",
			"ALTER TABLE books ENABLE ROW LEVEL SECURITY", "CREATE POLICY one ON books USING (id = 1)",
			"CREATE ROLE " + role, "GRANT ALL ON books, fencing_tokens TO " + role,
			"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO " + role + "', current_schema()); END $$",
		} {
			mustExec(t, owner, query)
		}
		t.Cleanup(func() {
			for _, query := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
				if _, err := owner.ExecContext(context.Background(), query); err != nil {
					t.Error(err)
				}
			}
		})
		store := newStore(t, b.raw(t, dsn+"&role="+role))
		issueToken(t, store, "books")
		if n, err := store.Rotate(t.Context(), "books", rowMark); err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("Rotate = %d, %v", n, err)
		}
		wantRows(t, owner, "books=1")
	})
}

// Two spellings of one text are one name, wherever it is given.
func TestNamesAreNormalized(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	eachBase(t, func(t *testing.T, b base) {
		ctx := t.Context()
		dsn := b.dsn(t)
		db := b.raw(t, dsn)
		store := setupStore(t, db)
		if err := store.Ensure(ctx, decomposed); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{decomposed, composed} {
			token, err := store.Issue(ctx, name)
			if want := (sqlfence.Token{Name: composed, Value: int64(i + 1)}); token != want || err != nil {
				t.Errorf("Issue of %+q = %+q, %v; want %+q", name, token, err, want)
			}
			if current, err := store.Current(ctx, name); current != token || err != nil {
				t.Errorf("Current of %+q = %+q, %v", name, current, err)
			}
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: decomposed, Value: 8}); err != nil {
			t.Fatal(err)
		}
		wantRows(t, db, composed+"=8")
		wantToken(t, mustAcquire(t, newLeases(t, db), decomposed), composed, 9)

		mustExec(t, db, "CREATE TABLE books (id varchar(20) PRIMARY KEY, price integer, fence_token bigint)")
		mustExec(t, db, "INSERT INTO books (id, price) VALUES ('x', 1)")
		for _, name := range []string{composed, decomposed} {
			for _, resource := range []string{composed, decomposed} {
				fenced := b.fenced(t, dsn, sqlfence.WithTable("books", sqlfence.Ledger(), sqlfence.Resource(resource)))
				held := sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: 9})
				if _, err := fenced.ExecContext(held, "UPDATE books SET price = 2"); err != nil {
					t.Errorf("token %+q, resource %+q: %v", name, resource, err)
				}
			}
		}
		keyed := b.fenced(t, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
		held := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/" + decomposed, Value: 1})
		insert := "INSERT INTO books (id, price) VALUES ($1, 1)"
		if b.dialect == sqlfence.SQLite {
			insert = "INSERT INTO books (id, price) VALUES (?, 1)"
		}
		for _, send := range []func(key string) error{
			func(key string) error { _, err := keyed.ExecContext(held, insert, key); return err },
			func(key string) error {
				_, err := keyed.ExecContext(held, "INSERT INTO books (id, price) VALUES ('"+key+"', 1) ON CONFLICT (id) DO UPDATE SET price = 2")
				return err
			},
		} {
			if err := send(decomposed); !errors.Is(err, sqlfence.ErrUnguardable) || !strings.Contains(err.Error(), "NFC") {
				t.Errorf("INSERT of a key that no token can name: %v", err)
			}
			if err := send(composed); err != nil {
				t.Errorf("INSERT of a normalised key: %v", err)
			}
		}
		if _, err := store.Rotate(ctx, decomposed); err != nil {
			t.Error(err)
		}
		if rows := ledgerRows(t, db); !slices.Contains(rows, fmt.Sprintf("%s=%d", composed, int64(sqlfence.MaxToken+1))) {
			t.Errorf("rotated: %q", rows)
		}
	})
}
