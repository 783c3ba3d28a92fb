package adopting_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A keeper leads by one lease, and writes to two databases.
type keeper struct {
	election        *lease.Election
	leases          *lease.Leases
	shop, archive   *sql.DB
	archived        *tokens.Store
	mayAdopt, ready chan bool
}

func (k *keeper) open(driverName, shopDSN, archiveDSN string, terms ...lease.Term) (err error) {
	k.election, err = lease.NewElection("books", lease.Callbacks{Elected: k.work}, terms...)
	if err != nil {
		return err
	}
	// Both databases take their tokens from the same election.
	books := sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	k.shop, err = sqlfence.Open(driverName, shopDSN, books, sqlfence.WithTokenSource(k.election.Tokens))
	if err != nil {
		return err
	}
	k.archive, err = sqlfence.Open(driverName, archiveDSN, books, sqlfence.WithTokenSource(k.election.Tokens))
	if err != nil {
		return err
	}
	// The lease is in the shop's database, and its token is issued there.
	k.leases, err = lease.New(k.shop)
	if err != nil {
		return err
	}
	k.archived, err = tokens.New(k.archive)
	return err
}

// work adopts the token in the second database's ledger before anything is written there.
func (k *keeper) work(ctx context.Context) {
	<-k.mayAdopt
	token, _ := sqlfence.FenceFrom(ctx, "books")
	if err := k.archived.Adopt(ctx, token); err != nil {
		log.Print(err)
		k.election.Resign()
		return
	}
	close(k.ready)
	<-ctx.Done() // the leader's work would run until here
}

func startKeeper(t *testing.T, b harness.Base, shop, archive *harness.Shop) *keeper {
	t.Helper()
	k := &keeper{mayAdopt: make(chan bool, 1), ready: make(chan bool)}
	if err := k.open(b.DriverName, shop.Source, archive.Source, lease.TTL(time.Hour), lease.Interval(20*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	k.shop, k.archive = b.Translated(t, k.shop, shop.Source), b.Translated(t, k.archive, archive.Source)
	if err := errors.Join(k.leases.Setup(t.Context()), k.archived.Setup(t.Context())); err != nil {
		t.Fatal(err)
	}
	run(t, k.election, k.leases)
	return k
}

// setPrice writes to both databases, and returns the error of each.
func (k *keeper) setPrice(price int) (shop, archive error) {
	const query = "UPDATE books SET price = $1 WHERE id = 1"
	_, shop = k.shop.Exec(query, price)
	_, archive = k.archive.Exec(query, price)
	return shop, archive
}

// Two databases share a lease's token. Each database compares the token with the database's own ledger. The second
// ledger knows a new leader's token only after Adopt.
func TestTwoDatabases(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		shop, archive := harness.NewShop(t, b), harness.NewShop(t, b)
		for _, sh := range []*harness.Shop{shop, archive} {
			sh.Reset(t, 0)
		}
		books := func(inShop, inArchive string) {
			t.Helper()
			if got := shop.State(t, true) + "; " + archive.State(t, true); got != inShop+" 2:10@0 3:10@0; "+inArchive+" 2:10@0 3:10@0" {
				t.Errorf("the books are %s", got)
			}
		}
		first := startKeeper(t, b, shop, archive)
		harness.Eventually(t, "a leader", first.election.IsLeader)

		// Before Adopt, the second database refuses the leader's write.
		inShop, inArchive := first.setPrice(20)
		if inShop != nil {
			t.Error(inShop)
		}
		harness.WantError(t, inArchive, sqlfence.ErrNotIssued)
		books("1:20@1", "1:10@0")
		first.mayAdopt <- true
		<-first.ready
		if inShop, inArchive = first.setPrice(30); inShop != nil || inArchive != nil {
			t.Error(inShop, inArchive)
		}
		books("1:30@1", "1:30@1")

		second := startKeeper(t, b, shop, archive)
		inShop, inArchive = second.setPrice(40)
		harness.WantError(t, inShop, lease.ErrNotLeader)
		harness.WantError(t, inArchive, lease.ErrNotLeader)
		depose(t, harness.NewLeases(t, shop.Plain), first.election)
		harness.Eventually(t, "the next leader", second.election.IsLeader)

		// Until the next leader has adopted its token in the archive, the archive accepts the previous leader's late
		// write.
		inShop, inArchive = first.setPrice(50)
		harness.WantStale(t, inShop, 1, 2)
		if inArchive != nil {
			t.Error(inArchive)
		}
		books("1:30@1", "1:50@1")
		second.mayAdopt <- true
		<-second.ready
		inShop, inArchive = first.setPrice(60)
		harness.WantStale(t, inShop, 1, 2)
		harness.WantStale(t, inArchive, 1, 2)
		books("1:30@1", "1:50@1")
		if inShop, inArchive = second.setPrice(70); inShop != nil || inArchive != nil {
			t.Error(inShop, inArchive)
		}
		books("1:70@2", "1:70@2")
		harness.WantError(t, first.archived.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 1}), sqlfence.ErrStale)
	})
}

// Two pools on the same database share a ledger, so Adopt isn't needed.
func TestTwoPools(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 0)
		pools := func(p *program) (all []*program) {
			second := *p
			second.db = b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger()), sqlfence.WithTokenSource(p.election.Tokens))
			return []*program{p, &second}
		}
		first, _ := start(t, b, sh.Source)
		harness.Eventually(t, "a leader", first.election.IsLeader)
		second, _ := start(t, b, sh.Source)
		leader, next := pools(first), pools(second)
		for i := range leader {
			if err := leader[i].setPrice(1, 20+i); err != nil {
				t.Errorf("pool %d: %v", i, err)
			}
			harness.WantError(t, next[i].setPrice(1, 30), lease.ErrNotLeader)
		}
		depose(t, harness.NewLeases(t, sh.Plain), first.election)
		harness.Eventually(t, "the next leader", second.election.IsLeader)
		for i := range leader {
			harness.WantError(t, leader[i].setPrice(1, 40), sqlfence.ErrStale)
			if err := next[i].setPrice(1, 50+i); err != nil {
				t.Errorf("pool %d: %v", i, err)
			}
		}
		if got := sh.State(t, false); got != "1:51 2:10 3:10" {
			t.Errorf("the books are %s", got)
		}
	})
}
