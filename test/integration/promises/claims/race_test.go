package claims_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// races are writes of job 2, and the state after a write that doesn't see a takeover.
var races = []struct {
	statement
	late string
}{
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 2"}, "2 ok 3"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 2 AND state = 'run'"}, "2 ok 3"},
	{statement{sql: "UPDATE jobs SET state = 'ok' FROM done d WHERE d.job = jobs.id AND d.job = 2",
		mysql: "UPDATE jobs j JOIN done d ON d.job = j.id SET j.state = 'ok' WHERE d.job = 2"}, "2 ok 3"},
	{statement{sql: "DELETE FROM jobs WHERE id = 2"}, "2"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (2, 'ok') ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		mysql: "INSERT INTO jobs (id, state) VALUES (2, 'ok') ON DUPLICATE KEY UPDATE state = VALUES(state)"}, "2 ok 3"},
	{statement{sql: "MERGE INTO jobs j USING done d ON d.job = j.id WHEN MATCHED AND d.job = 2 THEN UPDATE SET state = 'ok'", postgres: true}, "2 ok 3"},
}

// A write that waits for a takeover is compared with the committed takeover. Without the guard the write succeeds.
func TestClaimThatIsTakenOverWhileItsWriteWaits(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		q := newQueue(t, s.Base)
		for _, tt := range races {
			query := q.in(tt.statement)
			if query == "" {
				continue
			}
			for _, guarded := range []bool{true, false} {
				q.reset(t)
				takeover := harness.Begin(t.Context(), t, q.db, s.Level)
				if err := q.send(t.Context(), takeover, q.r.Plan("UPDATE jobs SET attempt = attempt + 1 WHERE id = 2"), nil, false); err != nil {
					t.Fatal(err)
				}
				late := harness.Begin(t.Context(), t, q.db, s.Level)
				var seen int64 // this query takes the snapshot
				if err := late.QueryRowContext(t.Context(), "SELECT job FROM done WHERE job = 2").Scan(&seen); err != nil {
					t.Fatal(err)
				}
				waiting := harness.Go(func() error {
					if guarded {
						return q.send(t.Context(), late, q.r.Plan(query), worker{2, 2}, false)
					}
					_, err := late.ExecContext(t.Context(), query)
					return err
				})
				harness.Eventually(t, "the write waits for the takeover", func() bool {
					select {
					case <-waiting.Ended():
						t.Fatalf("%s didn't wait: %v", query, waiting.Wait())
					default:
					}
					return q.Waiting(t, q.db) > 0
				})
				if err := takeover.Commit(); err != nil {
					t.Fatal(err)
				}
				err := waiting.Wait()
				byIsolation := s.Level > sql.LevelReadCommitted && harness.RefusedByIsolation(err)
				switch {
				case guarded && !byIsolation:
					q.wantMarker(t, err, guard.Marker{Kind: guard.Stale, Current: 3}, query)
				case !guarded && !byIsolation && err != nil:
					t.Errorf("%s: %v", query, err)
				}
				if failed := late.Commit(); failed != nil && err == nil {
					t.Error(failed)
				}
				want := changed("2 run 3")
				if !guarded && !byIsolation {
					want = changed(tt.late)
				}
				if got := q.state(t); got != want {
					t.Errorf("%s, guarded %v: %s, want %s", query, guarded, got, want)
				}
			}
		}
	})
}
