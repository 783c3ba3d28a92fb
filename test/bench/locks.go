package main

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// lockTTL is the time that a lock lives without being extended.
const lockTTL = stillness

// etcdLocking uses etcd's own mutex, with a session for each caller.
func etcdLocking(hot bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		address, err := s.servers.Etcd.at(s, "etcd")
		if err != nil {
			return work{}, err
		}
		client, err := etcdClient(address)
		if err != nil {
			return work{}, err
		}
		s.cleanup(func() { client.Close() })
		mutexes := make([]*concurrency.Mutex, s.callers)
		for caller := range mutexes {
			session, err := concurrency.NewSession(client, concurrency.WithTTL(int(lockTTL.Seconds())))
			if err != nil {
				return work{}, err
			}
			s.cleanup(func() { session.Close() })
			mutexes[caller] = concurrency.NewMutex(session, "/"+keyOf(s, hot, caller))
		}
		return work{call: func(ctx context.Context, caller int) error {
			if err := mutexes[caller].Lock(ctx); err != nil {
				return err
			}
			return mutexes[caller].Unlock(ctx)
		}}, nil
	}
}

func redisClient(s *stage, durability string) (*redis.Client, error) {
	address, err := s.servers.Redis[durability].at(s, redisName(durability))
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: address, PoolSize: s.callers, DialTimeout: stillness, ReadTimeout: stillness, WriteTimeout: stillness})
	s.cleanup(func() { client.Close() })
	return client, nil
}

func redislocking(durability string, hot bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		client, err := redisClient(s, durability)
		if err != nil {
			return work{}, err
		}
		locks := redislock.New(client)
		patient := &redislock.Options{RetryStrategy: redislock.LinearBackoff(pollEvery)}
		return work{call: func(ctx context.Context, caller int) error {
			lock, err := locks.Obtain(ctx, keyOf(s, hot, caller), lockTTL, patient)
			if err != nil {
				return err
			}
			return lock.Release(ctx)
		}}, nil
	}
}

func redsyncing(hot bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		client, err := redisClient(s, redisAlways)
		if err != nil {
			return work{}, err
		}
		locks := redsync.New(goredis.NewPool(client))
		return work{call: func(ctx context.Context, caller int) error {
			mutex := locks.NewMutex(keyOf(s, hot, caller), redsync.WithExpiry(lockTTL),
				redsync.WithTries(100_000), redsync.WithRetryDelay(pollEvery), redsync.WithTimeoutFactor(0.5))
			if err := mutex.LockContext(ctx); err != nil {
				return err
			}
			_, err := mutex.UnlockContext(ctx)
			return err
		}}, nil
	}
}
