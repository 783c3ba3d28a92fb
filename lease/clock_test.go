package lease

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// A stopped or busy process may use its lease before the lease's timer has run, so the lease also ends by the clock.
// Here the timer never runs.
func TestLeaseGoesByTheClock(t *testing.T) {
	for name, ended := range map[string]func(l *Lease) bool{
		"Err":          func(l *Lease) bool { return errors.Is(l.Err(), ErrLeaseLost) },
		"Done":         func(l *Lease) bool { return closed(l.Done()) },
		"Context.Err":  func(l *Lease) bool { return l.Context().Err() != nil },
		"Context.Done": func(l *Lease) bool { return closed(l.Context().Done()) },
		"Release":      func(l *Lease) bool { return errors.Is(l.Release(context.Background()), ErrLeaseLost) },
		"Extend":       func(l *Lease) bool { return errors.Is(l.Extend(context.Background(), time.Hour), ErrLeaseLost) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &grant{Info: Info{Token: sqlfence.Token{Name: "k", Value: 1}}, deadline: time.Now().Add(time.Minute)}
				leases := &Leases{database: database{options: &config{Options: dialectopt.Options{Logger: slog.New(slog.DiscardHandler)}}}}
				l := leases.newLease(t.Context(), g, nil, &terms{margin: time.Second})
				child, cancel := context.WithCancel(l.Context())
				defer cancel()
				l.timer.Stop()
				time.Sleep(time.Minute - time.Second - 1)
				if l.Err() != nil || l.Context().Err() != nil || closed(l.Done()) || closed(l.Context().Done()) {
					t.Errorf("it has ended early: %v", l.Err())
				}
				time.Sleep(time.Nanosecond)
				if !ended(l) {
					t.Error("it is held after its end")
				}
				if l.Err() == nil || !errors.Is(context.Cause(l.Context()), ErrLeaseLost) || child.Err() == nil {
					t.Errorf("it ended with %v, its context with %v, a child with %v", l.Err(), context.Cause(l.Context()), child.Err())
				}
			})
		})
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
