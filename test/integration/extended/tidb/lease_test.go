package tidb_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An operation is a call that sends its statements one by one, each after a turn. It is the value of stepping in the
// call's context.
type operation struct {
	run     func(ctx context.Context) (won bool, err error)
	turns   int           // the number of statements in an order; further statements follow at the end
	private int           // the first statements that only read, or begin a transaction
	stopped chan struct{} // receives a value before each statement
	next    chan struct{}
	done    chan struct{}
	busy    bool // a statement was sent and hasn't returned
	other   *operation

	won bool
	err error
	at  time.Time // when it ended
}

type stepping struct{}

// A stepped driver lets operations wait for their turns. The statement that TiDB executes as WHERE FALSE has no turn.
type stepped struct{ sqlmw.NullInterceptor }

func step(ctx context.Context, text string) {
	if o, ok := ctx.Value(stepping{}).(*operation); ok && !strings.Contains(text, "/*T!") {
		o.stopped <- struct{}{}
		<-o.next
	}
}

func (s stepped) ConnBeginTx(ctx context.Context, conn driver.ConnBeginTx, opts driver.TxOptions) (context.Context, driver.Tx, error) {
	step(ctx, "")
	return s.NullInterceptor.ConnBeginTx(ctx, conn, opts)
}

func (s stepped) ConnExecContext(ctx context.Context, conn driver.ExecerContext, text string, args []driver.NamedValue) (driver.Result, error) {
	step(ctx, text)
	return s.NullInterceptor.ConnExecContext(ctx, conn, text, args)
}

func (s stepped) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, text string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	step(ctx, text)
	return s.NullInterceptor.ConnQueryContext(ctx, conn, text, args)
}

func (s stepped) TxCommit(ctx context.Context, tx driver.Tx) error {
	step(ctx, "")
	return s.NullInterceptor.TxCommit(ctx, tx)
}

// steps opens a pool with a session's variables for operations; nil if the server lacks one of the variables.
func (s session) steps(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(harness.HidingConnector{Hiding: harness.Hiding{Name: "stepped",
		Inner: sqlmw.Driver(mysql.MySQLDriver{}, stepped{})}, DSN: s.with(t, dsn)})
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Ping(); number(err) == unknownVariable {
		return nil
	} else if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return db
}

func (o *operation) start(t *testing.T, other *operation) {
	o.stopped, o.next, o.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	o.busy, o.other = true, other
	ctx := context.WithValue(t.Context(), stepping{}, o)
	go func() {
		defer close(o.done)
		o.won, o.err = o.run(ctx)
		o.at = time.Now()
	}()
}

// poll notes whether the operation's statement returns soon, so that the operation has stopped or ended.
func (o *operation) poll() {
	select {
	case <-o.stopped:
		o.busy = false
	case <-o.done:
		o.busy = false
	case <-time.After(time.Millisecond):
	}
}

func (o *operation) ended() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// await returns true once the operation has stopped before a statement or has ended, or false once the server reports
// that the operation's statement waits.
func (o *operation) await(t *testing.T, plain *sql.DB) bool {
	t.Helper()
	for o.poll(); o.busy; o.poll() {
		if o.other.busy {
			o.other.poll()
		} else if waiting(t, plain) {
			return false
		}
	}
	return true
}

// turn lets the operation send a statement, unless the operation has ended or waits.
func (o *operation) turn(t *testing.T, plain *sql.DB) (waited bool) {
	t.Helper()
	if !o.await(t, plain) {
		return true
	}
	if o.ended() {
		return false
	}
	o.next <- struct{}{}
	o.busy = true
	return !o.await(t, plain)
}

// play executes the operations o and n in an order, and then the rest of both. The function between, if not nil, is
// called before the turn number at.
func play(t *testing.T, plain *sql.DB, order string, at int, between func(), o, n *operation) (waited bool) {
	t.Helper()
	both := map[byte]*operation{'o': o, 'n': n}
	o.start(t, n)
	o.await(t, plain)
	n.start(t, o)
	n.await(t, plain)
	for i := range len(order) {
		if i == at && between != nil {
			between()
		}
		waited = both[order[i]].turn(t, plain) || waited
	}
	for !o.ended() || !n.ended() {
		o.turn(t, plain)
		n.turn(t, plain)
	}
	return waited
}

// distinct reports whether an order of the statements of o and n may have another effect than each order that comes
// before it. A private statement can change places with every statement of the other operation but the last one, which
// is the COMMIT. pinned: n's first statement depends on the time, and can't change places.
func distinct(order string, o, n *operation, pinned bool) bool {
	sent := map[byte]int{}
	both := map[byte]*operation{'o': o, 'n': n}
	for i := range len(order) {
		mine := sent[order[i]]
		sent[order[i]]++
		if i == 0 || order[i-1] == order[i] || mine >= both[order[i]].private || pinned && order[i] == 'n' && mine == 0 {
			continue
		}
		last := sent[order[i-1]] - 1
		commits := last == both[order[i-1]].turns-1
		bothPrivate := order[i] == 'n' && last < o.private
		if !commits && !bothPrivate {
			return false
		}
	}
	return true
}

// A leaseRow is the key's row after two operations.
type leaseRow struct {
	lockID        sql.NullString
	token, newest int64
	live          bool
}

const nowMicros = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

func readLease(t *testing.T, db *sql.DB) (r leaseRow) {
	t.Helper()
	err := db.QueryRow("SELECT l.lock_id, l.token, t.token, COALESCE(l.lock_id IS NOT NULL AND l.expires_at > "+nowMicros+
		", FALSE) FROM fencing_leases l JOIN fencing_tokens t ON t.name = l.`key`").Scan(&r.lockID, &r.token, &r.newest, &r.live)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const heldID = "0123456789012345678901"

// resetLease stores a lease with token 7 that ends at a time in µs from now; free if the time is 0.
func resetLease(t *testing.T, db *sql.DB, ends time.Duration) {
	t.Helper()
	exec(t, db, "REPLACE INTO fencing_tokens VALUES ('jobs', 7)")
	id := sql.NullString{String: heldID, Valid: ends != 0}
	exec(t, db, "REPLACE INTO fencing_leases (`key`, lock_id, holder, token, acquired_at, expires_at) "+
		"VALUES ('jobs', ?, 'x', 7, 1, "+nowMicros+" + ?)", id, ends.Microseconds())
}

// blindTake takes the lease as package lease does, but relies on LAST_INSERT_ID without counting the changed rows.
func blindTake(ctx context.Context, db *sql.DB, id string) (won bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	r, err := tx.ExecContext(ctx, "UPDATE fencing_leases SET lock_id = '"+id+"', token = token + 1, acquired_at = LAST_INSERT_ID("+
		nowMicros+"), expires_at = "+nowMicros+" + 3600000000 WHERE `key` = 'jobs' AND (lock_id IS NULL OR expires_at <= "+nowMicros+")")
	if err != nil {
		return false, err
	}
	at, err := r.LastInsertId()
	if err == nil && at > 0 {
		err = tx.Commit()
	}
	return err == nil && at > 0, err
}

// In every order of the statements of two calls, at most one holder has the lease: of two attempts one succeeds, a lease
// isn't extended after another attempt has taken it, and a released lease isn't live. Of orders that differ only in the
// place of private statements, one is executed.
func TestLeasesInEveryOrder(t *testing.T) {
	dsn, plain := setup(t)
	harness.NewLeases(t, plain)
	orderCount, waits, twice, extended := 0, 0, 0, 0
	for i, s := range slices.Concat(sessions, others, uncommitted) {
		if testing.Short() && i >= len(sessions) {
			break
		}
		db := s.steps(t, dsn)
		if db == nil {
			t.Logf("%s: not on this server", s.name)
			continue
		}
		leases := func() *lease.Leases {
			leases, err := lease.New(db, lease.WithDialect(sqlfence.MySQL))
			if err != nil {
				t.Fatal(err)
			}
			return leases
		}
		of := [2]*lease.Leases{leases(), leases()}
		take := func(i int) *operation {
			return &operation{turns: 5, private: 2, run: func(ctx context.Context) (bool, error) {
				_, ok, err := of[i].TryAcquire(ctx, "jobs", lease.TTL(time.Hour), lease.Timeout(harness.Patience))
				return ok, err
			}}
		}
		extend := func() *operation {
			return &operation{turns: 5, private: 1, run: func(ctx context.Context) (bool, error) {
				_, err := of[0].Extend(ctx, heldID, time.Hour)
				return err == nil, notHeld(err)
			}}
		}
		release := func() *operation {
			return &operation{turns: 5, private: 1, run: func(ctx context.Context) (bool, error) {
				err := of[1].Release(ctx, heldID)
				return err == nil, notHeld(err)
			}}
		}
		blind := func(i int) *operation {
			return &operation{turns: 3, private: 1, run: func(ctx context.Context) (bool, error) {
				won, err := blindTake(ctx, db, fmt.Sprint("blind", i))
				if gaveUp(err) {
					err = nil
				}
				return won, err
			}}
		}
		ended := func() {
			harness.Eventually(t, "the lease ends", func() bool { return !readLease(t, plain).live })
		}
		const alike = "two attempts at an ended lease"
		each := func(what string, ends time.Duration, between func(), a, b func() *operation, judge func(a, b *operation, r leaseRow) string) {
			for _, order := range orders(a().turns, b().turns) {
				if !distinct(order, a(), b(), between != nil) || what == alike && order[0] == 'n' {
					continue
				}
				first := strings.IndexByte(order, 'n')
				last := first
				if first == a().turns { // the lease must end before the older operation's COMMIT
					first, last = 1, first-1
				}
				for at := last; at >= first; at-- {
					resetLease(t, plain, ends)
					older, newer := a(), b()
					orderCount++
					if play(t, plain, order, at, between, older, newer) {
						waits++
					}
					if between != nil && older.won {
						extended++
					}
					r := readLease(t, plain)
					if wrong := judge(older, newer, r); wrong != "" || older.err != nil || newer.err != nil {
						t.Fatalf("%s: %s in order %s, with the end before step %d: %s: %v %v, %v %v, %+v", s.name, what, order, at,
							cmp.Or(wrong, "an error"), older.won, older.err, newer.won, newer.err, r)
					}
					if between == nil {
						break
					}
				}
			}
		}
		each(alike, -time.Hour, nil, func() *operation { return take(0) }, func() *operation { return take(1) },
			func(a, b *operation, r leaseRow) string {
				if a.won == b.won || !r.live || r.token != 8 || r.newest != 8 {
					return "NOT ONE HOLDER"
				}
				return ""
			})
		each("an extension and an attempt after the end", 40*time.Millisecond, ended, extend, func() *operation { return take(1) },
			func(a, b *operation, r leaseRow) string {
				switch {
				case a.won == b.won || !r.live || b.won != (r.token == 8) || r.newest != r.token || a.won != (r.lockID.String == heldID):
					return "NOT ONE HOLDER"
				}
				return ""
			})
		each("an extension and a release", time.Hour, nil, extend, release, func(a, b *operation, r leaseRow) string {
			if !b.won || r.live || r.lockID.Valid || a.won && b.at.Before(a.at) {
				return "THE LEASE LIVES AFTER ITS RELEASE"
			}
			return ""
		})
		each("an attempt and a release", time.Hour, nil, func() *operation { return take(0) }, release,
			func(a, b *operation, r leaseRow) string {
				if !b.won || a.won != r.live || a.won != (r.token == 8) || r.lockID.String == heldID {
					return "NOT ONE HOLDER"
				}
				return ""
			})
		each("the control", 0, nil, func() *operation { return blind(0) }, func() *operation { return blind(1) },
			func(a, b *operation, _ leaseRow) string {
				if a.won && b.won {
					twice++
				}
				return ""
			})
	}
	if twice == 0 {
		t.Error("the control, which counts no rows, never had two holders")
	}
	if extended == 0 {
		t.Error("no extension succeeded at the end of its lease")
	}
	t.Logf("%d orders, %d of them with a wait, %d with an extension at the end of its lease; the control had two holders %d times",
		orderCount, waits, extended, twice)
}

// notHeld returns err unless it reports that the lease has ended.
func notHeld(err error) error {
	if errors.Is(err, lease.ErrNotHeld) {
		return nil
	}
	return err
}

// A reign is one lease, by the database's clock in µs: when the statement that took the lease began, a time after the
// grant, and the time at which the lease was surely still held. The statement may have waited for the lock of a holder
// that then released the lease, so a release is compared with the time after the grant.
type reign struct {
	token, began, granted, until int64
	released                     bool
}

// Many callers take one key with short TTLs, extend it, release it or let it end, in all kinds of sessions. At no time
// two of them hold the lease by the database's clock, and tokens increase.
func TestOneHolderAtATime(t *testing.T) {
	dsn, plain := setup(t)
	harness.NewLeases(t, plain)
	now := func(db *sql.DB) (at int64, err error) {
		err = db.QueryRow("SELECT " + nowMicros).Scan(&at)
		return at, err
	}
	var mu sync.Mutex
	var reigns []reign
	var extended, released, lost, starved int
	kinds := slices.Concat(sessions, others, uncommitted)
	const callers, each = 16, 8
	var running sync.WaitGroup
	for i := range callers {
		s := kinds[i%len(kinds)]
		db := s.fence(t, dsn, sqlfence.RowFence("fence_token"))
		if db == nil {
			continue
		}
		leases := harness.NewLeases(t, db)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		running.Go(func() {
			for range each {
				ttl := time.Duration(300+random.IntN(700)) * time.Millisecond
				l, err := leases.Acquire(t.Context(), "jobs", lease.TTL(ttl), lease.Timeout(harness.Patience/8), lease.Interval(20*time.Millisecond))
				if errors.Is(err, lease.ErrHeld) || errors.Is(err, context.DeadlineExceeded) { // optimistic sessions may starve
					mu.Lock()
					starved++
					mu.Unlock()
					continue
				}
				if err != nil {
					t.Errorf("%s: Acquire: %v", s.name, err)
					return
				}
				granted, err := now(db)
				if err != nil {
					t.Error(err)
					return
				}
				r := reign{token: l.Token().Value, began: l.AcquiredAt().UnixMicro(), granted: granted, until: l.ExpiresAt().UnixMicro()}
				for range random.IntN(3) {
					switch err := l.Extend(t.Context(), ttl); {
					case err == nil:
						r.until = max(r.until, l.ExpiresAt().UnixMicro())
						mu.Lock()
						extended++
						mu.Unlock()
					case !errors.Is(err, lease.ErrLeaseLost):
						t.Errorf("%s: Extend: %v", s.name, err)
					}
				}
				if random.IntN(4) > 0 {
					at, err := now(db)
					if err != nil {
						t.Error(err)
						return
					}
					err = l.Release(t.Context())
					mu.Lock()
					switch {
					case err == nil:
						released++
						r.released, r.until = at < r.until, min(r.until, at)
					case errors.Is(err, lease.ErrLeaseLost), errors.Is(err, lease.ErrNotHeld):
						lost++
					default:
						t.Errorf("%s: Release: %v", s.name, err)
					}
					mu.Unlock()
				}
				mu.Lock()
				reigns = append(reigns, r)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	slices.SortFunc(reigns, func(a, b reign) int { return cmp.Compare(a.token, b.token) })
	for i := 1; i < len(reigns); i++ {
		a, b := reigns[i-1], reigns[i]
		began := b.began
		if a.released {
			began = b.granted
		}
		if b.token <= a.token || began < a.until {
			t.Errorf("TWO HOLDERS: token %d began %d µs before the end of %d", b.token, a.until-began, a.token)
		}
	}
	if extended == 0 || released == 0 {
		t.Errorf("%d extended, %d released: the test tests nothing", extended, released)
	}
	t.Logf("%d leases, %d extensions, %d released, %d lost before their release; %d attempts gave up", len(reigns), extended, released,
		lost, starved)
}

// Tx, Do, Resume, Sweep and List work in every kind of session, and a holder that was replaced is refused.
func TestLeasesWork(t *testing.T) {
	dsn, plain := setup(t)
	for name, db := range all(t, dsn) {
		t.Run(name, func(t *testing.T) {
			reset(t, plain)
			exec(t, plain, "UPDATE books SET fence_token = 0")
			leases := harness.NewLeases(t, db)
			var first context.Context
			if err := leases.Do(t.Context(), "books", func(ctx context.Context) error {
				first = context.WithoutCancel(ctx)
				_, err := db.ExecContext(ctx, "UPDATE books SET price = 2 WHERE id = 1")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := leases.Tx(t.Context(), "books", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE books SET price = 3 WHERE id = 1")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(first, "UPDATE books SET price = 666 WHERE id = 1"); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("a replaced holder: %v", err)
			}
			l := harness.MustAcquire(t, leases, "pens", lease.Resume("ada"))
			again := harness.MustAcquire(t, leases, "pens", lease.Resume("ada"), lease.Refresh(), lease.TTL(2*time.Hour))
			if again.LockID() != l.LockID() {
				t.Errorf("resumed %v instead of %v", again, l)
			}
			if live, err := leases.List(t.Context()); err != nil || len(live) != 1 || live[0].Key != "pens" {
				t.Errorf("List: %v, %v", live, err)
			}
			harness.MustRelease(t, l)
			if err := leases.Release(t.Context(), l.LockID()); !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("a second release: %v", err)
			}
			held := harness.MustAcquire(t, leases, "mail", lease.MinHold(time.Hour))
			harness.MustRelease(t, held)
			if _, ok, err := leases.TryAcquire(t.Context(), "mail"); ok || err != nil {
				t.Errorf("within MinHold: %v, %v", ok, err)
			}
			exec(t, plain, "UPDATE fencing_leases SET expires_at = 1 WHERE `key` = 'mail'")
			if n, err := leases.Sweep(t.Context()); err != nil || n != 3 {
				t.Errorf("swept %d: %v", n, err)
			}
		})
	}
}

// Of two candidates one leads, and the other leads after the first has resigned.
func TestElection(t *testing.T) {
	dsn, _ := setup(t)
	type term struct {
		candidate int
		token     int64
	}
	elected := make(chan term)
	var elections [2]*lease.Election
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer running.Wait()
	defer cancel()
	for i := range elections {
		leases := harness.NewLeases(t, open(t, dsn))
		election, err := lease.NewElection("jobs", lease.Callbacks{Elected: func(ctx context.Context) {
			token, _ := sqlfence.FenceFrom(ctx, "jobs")
			select {
			case elected <- term{i, token.Value}:
			case <-ctx.Done():
			}
			<-ctx.Done()
		}}, lease.Interval(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		elections[i] = election
		running.Go(func() {
			if err := election.Run(ctx, leases); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	for round := int64(1); round <= 2; round++ {
		now := <-elected
		if now.token != round {
			t.Errorf("elected with token %d, want %d", now.token, round)
		}
		if _, err := elections[1-now.candidate].Tokens(ctx, []string{"jobs"}); !errors.Is(err, lease.ErrNotLeader) {
			t.Errorf("the other candidate's tokens: %v", err)
		}
		elections[now.candidate].Resign()
	}
}
