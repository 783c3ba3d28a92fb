package model

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/data/model.md")

const pageFile = "../../../docs/data/model.md"

// No order of steps breaks a guard without a mistake, and docs/data/model.md is what the model finds.
func TestGuardsHold(t *testing.T) {
	reached := make(map[Design]int)
	for _, d := range Designs() {
		states, trace := Explore(d)
		if trace != nil {
			t.Errorf("%+v:\n%s", d, strings.Join(trace, "\n"))
		}
		if states < 1000 {
			t.Errorf("%+v has only %d states", d, states)
		}
		reached[d] = states
	}
	page := Page(reached)
	if *update {
		if err := os.WriteFile(pageFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(found) != page {
		t.Error("docs/data/model.md differs from what the model finds; go test ./model -update writes it")
	}
}

// Each mistake breaks a promise, and without the mistake the same design holds.
func TestMistakesBreakPromises(t *testing.T) {
	for _, m := range Mistakes {
		if _, trace := Explore(m.Design); trace == nil {
			t.Errorf("%s breaks no promise", m.Name)
		}
		m.Mistake = None
		if _, trace := Explore(m.Design); trace != nil {
			t.Errorf("without %s:\n%s", m.Name, strings.Join(trace, "\n"))
		}
	}
}

// Each refusal of the model happens, so that no guard holds because nothing is ever compared.
func TestRefusalsHappen(t *testing.T) {
	for _, want := range []struct {
		what string
		Design
	}{
		{"is refused: the ledger has token 2", Design{}},
		{"is refused: the ledger has token 2", Design{Rule: Hold}},
		{"is refused: the row has token 2", Design{Rule: RowFence}},
		{"meets a row that is newer than its snapshot", Design{Snapshot: true}},
		{"meets a token that is newer than its snapshot", Design{Snapshot: true}},
		{"the standby is promoted, and has token 1 in the ledger", Design{Failover: Asynchronous}},
		{"stores token 11", Design{Failover: Asynchronous}},
		{"the server crashes", Design{Crash: true}},
	} {
		if !want.happens(want.what) {
			t.Errorf("%+v: never %q", want.Design, want.what)
		}
	}
}

// happens reports whether a move of this description is possible in some state.
func (d Design) happens(what string) (found bool) {
	d.walk(func(_ state, m move, _ bool) bool {
		found = strings.Contains(m.what, what)
		return !found
	})
	return found
}
