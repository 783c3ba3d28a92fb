package nats_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencenats"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/extended/locks/paused"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

var service = paused.Service{
	Start: func(t *testing.T) string {
		program := need.Program(t, "nats-server")
		address, port := harness.FreeAddress(t)
		harness.Run(t, address, program, "-a", "127.0.0.1", "-p", port, "-js", "-sd", t.TempDir())
		return address
	},
	Lock: func(ctx context.Context, address string, store *tokens.Store) (context.Context, func() error, error) {
		conn, err := nats.Connect("nats://" + address)
		if err != nil {
			return nil, nil, err
		}
		stream, err := jetstream.New(conn)
		if err != nil {
			return nil, nil, err
		}
		bucket, err := stream.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "locks", TTL: time.Second})
		if err != nil {
			return nil, nil, err
		}
		revision, err := create(ctx, bucket)
		if err != nil {
			return nil, nil, err
		}
		held, err := fencenats.WithRevision(ctx, store, "report", revision)
		return held, func() error {
			defer conn.Close()
			return bucket.Purge(context.WithoutCancel(ctx), "report")
		}, err
	},
}

// create waits until the key can be created.
func create(ctx context.Context, bucket jetstream.KeyValue) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if revision, err = bucket.Create(ctx, "report", nil); !errors.Is(err, jetstream.ErrKeyExists) {
			return revision, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func TestInvalidRevisions(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	store := harness.NewStore(t, b.Fenced(t, dsn))
	for revision, want := range map[uint64]error{
		0: sqlfence.ErrInvalid, sqlfence.MaxToken + 1: sqlfence.ErrTokenLimit, 1<<64 - 1: sqlfence.ErrTokenLimit,
	} {
		if _, err := fencenats.WithRevision(t.Context(), store, "report", revision); !errors.Is(err, want) {
			t.Errorf("%d: %v", revision, err)
		}
	}
}
