package dberr

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type stateError string

func (e stateError) Error() string    { return "state " + string(e) }
func (e stateError) SQLState() string { return string(e) }

func TestResendPausesBetweenTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		err := Resend(t.Context(), IsSerialization, func() error {
			if at = append(at, time.Now()); len(at) == 12 {
				return nil
			}
			return stateError(SerializationFailure)
		})
		if err != nil || len(at) != 12 {
			t.Fatalf("%v after %d tries, want nil after 12", err, len(at))
		}
		pause := firstBackoff
		for i := 1; i < len(at); i++ {
			if got := at[i].Sub(at[i-1]); got < pause/2 || got > pause {
				t.Errorf("pause %d is %v, want %v to %v", i, got, pause/2, pause)
			}
			pause = min(2*pause, maxBackoff)
		}
	})
}

func TestResendReturnsAnotherError(t *testing.T) {
	for _, want := range []error{nil, errors.New("broken"), stateError(UniqueViolation)} {
		tries := 0
		err := Resend(t.Context(), IsSerialization, func() error { tries++; return want })
		if err != want || tries != 1 {
			t.Errorf("%v after %d tries, want %v after 1", err, tries, want)
		}
	}
}

func TestResendEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		start, tries := time.Now(), 0
		err := Resend(ctx, IsSerialization, func() error { tries++; return stateError(SerializationFailure) })
		if !errors.Is(err, context.DeadlineExceeded) || !IsSerialization(err) {
			t.Errorf("%v, want the failure and the context's error", err)
		}
		if took := time.Since(start); took != limit {
			t.Errorf("it took %v, want %v", took, limit)
		}
		// At most one try in half of the longest pause, plus the tries with shorter pauses.
		if most := int(limit/(maxBackoff/2)) + 10; tries < 10 || tries > most {
			t.Errorf("%d tries, want 10 to %d", tries, most)
		}
	})
}

func TestResendSendsOnceWhenItsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tries := 0
	err := Resend(ctx, IsSerialization, func() error { tries++; return stateError(SerializationFailure) })
	if !errors.Is(err, context.Canceled) || !IsSerialization(err) || tries != 1 {
		t.Errorf("%v after %d tries, want the failure and the context's error after 1", err, tries)
	}
}
