//go:build linux

package tokens_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// fencedBooks opens the server's database with a row fence on the books.
func fencedBooks(t *testing.T, s *harness.Server, b harness.Base) *sql.DB {
	t.Helper()
	db, err := sqlfence.Open(b.DriverName, s.DSN(), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// rising fails the test if a token isn't above all tokens before it.
type rising struct{ highest int64 }

func (r *rising) add(t *testing.T, what string, token sqlfence.Token, err error) sqlfence.Token {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if token.Value <= r.highest {
		t.Errorf("%s: token %d, but %d has been given out", what, token.Value, r.highest)
	}
	r.highest = max(r.highest, token.Value)
	return token
}

// timeline is the number of tokens in each of the server's timelines.
const timeline = 10_000_000_000

// Two standbys are promoted one after the other. The second is promoted before it follows the first, so both are on
// timeline 2. Whichever is promoted first, the second one's tokens are above all of the first one's, and a holder of
// the first one's tokens is refused.
func TestG9TokensRiseWhenTwoStandbysArePromoted(t *testing.T) {
	primary, one, other := harness.NewServer(t, ""), harness.NewServer(t, ""), harness.NewServer(t, "")
	primary.Start(t)
	b := harness.Bases[1]
	var books rising
	issue := func(s *harness.Server, n int) (last sqlfence.Token) {
		db, done := s.Open(t, b)
		defer done()
		store := setupStore(t, db)
		for range n {
			token, err := store.Issue(t.Context(), "books")
			last = books.add(t, "Issue", token, err)
		}
		return last
	}
	issue(primary, 3)
	one.Follow(t, primary)
	other.Follow(t, primary)
	one.CutOff(t, primary)
	other.CutOff(t, primary)
	issue(primary, 3)
	primary.Kill(t)
	var held sqlfence.Token
	var issued string // time of the first standby's last token
	for _, s := range []*harness.Server{one, other} {
		s.Promote(t)
		if issued != "" { // ten a second would be slower; a promotion usually takes longer than this
			harness.Eventually(t, "a second after the tokens of the first one", func() bool {
				return s.Ask(t, "SELECT (clock_timestamp() > $1::timestamptz + interval '1 second')::text", issued) == "true"
			})
		}
		before := held
		if held = issue(s, 5); held.Value/timeline != 1 {
			t.Errorf("token %d, want one of timeline 2", held.Value)
		}
		if before.Value > 0 {
			db, err := sqlfence.Open(b.DriverName, s.DSN(), sqlfence.WithTable("books", sqlfence.Ledger()))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "setting up"), "CREATE TABLE books (id int, price int)"); err != nil {
				t.Fatal(err)
			}
			_, err = db.ExecContext(sqlfence.WithFence(t.Context(), before), "INSERT INTO books VALUES (1, 10)")
			harness.WantError(t, err, sqlfence.ErrStale)
		}
		issued = s.Ask(t, "SELECT clock_timestamp()::text")
		s.Kill(t)
	}
}

// Ten times, or twice in a short run, a standby is promoted that lacks the last issued tokens. Tokens that are then
// issued, by Issue and with a lease, are above all that were issued before, and the holder of a lost token is refused.
func TestG9TokensRiseAcrossPromotions(t *testing.T) {
	primary, standby := harness.NewServer(t, ""), harness.NewServer(t, "")
	primary.Start(t)
	var books, jobs rising
	rounds := int64(10)
	if testing.Short() {
		rounds = 2 // one for each driver
	}
	for round := range rounds {
		b := harness.Bases[round%2] // pq and pgx in turns
		standby.Follow(t, primary)
		db := fencedBooks(t, primary, b)
		leases := harness.NewLeases(t, db)
		store := harness.NewStore(t, db)
		if round == 0 {
			bypass := sqlfence.Bypass(t.Context(), "setting up")
			for _, query := range []string{"CREATE TABLE books (id int PRIMARY KEY, price int, fence_token bigint)", "INSERT INTO books VALUES (1, 10, 0)"} {
				if _, err := db.ExecContext(bypass, query); err != nil {
					t.Fatal(err)
				}
			}
		}
		issue := func(what string) sqlfence.Token {
			t.Helper()
			token, err := store.Issue(t.Context(), "books")
			return books.add(t, what, token, err)
		}
		acquire := func(what string) {
			t.Helper()
			l, err := leases.Acquire(t.Context(), "jobs")
			if err != nil {
				t.Fatal(err)
			}
			jobs.add(t, what, l.Token(), nil)
			harness.MustRelease(t, l)
		}
		first := issue("before")
		if round < 5 && first.Value/timeline != round || round == 0 && first.Value != 1 {
			t.Errorf("token %d on timeline %d, want one of its own", first.Value, round+1)
		}
		acquire("lease before")
		if round == 5 { // later timelines count from this one
			if _, err := store.Repair(t.Context(), 90_000_000_000); err != nil {
				t.Fatal(err)
			}
		}
		standby.CutOff(t, primary)
		var lost sqlfence.Token
		for range 4 {
			lost = issue("lost")
			acquire("lost lease")
		}
		_ = db.Close()
		primary.Kill(t)

		standby.Promote(t)
		primary, standby = standby, primary
		db = fencedBooks(t, primary, b)
		store, leases = harness.NewStore(t, db), harness.NewLeases(t, db)
		current := issue("after a promotion")
		acquire("lease after a promotion")
		for _, write := range []struct {
			token sqlfence.Token
			want  error
		}{{current, nil}, {lost, sqlfence.ErrStale}} {
			_, err := db.ExecContext(sqlfence.WithFence(context.Background(), write.token), "UPDATE books SET price = price + 1")
			if write.want == nil && err != nil {
				t.Errorf("round %d: the write with the newest token %d: %v", round, write.token.Value, err)
			} else if write.want != nil {
				harness.WantError(t, err, write.want)
			}
		}
		_ = db.Close()
		if t.Failed() {
			t.FailNow()
		}
	}
	last := rounds // timeline 11 of ten rounds
	if rounds > 5 {
		last += 4 // Repair has raised the lower bound by 4 * 10^10
	}
	if books.highest/timeline != last {
		t.Errorf("the last token is %d, want one of timeline %d", books.highest, last)
	}
}

// A backup that the server's recovery restores gets a new timeline.
func TestG9TokensRiseAcrossARestore(t *testing.T) {
	first, restored := harness.NewServer(t, ""), harness.NewServer(t, "")
	first.Start(t)
	var books rising
	issue := func(s *harness.Server) {
		db, done := s.Open(t, harness.Bases[1])
		defer done()
		token, err := setupStore(t, db).Issue(t.Context(), "books")
		books.add(t, "Issue", token, err)
	}
	issue(first)
	first.Stop(t)
	first.CopyTo(t, restored)
	first.Start(t)
	for range 5 {
		issue(first)
	}
	restored.Configure(t, "restore_command = 'false'")
	restored.Signal(t, "recovery.signal")
	restored.Start(t)
	harness.Eventually(t, "the end of the recovery", func() bool { return restored.Ask(t, "SELECT pg_is_in_recovery()::text") == "false" })
	issue(restored)

	// The blog post's table has a narrower column for tokens.
	db, done := restored.Open(t, harness.Bases[1])
	defer done()
	harness.MustExec(t, db, "DROP TABLE fencing_tokens")
	blogTable(t, harness.Bases[1], db)
	store := harness.NewStore(t, db)
	_, issueErr := store.Issue(t.Context(), "books")
	for what, err := range map[string]error{"Setup": store.Setup(t.Context()), "Issue": issueErr} {
		if err == nil || !strings.Contains(err.Error(), "make it a bigint") {
			t.Errorf("%s with a narrow column: %v", what, err)
		}
	}
}

// With synchronous_commit = off the server acknowledges a commit before it is on disk, and a crash loses the commit. A
// commit that issues a token or a lease must survive.
func TestTokensAndLeasesAreDurable(t *testing.T) {
	const conf = "synchronous_commit = off\nwal_writer_delay = 10s\nautovacuum = off"
	s := harness.NewServer(t, conf)
	s.Start(t)
	for _, b := range harness.Chosen(harness.Bases[:2]) {
		t.Run(b.Name, func(t *testing.T) {
			db, done := s.Open(t, b)
			harness.NewLeases(t, db)
			harness.MustExec(t, db, "CREATE TABLE IF NOT EXISTS books (id int PRIMARY KEY, fence_token bigint)")
			harness.MustExec(t, db, "TRUNCATE books, fencing_tokens, fencing_leases")
			harness.MustExec(t, db, "INSERT INTO books VALUES (1, 800000000000000)")
			if got := harness.IssueToken(t, harness.NewStore(t, db), "books"); got != 1 {
				t.Fatalf("first token = %d", got)
			}
			harness.MustExec(t, db, "CHECKPOINT")
			// crashed closes the connections, crashes the server and opens it again.
			crashed := func() {
				done()
				s.Kill(t)
				s.Start(t)
				db, done = s.Open(t, b)
			}
			harness.IssueToken(t, harness.NewStore(t, db), "books")
			crashed()
			if got := harness.IssueToken(t, harness.NewStore(t, db), "books"); got != 3 {
				t.Errorf("token after Issue and a crash = %d, want 3", got)
			}
			harness.MustExec(t, db, "CHECKPOINT")
			if err := harness.NewStore(t, db).Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 40}); err != nil {
				t.Fatal(err)
			}
			crashed()
			harness.WantLedger(t, db, "books=40")

			l := harness.MustAcquire(t, harness.NewLeases(t, db), "jobs", lease.TTL(time.Hour))
			crashed()
			if info, ok, err := harness.NewLeases(t, db).Lookup(t.Context(), "jobs"); !ok || info.Token != l.Token() || err != nil {
				t.Fatalf("after a crash the lease is %v, %v, %v; want %v", info, ok, err, l.Token())
			}
			harness.MustExec(t, db, "CHECKPOINT")
			until, err := harness.NewLeases(t, db).Extend(t.Context(), l.LockID(), 2*time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			crashed()
			if info, _, err := harness.NewLeases(t, db).Lookup(t.Context(), "jobs"); !info.ExpiresAt.Equal(until) || err != nil {
				t.Errorf("after a crash the lease ends at %v, %v; want %v", info.ExpiresAt, err, until)
			}

			harness.MustExec(t, db, "CHECKPOINT")
			if _, err := harness.NewStore(t, db).Repair(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
			crashed()
			harness.WantLedger(t, db, "=50", "books=50", "jobs=50")
			harness.MustExec(t, db, "CHECKPOINT")
			if n, err := harness.NewStore(t, db).Rotate(t.Context(), "books", rowMark); n != 1 || err != nil {
				t.Fatalf("Rotate = %d, %v", n, err)
			}
			crashed()
			harness.WantLedger(t, db, "=50", fmt.Sprintf("books=%d", int64(sqlfence.MaxToken+1)), "jobs=50")
			done()
		})
	}
}
