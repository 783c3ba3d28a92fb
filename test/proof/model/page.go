package model

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed page.template
var template string

// Page returns docs/data/model.md: the designs that hold, with how many states each can reach, and how each mistake
// breaks a promise.
func Page(reached map[Design]int) string {
	var held, broken strings.Builder
	held.WriteString("| rule | isolation level | server | states |\n|---|---|---|---:|\n")
	for _, d := range Designs() {
		states := reached[d]
		fmt.Fprintf(&held, "| %s | %s | %s | %d |\n", ruleNames[d.Rule], d.level(), d.server(), states)
	}
	for _, m := range Mistakes {
		states, trace := Explore(m.Design)
		fmt.Fprintf(&broken, "\n### %s\n\n%s, %s, %s: after %d states.\n\n", m.Name, ruleNames[m.Rule], m.level(), m.server(), states)
		for i, what := range trace {
			fmt.Fprintf(&broken, "%d. %s\n", i+1, what)
		}
	}
	return strings.NewReplacer("{{held}}", strings.TrimSpace(held.String()), "{{broken}}",
		strings.TrimSpace(broken.String())).Replace(template)
}

var ruleNames = [...]string{Ledger: "`Ledger`", RowFence: "`RowFence`", Hold: "`Hold`"}

func (d Design) level() string {
	if d.Snapshot {
		return "REPEATABLE READ"
	}
	return "READ COMMITTED"
}

func (d Design) server() string {
	if d.Crash {
		return "crashes"
	}
	return [...]string{NoFailover: "runs", Synchronous: "a synchronous standby is promoted",
		Asynchronous: "an asynchronous standby is promoted"}[d.Failover]
}

// Designs returns the guards without a mistake, each rule in each setting.
func Designs() (all []Design) {
	for rule := range Rule(len(ruleNames)) {
		for _, snapshot := range []bool{false, true} {
			all = append(all, Design{Rule: rule, Snapshot: snapshot, Interferes: true},
				Design{Rule: rule, Snapshot: snapshot, Crash: true},
				Design{Rule: rule, Snapshot: snapshot, Failover: Synchronous},
				Design{Rule: rule, Snapshot: snapshot, Failover: Asynchronous})
		}
	}
	return all
}

// Mistakes are designs with one mistake each.
var Mistakes = []struct {
	Name string
	Design
}{
	{"A plain subquery reads the ledger", Design{Mistake: WithoutLock, Interferes: true}},
	{"The ledger is read by the transaction's snapshot", Design{Mistake: OldSnapshot, Snapshot: true}},
	{"The ledger is checked before the wait for the row, and its lock isn't kept", Design{Mistake: CheckedBeforeWait}},
	{"The row is compared before the wait for its lock", Design{Rule: RowFence, Mistake: SnapshotOfRow}},
	{"Hold's lock ends with a savepoint", Design{Rule: Hold, Mistake: RolledBackTo}},
	{"A token is issued while a write is open", Design{Mistake: IssuedWithoutLock}},
	{"A token is returned before its commit", Design{Mistake: ReturnedBeforeCommit, Crash: true}},
	{"A token is returned before it is on disk", Design{Mistake: NotDurable, Crash: true}},
	{"Tokens continue from what the standby has", Design{Mistake: SameAfterFailover, Failover: Asynchronous}},
}
