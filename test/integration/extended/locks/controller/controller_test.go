// Package controller_test tests a controller of controller-runtime whose leader election is a lease in its database. A
// late write of its reconciler is refused.
package controller_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencekubernetes"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
)

// lead runs a manager until its controller has been elected and has reconciled once.
func lead(ctx context.Context, lock *fencekubernetes.Lock, reconciled reconcile.Func) error {
	settings := manager.Options{
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(5 * time.Second), RenewDeadline: new(4 * time.Second), RetryPeriod: new(20 * time.Millisecond),
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
	}
	m, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, settings) // the manager sends no request to the API
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan event.GenericEvent, 1)
	events <- event.GenericEvent{Object: &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "report"}}}
	err = builder.ControllerManagedBy(m).Named("report").WithOptions(controller.Options{SkipNameValidation: new(true)}).
		WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			defer cancel()
			return reconciled(ctx, r)
		}))
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// open opens the database. If fenced is set, writes present the leader's token; otherwise nothing is guarded.
func open(dsn string, fenced bool) (*sql.DB, *fencekubernetes.Lock, error) {
	lock, err := fencekubernetes.NewLock("report", rand.Text())
	if err != nil {
		return nil, nil, err
	}
	db, err := sql.Open("pgx", dsn)
	if fenced {
		db, err = sqlfence.Open("pgx", dsn, sqlfence.WithTokenSource(lock.Tokens),
			sqlfence.WithTable("results", sqlfence.Resource("report"), sqlfence.Ledger()))
	}
	if err != nil {
		return nil, nil, err
	}
	leases, err := lease.New(db)
	lock.Use(leases)
	return db, lock, err
}

func TestMain(m *testing.M) { zombie.Main(m, workerA) }

// workerA pauses inside its reconciler and writes after B has written. It takes its token before the pause, because
// lock.Tokens would return ErrNotLeader afterwards and the write would never reach the database. By then its manager
// has ended, where a real program would exit.
func workerA(w *zombie.Worker) error {
	db, lock, err := open(w.DSN, w.Fenced)
	if err != nil {
		return err
	}
	late := make(chan struct{})
	err = lead(context.Background(), lock, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		held, err := lock.Tokens(ctx, []string{"report"})
		if err != nil {
			return reconcile.Result{}, err
		}
		ctx = sqlfence.WithFence(ctx, held...)
		w.Pause()
		w.Say(zombie.Outcome(zombie.Write(ctx, db, "A")))
		close(late)
		return reconcile.Result{}, nil
	})
	if err != nil && err.Error() != "leader election lost" {
		return err
	}
	<-late
	w.Wait()
	return nil
}

func TestPausedController(t *testing.T) {
	for _, fence := range []bool{false, true} {
		_, dsn := zombie.NewBase(t)
		db, lock, err := open(dsn, true)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		leases, err := lease.New(db)
		if err != nil {
			t.Fatal(err)
		}
		if err := leases.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := zombie.Write(t.Context(), db, "B"); !errors.Is(err, lease.ErrNotLeader) {
			t.Errorf("before B leads: %v", err)
		}
		said := zombie.Play(t, dsn, fence, func() {
			var wrote error
			if err := lead(t.Context(), lock, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				wrote = zombie.Write(ctx, db, "B")
				return reconcile.Result{}, wrote
			}); err != nil || wrote != nil {
				t.Fatal(err, wrote)
			}
		})
		zombie.Check(t, db, fence, said)
	}
}
