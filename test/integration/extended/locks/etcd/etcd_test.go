package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceetcd"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/extended/locks/paused"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

var service = paused.Service{
	Start: func(t *testing.T) string {
		program := need.Program(t, "etcd")
		address, _ := harness.FreeAddress(t)
		peers, _ := harness.FreeAddress(t)
		harness.Run(t, address, program, "--data-dir", t.TempDir(), "--listen-client-urls", "http://"+address,
			"--advertise-client-urls", "http://"+address, "--listen-peer-urls", "http://"+peers,
			"--initial-advertise-peer-urls", "http://"+peers, "--initial-cluster", "default=http://"+peers)
		return address
	},
	Lock: func(ctx context.Context, address string, store *tokens.Store) (context.Context, func() error, error) {
		client, session, err := open(address)
		if err != nil {
			return nil, nil, err
		}
		mutex := concurrency.NewMutex(session, "/locks/report")
		if err := mutex.Lock(ctx); err != nil {
			return nil, nil, err
		}
		held, err := fenceetcd.WithMutex(ctx, store, "report", session, mutex)
		return held, func() error { return errors.Join(session.Close(), client.Close()) }, err
	},
}

func open(address string) (*etcd.Client, *concurrency.Session, error) {
	client, err := etcd.New(etcd.Config{Endpoints: []string{address}, DialTimeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(1))
	return client, session, err
}

// A leader's token is higher than the previous leader's. If the etcd session ends, the leader's context ends with
// ErrStale.
func TestElection(t *testing.T) {
	address := service.Start(t)
	b, dsn := zombie.NewBase(t)
	store := harness.NewStore(t, b.Fenced(t, dsn))
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for range 3 {
		client, session, err := open(address)
		if err != nil {
			t.Fatal(err)
		}
		election := concurrency.NewElection(session, "/leaders/report")
		if _, err := fenceetcd.WithElection(t.Context(), store, "report", session, election); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("before the campaign: %v", err)
		}
		if err := election.Campaign(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		ctx, err := fenceetcd.WithElection(t.Context(), store, "report", session, election)
		if err != nil {
			t.Fatal(err)
		}
		token, _ := sqlfence.FenceFrom(ctx, "report")
		if token.Value <= last {
			t.Errorf("%v behind %d", token, last)
		}
		last = token.Value
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, sqlfence.ErrStale) {
			t.Errorf("the context has ended by %v", cause)
		}
		if _, err := fenceetcd.WithElection(t.Context(), store, "report", session, election); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("behind the session's end: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An election that was resigned, or a mutex that was unlocked, yields no token, although etcd's client keeps its
// header.
func TestGivenBack(t *testing.T) {
	address := service.Start(t)
	b, dsn := zombie.NewBase(t)
	store := harness.NewStore(t, b.Fenced(t, dsn))
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, session, err := open(address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	mutex, election := concurrency.NewMutex(session, "/locks/report"), concurrency.NewElection(session, "/leaders/report")
	if err := errors.Join(mutex.Lock(t.Context()), mutex.Unlock(t.Context()), election.Campaign(t.Context(), "x"),
		election.Resign(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := fenceetcd.WithMutex(t.Context(), store, "report", session, mutex); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("mutex: %v", err)
	}
	if _, err := fenceetcd.WithElection(t.Context(), store, "report", session, election); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("election: %v", err)
	}
}
