package fenceotel_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceotel"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A watched shop has programs that report telemetry.
type watched struct {
	*harness.Shop
	db        *sql.DB
	telemetry *fenceotel.Telemetry
}

// faults holds the fault that each alert is for. fault causes the fault, and returns the call that a program repeats
// while the fault lasts. If once is set, the program makes the call once.
var faults = map[string]struct {
	once  bool
	fault func(t *testing.T, w watched) func() error
}{
	"SqlfenceAllStale": {false, func(t *testing.T, w watched) func() error {
		_, stale := w.issue(t), w.issue(t)
		w.issue(t)
		return func() error { return want(sqlfence.ErrStale, w.update(stale)) }
	}},
	"SqlfenceNotIssued": {true, func(t *testing.T, w watched) func() error {
		ctx := w.issue(t)
		w.Exec(t, "DELETE FROM fencing_tokens") // the ledger is lost
		return func() error { return want(sqlfence.ErrUnknownName, w.update(ctx)) }
	}},
	"SqlfenceTokensNearLimit": {true, func(t *testing.T, w watched) func() error {
		w.issue(t)
		store := harness.NewStore(t, w.db, w.telemetry.Tokens())
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: sqlfence.MaxToken / 2}); err != nil {
			t.Fatal(err)
		}
		return func() error { _, err := store.Issue(t.Context(), "books"); return err }
	}},
	"SqlfenceLeaseOutOfReach": {false, func(t *testing.T, w watched) func() error {
		elsewhere := harness.NewLeases(t, w.DB) // the leases of a process that died while it held one
		if _, err := elsewhere.Acquire(t.Context(), "books", lease.TTL(time.Hour)); err != nil {
			t.Fatal(err)
		}
		leases := harness.NewLeases(t, w.db, w.telemetry.Leases())
		return func() error {
			if _, ok, err := leases.TryAcquire(t.Context(), "books"); ok || err != nil {
				return errors.Join(err, errors.New("the lease is free"))
			}
			return nil
		}
	}},
	"SqlfenceUnguardable": {true, func(t *testing.T, w watched) func() error {
		ctx := w.issue(t)
		return func() error {
			_, err := w.db.ExecContext(ctx, "UPDATE books SET fence_token = 1")
			return want(sqlfence.ErrUnguardable, err)
		}
	}},
	"SqlfenceNotSetUp": {true, func(t *testing.T, w watched) func() error {
		ctx := w.issue(t)
		w.Exec(t, "ALTER TABLE books DROP COLUMN fence_token")
		return func() error { return want(sqlfence.ErrNotSetUp, w.update(ctx)) }
	}},
	"SqlfenceSlow": {false, func(t *testing.T, w watched) func() error {
		ctx := w.issue(t)
		return func() error {
			tx, err := w.Plain.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(t.Context(), "UPDATE pens SET price = 1"); err != nil { // locks the file
				return err
			}
			time.AfterFunc(1200*time.Millisecond, func() { _ = tx.Rollback() })
			return w.update(ctx)
		}
	}},
	"SqlfenceBypassed": {true, func(t *testing.T, w watched) func() error {
		return func() error { return w.update(sqlfence.Bypass(t.Context(), "repair")) }
	}},
}

// Each alert must not hold before its fault, and must hold during it. The metrics come from sqlfence; none is made up.
// If once is set, a single call must suffice.
func TestAlertsFireByTheirFaults(t *testing.T) {
	program := need.Program(t, "prometheus")
	text, err := os.ReadFile("../../../../contrib/fenceotel/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(text), -1)
	if len(alerts) != len(faults) {
		t.Errorf("%d alerts, and %d faults", len(alerts), len(faults))
	}
	for _, alert := range alerts {
		t.Run(alert[1], func(t *testing.T) {
			f, ok := faults[alert[1]]
			if !ok {
				t.Fatal("no fault is known that it is for")
			}
			telemetry, metrics := newTelemetry(t)
			b := embedded()
			sh := harness.NewShop(t, b)
			sh.Reset(t, 0)
			rules := harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger())
			w := watched{sh, b.Fenced(t, sh.Source, telemetry.Writes(), rules), telemetry}
			if _, err := w.db.ExecContext(t.Context(), "SELECT 1"); err != nil {
				t.Fatal(err)
			}
			at := start(t, program, metrics)
			do := f.fault(t, w)
			harness.Eventually(t, "Prometheus has scraped", func() bool {
				var found answer[struct{ Result []any }]
				return ask(t, at, "query", map[string][]string{"query": {"up == 1"}}, &found) && len(found.Data.Result) > 0
			})
			if is := state(t, at, alert[1]); is != "" {
				t.Fatalf("it is %s before the fault", is)
			}
			done := false
			harness.Eventually(t, "it fires", func() bool {
				if !done || !f.once {
					if err := do(); err != nil {
						t.Fatal(err)
					}
					done = true
				}
				return state(t, at, alert[1]) != ""
			})
		})
	}
}

// state returns the alert's state in Prometheus, "pending" or "firing", or "" if the alert's condition doesn't hold.
func state(t *testing.T, at, alert string) string {
	t.Helper()
	var found answer[struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}]
	if !ask(t, at, "alerts", nil, &found) {
		return ""
	}
	for _, a := range found.Data.Alerts {
		if a.Labels["alertname"] == alert {
			return a.State
		}
	}
	return ""
}

// issue returns a context with a newly issued token of the books.
func (w watched) issue(t *testing.T) context.Context {
	t.Helper()
	value, err := w.Issue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return harness.Holding(t, value)
}

func (w watched) update(ctx context.Context) error {
	_, err := w.db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
	return err
}

// want returns nil if err is target, the error that the fault must cause.
func want(target, err error) error {
	if errors.Is(err, target) {
		return nil
	}
	return errors.Join(errors.New("another error"), err)
}
