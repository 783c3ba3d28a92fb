package lease_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An attempt whose response is lost either has the lease, or returns an error and undoes the lease. The lease must
// never stay held without a holder.
func TestLeaseAcquireLosesItsAnswer(t *testing.T) {
	eachLoser(t, func(t *testing.T, d *losingDatabase) {
		harness.MustAcquire(t, d.leases, t.Name(), lease.Ephemeral()) // keeps the session open
		for name, terms := range map[string][]lease.Term{
			"plain": nil, "owner": {lease.Resume("me")}, "refresh": {lease.Resume("me"), lease.Refresh()}, "ephemeral": {lease.Ephemeral()},
		} {
			key := t.Name() + name
			for round := range 2 { // first of a new key, then of one with a row
				d.arm(d.take, nil)
				l, ok, err := d.leases.TryAcquire(t.Context(), key, append(terms, lease.Timeout(harness.Patience))...)
				switch {
				case !d.hasLost():
					t.Fatalf("%s: no answer was lost", name)
				case ok:
					if info, live, err := d.direct.LookupID(t.Context(), l.LockID()); !live || err != nil || info.Token != l.Token() || l.Err() != nil {
						t.Errorf("%s: %v, the database says %v, %v, %v", name, l.Token(), info, live, err)
					}
					if err := l.Release(t.Context()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				case err == nil:
					t.Errorf("%s: the lease isn't held by another, but by this attempt", name)
				case d.resends:
					t.Errorf("%s: %v", name, err)
				}
				passed(t, d.direct, key)
				l = harness.MustAcquire(t, d.direct, key)
				harness.WantToken(t, l, key, int64(2*round+2))
				harness.MustRelease(t, l)
			}
		}
	})
}

// A lost response to the release isn't reported as a lost lease if the lease covered the work to its end.
func TestLeaseReleaseLosesItsAnswer(t *testing.T) {
	eachLoser(t, func(t *testing.T, d *losingDatabase) {
		for name, next := range map[string]func(key string){
			"alone": nil,
			"another takes it": func(key string) {
				l := harness.MustAcquire(t, d.direct, key)
				t.Cleanup(func() { _ = l.Release(context.Background()) })
			},
		} {
			var key string
			then := func() {
				if next != nil {
					next(key)
				}
			}
			var err error
			for inTime, round := false, 0; !inTime; round++ { // or Do has given up waiting
				key = fmt.Sprint(t.Name(), name, round)
				inTime, err = do(t, d.leases, key, func(context.Context) error { d.arm(d.update, then); return nil })
			}
			if err != nil || !d.hasLost() {
				t.Errorf("%s: Do: %v, lost: %v", name, err, d.hasLost())
			}
			if next == nil {
				l := harness.MustAcquire(t, d.leases, key)
				d.arm(d.update, nil)
				if err := l.Release(t.Context()); d.resends && err != nil || errors.Is(err, lease.ErrNotHeld) || !d.hasLost() {
					t.Errorf("Release: %v", err)
				}
				passed(t, d.direct, key)
			}
		}
	})
}

func TestLeaseExtendLosesItsAnswer(t *testing.T) {
	eachLoser(t, func(t *testing.T, d *losingDatabase) {
		l := harness.MustAcquire(t, d.leases, t.Name(), lease.TTL(30*time.Minute))
		d.arm(d.update, nil)
		err := l.Extend(t.Context(), time.Hour)
		if d.resends && err != nil || errors.Is(err, lease.ErrNotHeld) || !d.hasLost() || l.Err() != nil {
			t.Fatalf("Extend: %v, then %v", err, l.Err())
		}
		info, live, err := d.direct.LookupID(t.Context(), l.LockID())
		if err != nil || !live || d.resends && !info.ExpiresAt.Equal(l.ExpiresAt()) {
			t.Errorf("the database says %v, %v, %v; the lease %v", info, live, err, l.ExpiresAt())
		}
		harness.MustRelease(t, l)

		err = d.leases.Do(t.Context(), t.Name()+"/Do", func(ctx context.Context) error {
			d.arm(d.update, nil) // a heartbeat's
			harness.Eventually(t, "a lost heartbeat", d.hasLost)
			return fmt.Errorf("%w", ctx.Err())
		}, lease.Heartbeat(100*time.Millisecond))
		if errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Do: %v", err)
		}
	})
}

// cancelRequest is the code of the message by which pgx would stop the statement.
const cancelRequest = 80877102

// An attempt may lose its connection while waiting on the server for transactions that wrote under the old token. If
// lib/pq sends the attempt again, both sends count as one attempt. Otherwise a lease that the lost attempt takes later
// is undone.
func TestLeaseAcquireIsCutOffWhileItWaits(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh, direct := leaseShop(t, s, sqlfence.Ledger())
		source, cut := cuttable(t, sh.Source+"&application_name=again")
		leases := harness.NewLeases(t, s.Raw(t, source))
		waiting := func(n int) func() bool {
			return func() (all bool) {
				const query = "SELECT count(*) >= $1 FROM pg_stat_activity WHERE application_name = 'again' AND wait_event_type = 'Lock'"
				if err := sh.Plain.QueryRow(query, n).Scan(&all); err != nil {
					t.Fatal(err)
				}
				return all
			}
		}
		for key, terms := range map[string][]lease.Term{"new": nil, "old": nil, "mine": {lease.Resume("me")}} {
			if key != "new" {
				harness.MustRelease(t, harness.MustAcquire(t, direct, key))
			}
			writer := harness.Begin(context.Background(), t, sh.Plain, sql.LevelDefault)
			if _, err := writer.Exec("SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))", "sqlfence:"+key); err != nil {
				t.Fatal(err)
			}
			var l *lease.Lease
			var ok bool
			acquiring := harness.Go(func() (err error) {
				l, ok, err = leases.TryAcquire(t.Context(), key, append(terms, lease.Timeout(harness.Patience))...)
				return err
			})
			harness.Eventually(t, "an attempt that waits", waiting(1))
			cut()
			if s.IsPgx() {
				undone(t, sh.Plain, "again")
			} else {
				harness.Eventually(t, "the same attempt beside it", waiting(2))
			}
			if err := writer.Commit(); err != nil {
				t.Fatal(err)
			}
			err := acquiring.Wait()
			if s.IsPgx() {
				if ok || err == nil {
					t.Errorf("%s: TryAcquire: %v, %v", key, ok, err)
				}
				harness.Eventually(t, "the end of the attempt, and of what it has taken", func() bool {
					var busy bool
					const query = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'again' AND state <> 'idle'"
					if err := sh.Plain.QueryRow(query).Scan(&busy); err != nil {
						t.Fatal(err)
					}
					locked, err := direct.IsLocked(t.Context(), key)
					return !busy && !locked && err == nil
				})
				continue
			}
			if !ok || err != nil {
				t.Fatalf("%s: TryAcquire: %v, %v", key, ok, err)
			}
			if info, live, err := direct.LookupID(t.Context(), l.LockID()); !live || err != nil || info.Token != l.Token() {
				t.Errorf("%s: %v, the database says %v, %v, %v", key, l.Token(), info, live, err)
			}
			harness.MustRelease(t, l)
		}
	})
}

// undone waits until the database has responded to the attempt's undo. It fails the test if the undo waits for a lock,
// because writers would queue behind it.
func undone(t *testing.T, plain *sql.DB, application string) {
	t.Helper()
	const query = `SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) FILTER (WHERE state = 'idle')
		FROM pg_stat_activity WHERE application_name = $1 AND strpos(query, 'SELECT $1::pg_catalog.text, '''', 0,') > 0`
	harness.Eventually(t, "the attempt's undoing", func() bool {
		var waits, answered int
		if err := plain.QueryRow(query, application).Scan(&waits, &answered); err != nil {
			t.Fatal(err)
		}
		if waits > 0 {
			t.Fatal("the undoing of an attempt waits for a lock")
		}
		return answered > 0
	})
}

// The undo of an attempt doesn't block writers. It completes while a transaction is open that has written under the
// name's token, and the next writer isn't blocked.
func TestUndoingStandsBeforeNoWriter(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		if !s.IsPgx() {
			t.Skip("lib/pq has the server's answer that the attempt was cancelled: there is nothing to undo")
		}
		sh, direct := leaseShop(t, s, sqlfence.Ledger())
		held := harness.MustAcquire(t, direct, "books")
		harness.MustRelease(t, held)
		ctx := sqlfence.WithFence(t.Context(), held.Token())
		writer := harness.Begin(ctx, t, sh.DB, sql.LevelDefault)
		if _, err := writer.ExecContext(ctx, "UPDATE books SET price = 20 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		leases := harness.NewLeases(t, s.Raw(t, sh.Source+"&application_name=undoing"))
		if _, ok, err := leases.TryAcquire(t.Context(), "books", lease.Timeout(100*time.Millisecond)); ok || err == nil {
			t.Fatalf("TryAcquire: %v, %v", ok, err)
		}
		undone(t, sh.Plain, "undoing")
		if _, err := sh.DB.ExecContext(ctx, "INSERT INTO books (id, price) VALUES (2, 20)"); err != nil {
			t.Fatal(err)
		}
		if err := writer.Commit(); err != nil {
			t.Fatal(err)
		}
	})
}

// cuttable returns a DSN through a relay. cut closes the connections on the client's side only: the server notices
// neither the closing nor a cancel request.
func cuttable(t *testing.T, source string) (through string, cut func()) {
	var mu sync.Mutex
	var clients []net.Conn
	through = harness.Relay(t, source, func(client, server net.Conn) {
		head := make([]byte, 8)
		if _, err := io.ReadFull(client, head); err != nil || binary.BigEndian.Uint32(head[4:]) == cancelRequest {
			_ = client.Close()
			_ = server.Close()
			return
		}
		_, _ = server.Write(head)
		go func() { _, _ = io.Copy(server, client) }()
		go func() { _, _ = io.Copy(client, server) }()
		mu.Lock()
		defer mu.Unlock()
		clients = append(clients, client)
	})
	return through, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, client := range clients {
			_ = client.Close()
		}
	}
}
