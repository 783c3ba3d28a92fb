package tokens_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The lower bound of tokens is 0 on the first timeline, and stays within a timeline's range whatever the clock shows.
// On one timeline it grows by ten per second, whichever of two standbys is promoted first.
func TestFloorRisesWithTimelineAndClock(t *testing.T) {
	b := harness.Bases[1]
	db := b.Raw(t, b.DSN(t))
	harness.MustExec(t, db, pg.Text.Capabilities().CreateLedger)
	floor := func(of int64, at time.Time) (value int64) {
		t.Helper()
		text := strings.NewReplacer("pg_catalog.statement_timestamp()", "'"+at.UTC().Format(time.RFC3339Nano)+"'::timestamptz",
			"pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn())", fmt.Sprintf("'%08X0000000000000001'", of)).Replace(sqltext.LowerBound(pg.Text))
		if err := db.QueryRow("SELECT " + text).Scan(&value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return value
	}
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rnd := rand.New(rand.NewPCG(1, 31))
	for range 200 {
		of := 2 + rnd.Int64N(1000)
		first := epoch.Add(time.Duration(rnd.Int64N(int64(31 * 365 * 24 * time.Hour))))
		later := first.Add(time.Second + time.Duration(rnd.Int64N(int64(time.Hour))))
		low, high := floor(of, first), floor(of, later)
		if between := later.Sub(first).Milliseconds() / 100; high-low < between-1 || high-low > between+1 {
			t.Errorf("timeline %d: %d at %v, %d at %v", of, low, first, high, later)
		}
		if low/timeline != of-1 || floor(of+1, epoch) <= high {
			t.Errorf("timeline %d has %d to %d", of, low, high)
		}
		if got := floor(1, later); got != 0 {
			t.Errorf("%d on the first timeline", got)
		}
	}
	for _, at := range []time.Time{epoch.AddDate(-60, 0, 0), epoch, epoch.AddDate(31, 0, 0), epoch.AddDate(100, 0, 0), epoch.AddDate(2000, 0, 0)} {
		if got := floor(7, at); got/timeline != 6 {
			t.Errorf("%d at %v on timeline 7", got, at)
		}
		if got := floor(90_002, at); got < sqlfence.MaxToken {
			t.Errorf("%d on timeline 90002, want none below the highest token", got)
		}
	}
}
