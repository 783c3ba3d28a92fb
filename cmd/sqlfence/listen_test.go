package main

import (
	"context"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/lease"
)

// A release wakes a waiter that pauses for an hour between its attempts.
func TestReleaseWakesWaiters(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	source, err := database.Parse(freshPostgres(t), false)
	if err != nil {
		t.Fatal(err)
	}
	db, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// The two Leases stand for two processes.
	holder, errHolder := source.Leases(db)
	waiter, errWaiter := source.Leases(db)
	if errHolder != nil || errWaiter != nil {
		t.Fatal(errHolder, errWaiter)
	}
	if err := holder.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	key := "books"
	held, err := holder.Acquire(ctx, key, lease.TTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}

	taken := make(chan error, 1)
	go func() {
		l, err := waiter.Acquire(ctx, key, lease.TTL(time.Hour), lease.Timeout(time.Hour), lease.Interval(time.Hour))
		if err == nil {
			err = l.Release(ctx)
		}
		taken <- err
	}()
	for sleeps := false; !sleeps; {
		const marked = "SELECT COALESCE(notify_until > now(), false) FROM fencing_leases WHERE key = $1"
		if err := db.QueryRowContext(ctx, marked, key).Scan(&sleeps); err != nil {
			t.Fatal(err)
		}
	}
	if err := holder.Release(ctx, held.LockID()); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
}
