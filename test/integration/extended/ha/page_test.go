//go:build linux

package ha_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// describe returns the section of docs/data/ha.md about a run.
func describe(t *testing.T, results []*result) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "Patroni %s, PostgreSQL %s, etcd %s; `ttl` 20, `loop_wait` 2, `retry_timeout` 8.\n\n",
		version(t, "patroni"), results[0].server, version(t, "etcd"))
	head, line := "| |", "|---|"
	for _, mode := range modes {
		head += " " + mode.name + " |"
		line += "---|"
	}
	b.WriteString(head + "\n" + line + "\n")
	for _, row := range figures {
		fmt.Fprintf(&b, "| %s |", row.what)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", row.of(r))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nThe longest time between two acknowledged guarded writes of any clients, in seconds: minimum, median and "+
		"maximum of each kind of failure.\n\n| failure of the leader |%s\n%s\n",
		strings.TrimPrefix(head, "| |"), line)
	for _, f := range failures {
		fmt.Fprintf(&b, "| %s: %s |", f.name, f.what)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", gaps(r.failovers, f.name))
		}
		b.WriteString("\n")
	}
	return b.String()
}

var figures = []struct {
	what string
	of   func(r *result) string
}{
	{"failovers", func(r *result) string { return thousands(len(r.failovers)) }},
	{"tokens issued", func(r *result) string { return thousands(r.verdict.tokens) }},
	{"of these, issued twice", func(r *result) string { return thousands(r.verdict.twice) }},
	{"of these, not above every earlier token of the same or an earlier timeline",
		func(r *result) string { return thousands(r.verdict.fell) }},
	{"of these, issued by a replaced primary, below a token of the new primary",
		func(r *result) string { return thousands(r.verdict.behind) }},
	{"committed writes", func(r *result) string { return thousands(r.verdict.landed) }},
	{"stale writes sent",
		func(r *result) string { return thousands(r.verdict.stale) }},
	{"of these, refused as stale", func(r *result) string { return thousands(r.verdict.refused) }},
	{"of these, refused as not issued", func(r *result) string { return thousands(r.verdict.notIssued) }},
	{"of these, acknowledged, because the failover lost the newer token or the write",
		func(r *result) string { return thousands(r.verdict.acknowledged) }},
	{"**stale writes that overwrote a newer write**",
		func(r *result) string { return "**" + thousands(r.verdict.guarded()) + "**" }},
	{"the same without sqlfence", func(r *result) string { return thousands(r.verdict.over["plain"]) }},
	{"acknowledged writes lost", func(r *result) string { return thousands(r.verdict.lost) }},
	{"writes that an error reported as failed, but that were committed",
		func(r *result) string { return thousands(r.verdict.forbidden) }},
}

func gaps(all []failover, failure string) string {
	var found []time.Duration
	for _, f := range all {
		if f.failure == failure {
			found = append(found, f.gap)
		}
	}
	if len(found) == 0 {
		return "–"
	}
	slices.Sort(found)
	median := (found[(len(found)-1)/2] + found[len(found)/2]) / 2
	return fmt.Sprintf("%.1f, %.1f, %.1f", found[0].Seconds(), median.Seconds(), found[len(found)-1].Seconds())
}

// thousands formats a number with thousands separators.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

var versionNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

func version(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return versionNumber.FindString(string(out))
}
