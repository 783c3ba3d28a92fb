//go:build linux

package ha_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A failure is a failure of the leader. fail causes the failure, and returns the function that brings the node back.
type failure struct {
	name string
	// what describes the failure in docs/data/ha.md.
	what string
	fail func(t *testing.T, r *run, leader *node) (back func())
}

var failures = []failure{
	{"switchover", "Patroni's `POST /switchover`", func(t *testing.T, r *run, leader *node) func() {
		leader.switchover(t)
		return func() {}
	}},
	{"crash", "`kill -9` of Patroni and PostgreSQL", func(t *testing.T, r *run, leader *node) func() {
		leader.kill(t)
		return func() { leader.start(t) }
	}},
	{"crash behind a lag", "the same, while no standby has received the last commits", crashBehindLag},
	{"pause", "`kill -STOP` of both, and `-CONT` when another leads", func(t *testing.T, r *run, leader *node) func() {
		return leader.pause(t, true)
	}},
	{"hung Patroni", "`kill -STOP` of Patroni alone, so that PostgreSQL continues (no watchdog)",
		func(t *testing.T, r *run, leader *node) func() { return leader.pause(t, false) }},
	{"no etcd", "the leader alone doesn't reach etcd", func(t *testing.T, r *run, leader *node) func() {
		return leader.etcd.cut()
	}},
}

// crashBehindLag stops the replication to both standbys, and then kills the leader. Before the kill it waits until
// clients have committed without the standbys or, in synchronous mode, until commits are waiting for them.
func crashBehindLag(t *testing.T, r *run, leader *node) func() {
	senders := leader.ask("SELECT string_agg(pid::text, ' ') FROM pg_stat_replication")
	for _, field := range strings.Fields(senders) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		signal(t, syscall.SIGSTOP, pid)
	}
	before := r.trail.count()
	r.await(t, "commits that no standby has", func() bool {
		if r.synchronous {
			return len(leader.ask("SELECT string_agg('.', '') FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) > 3
		}
		return r.trail.count() > before+20
	})
	leader.kill(t)
	return func() { leader.start(t) }
}

// A failover describes a failover after it has happened.
type failover struct {
	failure  string
	timeline int64 // the timeline of the new leader
	gap      time.Duration
}

// A run is a cluster with its clients.
type run struct {
	*cluster
	trail     *trail
	failovers []failover
}

// fail causes a failure. It returns after another node leads, clients have written there, the failed node is back, and
// both standbys follow the new leader.
func (r *run) fail(t *testing.T, f failure) {
	t.Helper()
	leader := r.settle(t)
	before := leader.timeline()
	if before == 0 {
		t.Fatalf("the timeline of %s isn't known", leader.name)
	}
	began := time.Now()
	back := f.fail(t, r, leader)
	var next *node
	r.await(t, f.name+": another leader", func() bool {
		next = r.leader()
		return next != nil && next != leader && next.timeline() > before
	})
	timeline, seen := next.timeline(), time.Now()
	r.await(t, f.name+": writes and refusals under the new leader", func() bool { return r.trail.worked(seen, timeline) })
	back()
	r.settle(t)
	o := failover{f.name, timeline, r.trail.gap(began, time.Now())}
	r.failovers = append(r.failovers, o)
	t.Logf("%s: from %s to %s, timeline %d, no write for %v, %v in all", f.name, leader.name, next.name, timeline,
		o.gap.Round(time.Millisecond), time.Since(began).Round(time.Second))
}
