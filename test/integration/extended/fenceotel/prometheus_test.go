package fenceotel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Prometheus must scrape the metrics and accept the alert rules and the dashboard's queries.
func TestPrometheus(t *testing.T) {
	program := need.Program(t, "prometheus")
	telemetry, metrics := newTelemetry(t)
	work(t, embedded(), telemetry)
	at := start(t, program, metrics)

	var found answer[struct{ Result []json.RawMessage }]
	harness.Eventually(t, "the metrics are scraped", func() bool {
		return ask(t, at, "query", url.Values{"query": {"sqlfence_writes_total"}}, &found) && len(found.Data.Result) >= 6
	})
	var rules answer[struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}]
	harness.Eventually(t, "the rules are evaluated", func() bool {
		return ask(t, at, "rules", nil, &rules) && len(rules.Data.Groups) == 1 && rules.Data.Groups[0].Rules[0].Health != "unknown"
	})
	if n := len(rules.Data.Groups[0].Rules); n < 8 {
		t.Errorf("%d rules", n)
	}
	for _, r := range rules.Data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("%s: %s, %s", r.Name, r.Health, r.LastError)
		}
	}
	for _, query := range dashboard(t) {
		if !ask(t, at, "query", url.Values{"query": {strings.ReplaceAll(query, "$__rate_interval", "5m")}}, &found) {
			t.Errorf("the dashboard asks %s: %s", query, found.Error)
		}
	}
}

// An answer is the body of a response of Prometheus's API.
type answer[D any] struct {
	Status, Error string
	Data          D
}

// ask sends a request to Prometheus's API, and reports whether Prometheus has returned a successful response.
func ask[D any](t *testing.T, at, what string, values url.Values, to *answer[D]) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/api/v1/"+what+"?"+values.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return false // Prometheus isn't up yet
	}
	defer got.Body.Close()
	return json.NewDecoder(got.Body).Decode(to) == nil && to.Status == "success"
}

// start starts Prometheus in a temporary folder, and returns its address.
func start(t *testing.T, program, metrics string) string {
	t.Helper()
	dir := t.TempDir()
	alerts, err := filepath.Abs("../../../../contrib/fenceotel/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n"+
		"- {job_name: sqlfence, metrics_path: /, static_configs: [{targets: [%q]}]}\n", alerts, strings.TrimPrefix(metrics, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	at, _ := harness.FreeAddress(t)
	harness.Run(t, at, program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+at)
	return "http://" + at
}

// dashboard returns the dashboard's queries.
func dashboard(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../../../contrib/fenceotel/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}
