//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if isWorker() {
		workerMain()
		return
	}
	os.Exit(m.Run())
}

// forEachDatabase runs a test on SQLite, and on PostgreSQL where the environment
// names one.
func forEachDatabase(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "") })
	t.Run("pgx", func(t *testing.T) {
		dsn := os.Getenv("SQLFENCE_POSTGRES_DSN")
		if dsn == "" {
			if os.Getenv("SQLFENCE_REQUIRE_POSTGRES") == "1" {
				t.Fatal("SQLFENCE_POSTGRES_DSN is not set")
			}
			t.Skip("SQLFENCE_POSTGRES_DSN is not set")
		}
		test(t, dsn)
	})
}

func TestWorker(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, dsn string) {
		var out bytes.Buffer
		if err := run(t.Context(), &out, dsn, true); err != nil {
			t.Errorf("run: %v", err)
		}
		t.Logf("the timeline:\n%s", &out)
		at := 0
		for _, want := range []string{"leads with token 1", "is stopped", "leads with token 2", "finishes job 2", "is resumed",
			"wants to finish job 2: refused, token 1 is stale, 2 has been seen", "has lost the lease", "OK: "} {
			i := strings.Index(out.String()[at:], want)
			if i < 0 {
				t.Fatalf("the timeline lacks %q, or has it too early", want)
			}
			at += i
		}
		if n := strings.Count(out.String(), "\n"); n > 40 {
			t.Errorf("the timeline has %d lines, at most 40 are readable", n)
		}
	})
}

// The negative control: without the fence the stale write lands.
func TestWorkerUnfenced(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, dsn string) {
		var out bytes.Buffer
		if err := run(t.Context(), &out, dsn, false); !errors.Is(err, errStaleLanded) {
			t.Errorf("run without the fence: %v, want %v; the timeline:\n%s", err, errStaleLanded, &out)
		}
	})
}
