//go:build linux

package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// SteppingClock is a PostgreSQL with a clock that steps by some leases, forwards and back, by the library of Debian's
// package faketime. All processes of the server have the same clock.
func SteppingClock(t *testing.T) *Target {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(libraries) == 0 {
		need.Missing(t, "faketime", "Debian's package faketime isn't installed")
	}
	clock := filepath.Join(sharedFolder(t), "clock")
	set := func(ahead time.Duration) {
		next := clock + ".next" // no process reads half of it
		err := os.WriteFile(next, fmt.Appendf(nil, "%+.3f\n", ahead.Seconds()), 0o644)
		if err == nil {
			err = os.Rename(next, clock)
		}
		if err != nil {
			t.Error(err)
		}
	}
	set(time.Hour)
	server := harness.NewServer(t, durable)
	server.Env = []string{
		"LD_PRELOAD=" + libraries[0], "FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
	server.Start(t)
	if server.Ask(t, "SELECT (clock_timestamp() > to_timestamp($1::text::bigint))::text", fmt.Sprint(time.Now().Unix()+1800)) != "true" {
		t.Fatal("the server's clock isn't the one that was set")
	}
	set(0)
	db := onServer(t, server)
	db.before = " with a stepping clock"
	db.faults = []Fault{{"clock stepped", time.Second, func(s *Storm, rng *rand.Rand) {
		set(time.Duration(rng.Int64N(int64(8 * s.TTL))))
	}}}
	return db
}
