package kubernetes_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencekubernetes"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/extended/locks/paused"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

// service runs client-go's leader election on a Lease object.
var service = paused.Service{
	Start: startAPI,
	Lock: func(ctx context.Context, address string, store *tokens.Store) (context.Context, func() error, error) {
		lock, err := newLeaseLock(address)
		if err != nil {
			return nil, nil, err
		}
		led, resign, err := lead(ctx, lock, 5*time.Second, 4*time.Second)
		if err != nil {
			return nil, nil, err
		}
		held, err := fencekubernetes.WithLeader(led, store, "report", lock)
		return held, resign, err
	},
}

func newLeaseLock(address string) (*resourcelock.LeaseLock, error) {
	client, err := kubernetes.NewForConfig(config(address))
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{LeaseMeta: meta.ObjectMeta{Namespace: "default", Name: "report"},
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: rand.Text()}}, nil
}

func TestMain(m *testing.M) { service.Main(m) }

func TestPausedLeader(t *testing.T) { service.Test(t) }

func TestOrder(t *testing.T) { service.TestOrder(t) }

// lead runs an election until this process leads. It returns the leader's context, and the function that gives up the
// leadership. The process stops leading if it hasn't renewed the lease within the deadline.
func lead(ctx context.Context, lock resourcelock.Interface, duration, deadline time.Duration) (led context.Context, resign func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	started, ended := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: 20 * time.Millisecond,
		ReleaseOnCancel: true, Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { started <- ctx },
			OnStoppedLeading: func() {},
		}})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	resign = func() error {
		cancel()
		<-ended
		return nil
	}
	select {
	case led = <-started:
		return led, resign, nil
	case <-ended:
		cancel()
		return nil, nil, errors.New("the election has ended")
	}
}

// client-go's election runs on a lease in the database. The leaders' tokens increase, and leaders write without passing
// a context.
func TestLock(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	var before []sqlfence.Token
	for range 3 {
		lock, err := fencekubernetes.NewLock("report", rand.Text())
		if err != nil {
			t.Fatal(err)
		}
		db := b.Fenced(t, dsn, sqlfence.WithTokenSource(lock.Tokens),
			sqlfence.WithTable("results", sqlfence.Resource("report"), sqlfence.Ledger()))
		if _, _, err := lock.Get(t.Context()); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("without leases: %v", err)
		}
		leases := harness.NewLeases(t, db)
		lock.Use(leases)
		wantRefused := func(when string) {
			t.Helper()
			if err := zombie.Write(t.Context(), db, "A"); !errors.Is(err, lease.ErrNotLeader) || !errors.Is(err, sqlfence.ErrNoFence) {
				t.Errorf("%s: %v", when, err)
			}
		}
		wantRefused("before it leads")
		_, resign, err := lead(t.Context(), lock, time.Hour, time.Hour/2)
		if err != nil {
			t.Fatal(err)
		}
		if err := zombie.Write(t.Context(), db, "A"); err != nil {
			t.Error(err)
		}
		got, err := lock.Tokens(t.Context(), []string{"report"})
		if err != nil || len(got) != 1 || len(before) > 0 && got[0].Value <= before[0].Value {
			t.Errorf("tokens %v behind %v, %v", got, before, err)
		}
		if err := zombie.Write(sqlfence.WithFence(t.Context(), before...), db, "late"); len(before) > 0 && !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("the leader before: %v", err)
		}
		if record, _, err := lock.Get(t.Context()); err != nil || record.HolderIdentity != lock.Identity() ||
			int64(record.LeaderTransitions) != got[0].Value-1 {
			t.Errorf("%+v, %v", record, err)
		}
		before = got
		if err := resign(); err != nil {
			t.Error(err)
		}
		wantRefused("when it has resigned")
		if locked, err := leases.IsLocked(t.Context(), "report"); locked || err != nil {
			t.Errorf("the lease is held: %v, %v", locked, err)
		}
	}
}

// One elector leads at a time. The second elector gets the lease after the first elector's lease has ended in the
// database.
func TestLockIsTakenOver(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	leases := harness.NewLeases(t, b.Fenced(t, dsn, sqlfence.WithTable("results", sqlfence.Resource("report"))))
	newLock := func(identity string) *fencekubernetes.Lock {
		l, err := fencekubernetes.NewLock("report", identity)
		if err != nil {
			t.Fatal(err)
		}
		l.Use(leases)
		return l
	}
	first, second := newLock("first"), newLock("second")
	record := func(l *fencekubernetes.Lock) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity(), LeaseDurationSeconds: 3600}
	}
	if err := first.Create(t.Context(), record(first)); err != nil {
		t.Fatal(err)
	}
	if err := second.Create(t.Context(), record(second)); err == nil {
		t.Error("both have it")
	}
	if err := second.Update(t.Context(), record(first)); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("for another identity: %v", err)
	}
	if err := first.Update(t.Context(), record(first)); err != nil {
		t.Errorf("renewed: %v", err)
	}
	info, _, err := leases.Lookup(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Release(t.Context(), info.LockID); err != nil { // ends the lease in the database
		t.Fatal(err)
	}
	if err := second.Create(t.Context(), record(second)); err != nil {
		t.Fatal(err)
	}
	if err := first.Update(t.Context(), record(first)); err == nil {
		t.Error("the first has renewed what the second has")
	}
	if _, err := first.Tokens(t.Context(), []string{"report"}); !errors.Is(err, lease.ErrNotLeader) {
		t.Errorf("the first has tokens: %v", err)
	}
}

// WithLeader reads the Lease object through a copy of the lock. An elector uses the lock at the same time, and the
// version that WithLeader has read must not become the version of the elector's next Update.
func TestLeaderReadsApart(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	store := harness.NewStore(t, b.Fenced(t, dsn))
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock, err := newLeaseLock(service.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	elector := *lock
	record := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 3600}
	if err := elector.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if _, err := fencekubernetes.WithLeader(t.Context(), store, "report", lock); err != nil {
		t.Fatal(err)
	}
	if err := lock.Update(t.Context(), record); err == nil {
		t.Error("the lock has what WithLeader has read")
	}
}

// A leader that was replaced stops leading, even if the lease is free again: it must not continue under a new token.
// Afterwards it may be elected again.
func TestLostLeaderStops(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	leases := harness.NewLeases(t, b.Fenced(t, dsn, sqlfence.WithTable("results", sqlfence.Resource("report"))))
	lock, err := fencekubernetes.NewLock("report", "first")
	if err != nil {
		t.Fatal(err)
	}
	lock.Use(leases)
	led, resign, err := lead(t.Context(), lock, time.Hour, 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	info, _, err := leases.Lookup(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Release(t.Context(), info.LockID); err != nil { // ends the lease in the database
		t.Fatal(err)
	}
	other, err := leases.Acquire(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for led.Err() == nil {
		if got, err := lock.Tokens(t.Context(), []string{"report"}); err == nil && got[0].Value > info.Token.Value {
			t.Fatalf("it goes on with %v", got)
		}
		select {
		case <-led.Done():
		case <-time.After(time.Millisecond):
		}
	}
	if err := resign(); err != nil {
		t.Fatal(err)
	}
	_, resign, err = lead(t.Context(), lock, time.Hour, time.Hour/2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lock.Tokens(t.Context(), []string{"report"}); err != nil || got[0].Value <= other.Token().Value {
		t.Errorf("behind %v it has %v, %v", other.Token(), got, err)
	}
	if err := resign(); err != nil {
		t.Error(err)
	}
}
