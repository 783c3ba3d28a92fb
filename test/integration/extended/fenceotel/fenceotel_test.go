// Tests of package fenceotel with real databases, OpenTelemetry's exporter for Prometheus, and Prometheus itself.
package fenceotel_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceotel"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// newTelemetry returns a Telemetry, and the URL at which Prometheus scrapes its metrics.
func newTelemetry(t testing.TB) (*fenceotel.Telemetry, string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	telemetry, err := fenceotel.New(fenceotel.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return telemetry, server.URL
}

// work increases every metric of a telemetry: it takes leases, writes, has writes refused, and bypasses the guards.
func work(t *testing.T, b harness.Base, telemetry *fenceotel.Telemetry) {
	t.Helper()
	sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	sh.Reset(t, 0)
	db := b.Fenced(t, sh.Source, telemetry.Writes(), harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	leases, err := lease.New(db, telemetry.Leases())
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := harness.NewStore(t, db, telemetry.Tokens())
	if _, err := store.Issue(t.Context(), "books"); err != nil {
		t.Fatal(err)
	}
	var tokens []sqlfence.Token
	for range 2 {
		l, err := leases.Acquire(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := leases.TryAcquire(t.Context(), "books"); ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, l.Token())
	}
	const update = "UPDATE books SET price = 30 WHERE id = 1"
	for _, want := range []struct {
		token sqlfence.Token
		err   error
	}{{tokens[1], nil}, {tokens[0], sqlfence.ErrStale}, {sqlfence.Token{Name: "books", Value: 1 << 40}, sqlfence.ErrNotIssued}} {
		if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), want.token), update); !errors.Is(err, want.err) {
			t.Fatalf("token %v: %v", want.token, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), update); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE books SET fence_token = 1"); !errors.Is(err, sqlfence.ErrUnguardable) {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "test"), update); err != nil {
		t.Fatal(err)
	}
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMetrics(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		telemetry, url := newTelemetry(t)
		work(t, b, telemetry)
		metrics := scrape(t, url)
		if found := strings.Contains(metrics, `sqlfence_statement_cache="miss"`); found != (b.Dialect == sqlfence.SQLite) {
			t.Errorf("the statement cache is counted: %v", found)
		}
		for _, want := range []string{
			`sqlfence_writes_total\{db_collection_name="books",db_operation_name="UPDATE",.*sqlfence_outcome="guarded".*\} 1\n`,
			`sqlfence_writes_total\{.*error_type="stale",.*sqlfence_outcome="refused".*\} 1\n`,
			`sqlfence_writes_total\{.*error_type="not-issued",.*sqlfence_outcome="refused".*\} 1\n`,
			`sqlfence_writes_total\{.*error_type="no-fence",.*sqlfence_outcome="refused".*\} 1\n`,
			`sqlfence_writes_total\{.*error_type="unguardable",.*sqlfence_outcome="refused".*\} 1\n`,
			`sqlfence_writes_total\{.*sqlfence_outcome="bypassed".*\} 1\n`,
			`sqlfence_write_duration_seconds_count\{.*\} 1\n`,
			`sqlfence_token_issue_duration_seconds_count\{.*sqlfence_resource="books"\} 1\n`,
			`sqlfence_token_issue_batch_sum\{.*sqlfence_resource="books"\} 1\n`,
			`sqlfence_token_used_ratio\{.*sqlfence_resource="books"\} `,
			`sqlfence_lease_events_total\{.*sqlfence_lease_event="acquired",.*\} 2\n`,
			`sqlfence_lease_events_total\{.*sqlfence_lease_event="contended",.*\} 2\n`,
			`sqlfence_lease_wait_duration_seconds_count\{.*\} 2\n`,
		} {
			if !regexp.MustCompile(want).MatchString(metrics) {
				t.Errorf("no %s in\n%s", want, metrics)
			}
		}
	})
}

// Each metric and label in the alert rules and the dashboard must exist.
func TestAlertsAndDashboard(t *testing.T) {
	telemetry, url := newTelemetry(t)
	work(t, embedded(), telemetry)
	metrics := scrape(t, url)
	for _, file := range []string{"alerts.yml", "dashboard.json"} {
		text, err := os.ReadFile("../../../../contrib/fenceotel/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s isn't JSON", file)
		}
		names := regexp.MustCompile(`sqlfence_[a-z_]+|db_[a-z_]+|error_type`).FindAllString(string(text), -1)
		slices.Sort(names)
		if names = slices.Compact(names); len(names) < 8 {
			t.Errorf("%s has the names %q", file, names)
		}
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(metrics) {
				t.Errorf("%s asks for %s, which there isn't in\n%s", file, name, metrics)
			}
		}
		for _, anchor := range regexp.MustCompile(`operations\.md#(.*)`).FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(headings(t), anchor[1]) {
				t.Errorf("%s leads to %s, which isn't a heading of %q", file, anchor[1], headings(t))
			}
		}
	}
}

// headings returns the anchors of docs/operations.md.
func headings(t *testing.T) (anchors []string) {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(page), -1) {
		anchors = append(anchors, regexp.MustCompile(`[^a-z-]`).ReplaceAllString(strings.ReplaceAll(strings.ToLower(h[1]), " ", "-"), ""))
	}
	return anchors
}

// embedded returns a base whose database needs no server.
func embedded() harness.Base {
	return harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == "mattn" })]
}
