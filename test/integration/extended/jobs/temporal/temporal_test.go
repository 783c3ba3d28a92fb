package temporal_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencetemporal"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

// isRefused reports whether an activity's error is the retryable error that the interceptor returns for a refused
// write.
func isRefused(err error) bool {
	var refused *temporal.ApplicationError
	return errors.As(err, &refused) && refused.Type() == fencetemporal.Refused && !refused.NonRetryable() &&
		refused.Category() == temporal.ApplicationErrorCategoryBenign
}

// newStore creates the ledger.
func newStore(t *testing.T, db *sql.DB) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// Worker A is paused in its attempt while worker B runs the next attempt. A's late write must not overwrite B's.
func TestZombie(t *testing.T) {
	for _, fence := range []bool{false, true} {
		b, dsn := zombie.NewBase(t)
		db := b.Fenced(t, dsn, table)
		newStore(t, b.Raw(t, dsn))
		said := zombie.Play(t, dsn, fence, func() {
			err := run(db, func(ctx context.Context, _ string) error { return zombie.Write(ctx, db, "B") })
			if err != nil {
				t.Fatal(err)
			}
		})
		zombie.Check(t, db, fence, said)
	}
}

// If sqlfence refuses an attempt that is still the activity's current attempt, the activity's retry policy decides
// whether another attempt follows.
func TestRefused(t *testing.T) {
	for _, most := range []int32{1, 2} {
		b, dsn := zombie.NewBase(t)
		db := b.Fenced(t, dsn, table)
		store := newStore(t, db)
		attempts := 0
		write := func(ctx context.Context, name string) error {
			if attempts++; attempts == 1 {
				if _, err := store.Issue(ctx, name); err != nil { // something else takes over the name
					t.Error(err)
				}
			}
			err := zombie.Write(ctx, db, "A")
			if (attempts == 1) != errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("attempt %d: %v", attempts, err)
			}
			return err
		}
		env := suite().NewTestWorkflowEnvironment()
		env.SetTestTimeout(time.Hour)
		env.SetWorkerOptions(options(store))
		env.RegisterActivity(write)
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				StartToCloseTimeout: time.Hour,
				RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: most},
			}), write, "results/1").Get(ctx, nil)
		})
		err := env.GetWorkflowError()
		if int32(attempts) != most || most == 1 && !isRefused(err) || most == 2 && err != nil {
			t.Errorf("of %d attempts it took %d: %v", most, attempts, err)
		}
	}
}

// An activity without a name gets no token.
func TestNoName(t *testing.T) {
	b, dsn := zombie.NewBase(t)
	db := b.Fenced(t, dsn, table)
	store := newStore(t, db)
	env := suite().NewTestActivityEnvironment()
	env.SetWorkerOptions(options(store))
	write := func(ctx context.Context, _ string) error {
		if err := zombie.Write(ctx, db, "A"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Error(err)
		}
		return nil
	}
	env.RegisterActivity(write)
	if _, err := env.ExecuteActivity(write, ""); err != nil {
		t.Error(err)
	}
}
