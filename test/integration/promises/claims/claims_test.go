// Package claims_test sends the guarded texts that package rewrite makes of a queue's statements, by the base drivers.
package claims_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const noRow = "none"

// proving are writes of existing rows, which must present their claims.
var proving = []struct {
	statement
	worker worker
	want   guard.Marker // zero for a write that succeeds
	state  string       // of the jobs that differ, with the claims of the worker, or without a guard
}{
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 1"}, worker{1, 1}, guard.Marker{}, "1 ok 1"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 2"}, worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 2"}, worker{2, 3}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 2 AND state = 'run'"}, worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 4"}, worker{4, 1}, guard.Marker{Kind: guard.Stale, Current: 0}, "4 ok 0"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 5"}, worker{5, 1}, guard.Marker{Kind: guard.Stale, Current: 0}, "5 ok NULL"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 2"}, worker{1, 1}, guard.Marker{Kind: guard.OutOfScope, Key: "2"}, "2 ok 2"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = 9"}, worker{9, 1}, guard.Marker{}, ""},
	{statement{sql: "UPDATE jobs SET id = 2, state = 'ok' WHERE id = 2"}, worker{2, 2}, guard.Marker{}, "2 ok 2"},
	{statement{sql: "UPDATE jobs SET id = 2, state = 'ok' WHERE id = 2"}, worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id IN (1, 2, 3)"}, worker{1, 1, 2, 2, 3, 3}, guard.Marker{}, "1 ok 1, 2 ok 2, 3 ok 3"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id IN (1, 2, 3)"}, worker{1, 1, 2, 1, 3, 3}, guard.Marker{Kind: guard.Stale, Token: 1, Current: 2}, "1 ok 1, 2 ok 2, 3 ok 3"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id IN (1, 2)"}, worker{1, 1, 3, 3}, guard.Marker{Kind: guard.OutOfScope, Key: "2"}, "1 ok 1, 2 ok 2"},
	{statement{sql: "UPDATE jobs SET state = 'ok' FROM done d WHERE d.job = jobs.id", mysql: "UPDATE jobs JOIN done d ON d.job = jobs.id SET jobs.state = 'ok'"},
		worker{2, 2, 3, 3}, guard.Marker{}, "2 ok 2, 3 ok 3"},
	{statement{sql: "UPDATE jobs SET state = 'ok' FROM done d WHERE d.job = jobs.id", mysql: "UPDATE jobs JOIN done d ON d.job = jobs.id SET jobs.state = 'ok'"},
		worker{2, 2, 3, 2}, guard.Marker{Kind: guard.Stale, Token: 1, Current: 3}, "2 ok 2, 3 ok 3"},
	{statement{sql: "UPDATE jobs SET state = 'ok' WHERE id = (SELECT max(job) FROM done)"}, worker{3, 1}, guard.Marker{Kind: guard.Stale, Current: 3}, "3 ok 3"},
	{statement{sql: "WITH d AS (SELECT max(job) AS job FROM done) UPDATE jobs SET state = 'ok' FROM d WHERE id = d.job", postgres: true},
		worker{3, 1}, guard.Marker{Kind: guard.Stale, Current: 3}, "3 ok 3"},
	{statement{sql: "WITH u AS (UPDATE jobs SET state = 'ok' WHERE id = 2 RETURNING id) SELECT id FROM u", postgres: true},
		worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "DELETE FROM jobs WHERE id = 2"}, worker{2, 2}, guard.Marker{}, "2"},
	{statement{sql: "DELETE FROM jobs WHERE id = 2"}, worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2"},
	{statement{sql: "DELETE FROM jobs WHERE id IN (1, 3)"}, worker{1, 1, 3, 1}, guard.Marker{Kind: guard.Stale, Token: 1, Current: 3}, "1, 3"},
	{statement{sql: "DELETE FROM jobs WHERE state = 'new'"}, worker{4, 1}, guard.Marker{Kind: guard.Stale}, "4, 5"},
	{statement{sql: "DELETE FROM jobs USING done d WHERE d.job = jobs.id AND d.job < 3", mysql: "DELETE j FROM jobs j JOIN done d ON d.job = j.id WHERE d.job < 3", postgres: true},
		worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (2, 'ok') ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		mysql: "INSERT INTO jobs (id, state) VALUES (2, 'ok') ON DUPLICATE KEY UPDATE state = VALUES(state)"}, worker{2, 2}, guard.Marker{}, "2 ok 2"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (2, 'ok') ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		mysql: "INSERT INTO jobs (id, state) VALUES (2, 'ok') ON DUPLICATE KEY UPDATE state = VALUES(state)"}, worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "MERGE INTO jobs j USING done d ON d.job = j.id WHEN MATCHED AND d.job = 2 THEN UPDATE SET state = 'ok' WHEN NOT MATCHED THEN DO NOTHING", postgres: true},
		worker{2, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "2 ok 2"},
	{statement{sql: "MERGE INTO jobs j USING done d ON d.job = j.id WHEN MATCHED AND d.job = 2 THEN UPDATE SET attempt = j.attempt + 1 WHEN MATCHED THEN DELETE", postgres: true},
		worker{3, 3}, guard.Marker{}, "2 run 3, 3"},
	{statement{sql: "MERGE INTO jobs j USING done d ON d.job = j.id WHEN MATCHED AND d.job = 2 THEN UPDATE SET attempt = j.attempt + 1 WHEN MATCHED THEN DELETE", postgres: true},
		worker{3, 1}, guard.Marker{Kind: guard.Stale, Current: 3}, "2 run 3, 3"},
}

// TestClaimIsProved sends each write with its guard and, as a control, without the guard. The control succeeds.
func TestClaimIsProved(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		q := newQueue(t, b)
		for _, tt := range proving {
			query := q.in(tt.statement)
			if query == "" {
				continue
			}
			p := q.r.Plan(query)
			if p.Verdict != guard.Guard || p.Targets[0].Free || !p.Tokenless {
				t.Fatalf("%s: %v %v, free %v", query, p.Verdict, p.Refusal, p.Targets)
			}
			if err := q.send(t.Context(), q.db, p, nil, false); err == nil || !strings.Contains(err.Error(), "prove claims") {
				t.Errorf("%s without a claim: %v", query, err)
			}
			for _, literal := range []bool{false, true} {
				q.reset(t)
				q.wantMarker(t, q.send(t.Context(), q.db, p, tt.worker, literal), tt.want, query)
				want := jobs
				if tt.want.Kind == "" {
					want = changed(tt.state)
				}
				if got := q.state(t); got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
			q.reset(t)
			q.exec(t, query)
			if got := q.state(t); got != changed(tt.state) {
				t.Errorf("%s without its guard: %s, want %s", query, got, changed(tt.state))
			}
		}
	})
}

// changed returns the jobs with the given differences: "id state attempt", or the id of a deleted job.
func changed(differ string) string {
	var all []string
	for _, job := range strings.Split(jobs, ", ") {
		for _, other := range strings.Split(differ, ", ") {
			id, rest, kept := strings.Cut(other, " ")
			if id != job[:1] {
				continue
			}
			if job = id + " " + rest; !kept {
				job = noRow
			}
		}
		if job != noRow {
			all = append(all, job)
		}
	}
	return strings.Join(all, ", ")
}

// wantMarker fails the test unless err is the refusal that is wanted, or nil for none.
func (q *queue) wantMarker(t *testing.T, err error, want guard.Marker, query string) {
	t.Helper()
	m, ok := q.r.ReadMarker(err, func() *rewrite.Values { return &q.values })
	switch {
	case want.Kind == "" && err == nil:
	case !ok || m != want:
		t.Errorf("%s: %v, %+v, want %+v", query, err, m, want)
	}
}

// takeovers are statements that increase the claim and need no token. Statements that don't increase it are refused.
var takeovers = []struct {
	statement
	variant guard.PlanKind
	current int64  // in the refusal
	state   string // the changed jobs; empty if the statement is refused
}{
	{statement{sql: "UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id = 1"}, 0, 0, "1 run 2"},
	{statement{sql: "UPDATE jobs SET attempt = COALESCE(attempt, 0) + 1"}, 0, 0, "1 run 2, 2 run 3, 3 run 4, 4 new 1, 5 new 1"},
	{statement{sql: "UPDATE jobs SET attempt = 7 WHERE id < 4"}, 0, 0, "1 run 7, 2 run 7, 3 run 7"},
	{statement{sql: "UPDATE jobs SET attempt = 1 WHERE id = 5"}, 0, 0, "5 new 1"},
	{statement{sql: "UPDATE jobs SET attempt = 2 WHERE id < 3"}, 0, 2, ""},
	{statement{sql: "UPDATE jobs SET attempt = attempt WHERE id = 3"}, 0, 3, ""},
	{statement{sql: "UPDATE jobs SET attempt = attempt - 1 WHERE id = 3"}, 0, 3, ""},
	{statement{sql: "UPDATE jobs SET attempt = NULL WHERE id = 3"}, 0, 3, ""},
	{statement{sql: "UPDATE jobs SET attempt = NULL WHERE id = 5"}, 0, 0, ""},
	{statement{sql: "UPDATE jobs SET attempt = 0 WHERE id = 5"}, 0, 0, ""},
	{statement{sql: "UPDATE jobs SET attempt = attempt + 1 WHERE id IN (SELECT job FROM done ORDER BY job)"}, 0, 0, "2 run 3, 3 run 4"},
	{statement{sql: "UPDATE jobs SET attempt = attempt + 1 FROM done d WHERE d.job = jobs.id", mysql: "UPDATE jobs j JOIN done d ON d.job = j.id SET j.attempt = j.attempt + 1"},
		0, 0, "2 run 3, 3 run 4"},
	{statement{sql: "UPDATE jobs SET attempt = attempt + 1 WHERE id IN (SELECT id FROM jobs WHERE state = 'run' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED)",
		mysql: "UPDATE jobs j JOIN (SELECT id FROM jobs WHERE state = 'run' ORDER BY id LIMIT 2) n ON n.id = j.id SET j.attempt = j.attempt + 1", postgres: true}, 0, 0, "1 run 2, 2 run 3"},
	{statement{sql: "WITH n AS (SELECT id FROM jobs WHERE state = 'run' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) UPDATE jobs j SET attempt = j.attempt + 1 FROM n WHERE n.id = j.id RETURNING j.id, j.attempt",
		mysql: "UPDATE jobs SET attempt = attempt + 1 WHERE state = 'run' ORDER BY id LIMIT 2", postgres: true}, 0, 0, "1 run 2, 2 run 3"},
	{statement{sql: "INSERT INTO jobs (id, state, attempt) VALUES (2, 'run', 1) ON CONFLICT (id) DO UPDATE SET attempt = jobs.attempt + 1",
		mysql: "INSERT INTO jobs (id, state, attempt) VALUES (2, 'run', 1) ON DUPLICATE KEY UPDATE attempt = attempt + 1"}, 0, 0, "2 run 3"},
	{statement{sql: "INSERT INTO jobs (id, state, attempt) VALUES (2, 'run', 1) ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt",
		mysql: "INSERT INTO jobs (id, state, attempt) VALUES (2, 'run', 1) ON DUPLICATE KEY UPDATE attempt = VALUES(attempt)"}, 0, 2, ""},
	{statement{sql: "MERGE INTO jobs j USING done d ON d.job = j.id WHEN MATCHED THEN UPDATE SET attempt = 3", postgres: true}, 0, 3, ""},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (2, 'new') ON CONFLICT DO NOTHING", mysql: "INSERT IGNORE INTO jobs (id, state) VALUES (2, 'new')"}, 0, 0, jobs},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET id = jobs.id",
		mysql: "INSERT INTO jobs (id, state) VALUES (2, 'new') ON DUPLICATE KEY UPDATE id = id"}, guard.TakesOver, 0, jobs},

	{statement{sql: "UPDATE jobs SET state = 'new' WHERE state = 'run'"}, guard.TakesOver, 0, "1 new 2, 2 new 3, 3 new 4"},
	{statement{sql: "UPDATE jobs SET state = 'new' WHERE id = 5"}, guard.TakesOver, 0, "5 new 1"},
	{statement{sql: "UPDATE jobs SET attempt = 9 WHERE id = 5"}, guard.TakesOver, 0, "5 new 9"},
	{statement{sql: "UPDATE jobs SET attempt = 2 WHERE id = 3"}, guard.TakesOver, 3, ""},
	{statement{sql: "UPDATE jobs SET state = 'new' FROM done d WHERE d.job = jobs.id", mysql: "UPDATE jobs j JOIN done d ON d.job = j.id SET j.state = 'new'"},
		guard.TakesOver, 0, "2 new 3, 3 new 4"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		mysql: "INSERT INTO jobs (id, state) VALUES (2, 'new') ON DUPLICATE KEY UPDATE state = VALUES(state)"}, guard.TakesOver, 0, "2 new 3"},
	{statement{sql: "MERGE INTO jobs j USING done d ON d.job = j.id WHEN MATCHED THEN UPDATE SET state = 'new'", postgres: true}, guard.TakesOver, 0, "2 new 3, 3 new 4"},
}

func TestClaimIsTakenOver(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		q := newQueue(t, b)
		for _, tt := range takeovers {
			query := q.in(tt.statement)
			if query == "" {
				continue
			}
			p := q.r.PlanFor(query, tt.variant)
			if p.Verdict != guard.Guard || !p.Targets[0].Free || !p.Tokenless {
				t.Fatalf("%s: %v %v, free %v", query, p.Verdict, p.Refusal, p.Targets)
			}
			for _, w := range []worker{nil, {2, 2}, {1, 1, 2, 2}, {9, 1}} { // also by the holder of some of the rows
				q.reset(t)
				err, want := q.send(t.Context(), q.db, p, w, false), changed(tt.state)
				if tt.state == "" {
					want = jobs
					q.wantMarker(t, err, guard.Marker{Kind: guard.Assigned, Current: tt.current}, query)
				} else if err != nil {
					t.Errorf("%s: %v", query, err)
				}
				if got := q.state(t); got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
			for _, value := range []int64{1, 3} { // a claim that isn't the row's refuses the whole statement
				q.reset(t)
				err := q.send(t.Context(), q.db, p, worker{2, value}, value == 3)
				m, _ := q.r.ReadMarker(err, func() *rewrite.Values { return &q.values })
				switch got, takes := q.state(t), strings.Contains(tt.state, "2 ") && tt.state != jobs; {
				case takes && m != (guard.Marker{Kind: guard.NotNewest, Current: 2}):
					t.Errorf("%s by claim %d: %v, %+v", query, value, err, m)
				case !takes && tt.state != "":
					if err != nil || got != changed(tt.state) {
						t.Errorf("%s by claim %d of a row that it doesn't take: %v, %s", query, value, err, got)
					}
				case err == nil || got != jobs:
					t.Errorf("%s by claim %d: %v, %s", query, value, err, got)
				}
			}
			if tt.state != "" {
				continue
			}
			q.reset(t)
			q.exec(t, query)
			if q.state(t) == jobs && !strings.Contains(query, "attempt = attempt WHERE") && !strings.Contains(query, "NULL WHERE id = 5") {
				t.Errorf("%s changes nothing without its guard", query)
			}
		}
	})
}

// A worker writes several times with one claim. After a takeover its writes are refused, and its successor's succeed.
func TestClaimFromTheFirstToTheZombie(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		q := newQueue(t, b)
		q.reset(t)
		const take, heartbeat, finish = "UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id = 4",
			"UPDATE jobs SET state = 'alive' WHERE id = 4", "DELETE FROM jobs WHERE id = 4"
		for _, step := range []struct {
			query  string
			worker worker
			want   guard.Marker
			state  string
		}{
			{take, nil, guard.Marker{}, "4 run 1"},
			{heartbeat, worker{4, 1}, guard.Marker{}, "4 alive 1"},
			{heartbeat, worker{4, 1}, guard.Marker{}, "4 alive 1"},
			{take, nil, guard.Marker{}, "4 run 2"},
			{heartbeat, worker{4, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "4 run 2"},
			{finish, worker{4, 1}, guard.Marker{Kind: guard.Stale, Current: 2}, "4 run 2"},
			{heartbeat, worker{4, 2}, guard.Marker{}, "4 alive 2"},
			{finish, worker{4, 2}, guard.Marker{}, "4"},
			{finish, worker{4, 1}, guard.Marker{}, "4"},
		} {
			q.wantMarker(t, q.send(t.Context(), q.db, q.r.Plan(step.query), step.worker, false), step.want, step.query)
			if got := q.state(t); got != changed(step.state) {
				t.Fatalf("%s: %s, want %s", step.query, got, changed(step.state))
			}
		}
	})
}

// The guard gets a key and a generation as one text. Different pairs must not give the same text.
func TestClaimOfAnyKey(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		q := newQueue(t, b)
		p := q.r.Plan("UPDATE named SET name = name")
		for _, tt := range []struct {
			row, key string
			value    int64
			want     guard.Marker
		}{
			{"'a:1'", "a:1", 2, guard.Marker{}},
			{"'a:1'", "a", 2, guard.Marker{Kind: guard.OutOfScope, Key: "a:1"}},
			{"'a:1'", "a:1", 1, guard.Marker{Kind: guard.Stale, Current: 2}},
			{"'o''neill'", "o'neill", 2, guard.Marker{}},
			{"'o''neill'", "O'Neill", 2, guard.Marker{Kind: guard.OutOfScope, Key: "o'neill"}},
			{"'é'", "é", 2, guard.Marker{}},
			{"'é'", "e", 2, guard.Marker{Kind: guard.OutOfScope, Key: "é"}},
			{"''", "", 2, guard.Marker{}},
			{"NULL", "", 2, guard.Marker{Kind: guard.OutOfScope}},
			{"NULL", ":2", 2, guard.Marker{Kind: guard.OutOfScope}},
		} {
			for _, literal := range []bool{false, true} {
				q.exec(t, "DELETE FROM named")
				q.exec(t, "INSERT INTO named (name, attempt) VALUES ("+tt.row+", 2)")
				err := q.sendWith(t.Context(), q.db, p, []rewrite.Token{{Name: "named/" + tt.key, Key: tt.key, Value: tt.value}}, literal)
				q.wantMarker(t, err, tt.want, tt.row+" by "+tt.key)
			}
		}
	})
}
