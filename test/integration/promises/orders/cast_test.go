package orders_test

import (
	"fmt"
	"slices"
	"strings"
)

// A cast holds the steps of each session, separated by blanks. At the beginning the first session holds the tokens,
// versions and locks that the rules require; the other sessions hold nothing.
//
// A step is one of [actions]; a leading + also begins a transaction. W and V stand for kinds of write.
type cast struct {
	name     string
	sessions []string
	w, v     []string           // the writes that replace W and V
	of       func(ruleset) bool // selects rules; nil for all
	alone    bool               // for single rules, not for pairs
	unsealed bool               // the table begins without its seal
	shared   bool               // all sessions begin with what the first one holds
	circular bool               // sessions may wait for each other in a circle
}

var (
	anyRow  = []string{"update", "several", "delete", "insert", "upsert", "fresh"}
	aRow    = []string{"update"}
	anyRows = []string{"update", "several", "other"}
	someRow = []string{"update", "delete", "upsert"} // the writes for each pair of rules
)

// casts are the casts whose orders are run.
var casts = []cast{
	{name: "a takeover", sessions: []string{"begin W commit", "take V"}, w: anyRow, v: anyRows},
	{name: "a takeover in a transaction", sessions: []string{"begin W commit", "take +V commit"}, w: someRow, v: aRow},
	{name: "no snapshot", sessions: []string{"+W commit", "take +V commit"}, w: anyRow, v: anyRow},
	{name: "no transaction", sessions: []string{"W", "take V"}, w: anyRow, v: anyRow},
	{name: "a rollback", sessions: []string{"+W rollback", "take +V commit"}, w: someRow, v: aRow},
	{name: "a token again", sessions: []string{"+W update commit", "take V V"}, w: aRow, v: aRow},
	{name: "a refusal", sessions: []string{"begin wrong other commit", "take V"}, v: aRow},
	{name: "rows crosswise", sessions: []string{"+update other commit", "take +other update commit"}, circular: true},
	{name: "a client", sessions: []string{"begin W commit", "take V", "+touch commit"}, w: []string{"update", "wrong"},
		v: aRow, of: unsealedRules, alone: true},
	{name: "a client that gives up", sessions: []string{"+W commit", "take V", "+touch rollback"}, w: aRow, v: aRow,
		of: unsealedRules, alone: true},
	{name: "three holders", sessions: []string{"+W commit", "take V", "take V"}, w: someRow, v: aRow},
	{name: "two new holders", sessions: []string{"W", "take +V commit", "take +V commit"}, w: aRow, v: aRow, alone: true},

	{name: "tokens of several rows", sessions: []string{"+update commit", "take update", "several"}, of: byRow,
		shared: true},

	{name: "a held transaction", sessions: []string{"+hold note W commit", "take V"}, w: aRow, v: aRow, of: holds},
	{name: "a held transaction after a read", sessions: []string{"begin hold note commit", "take +V commit"}, v: aRow,
		of: holds},
	{name: "two held transactions", sessions: []string{"+hold note commit", "take +hold note commit"}, of: holds},

	{name: "a token of elsewhere", sessions: []string{"begin W commit", "adopt V"}, w: anyRow, v: aRow, of: byName},
	{name: "a lease that is given back", sessions: []string{"+W commit release", "acquire V"}, w: aRow, v: aRow,
		of: byName},
	{name: "a lease that has expired", sessions: []string{"extend +W commit", "acquire V", "expire"}, w: aRow, v: aRow,
		of: byName},
	{name: "a lease for two", sessions: []string{"release", "acquire V", "acquire V"}, v: aRow, of: byName},

	{name: "an edit", sessions: []string{"begin W commit", "take V unlock"}, w: someRow, v: aRow, of: locks},
	{name: "two editors", sessions: []string{"W", "take V unlock", "take V unlock"}, w: aRow, v: aRow, of: locks},
	{name: "a version that is raised", sessions: []string{"+W commit", "take V", "take raise"}, w: aRow, v: aRow,
		of: serials},

	{name: "a seal", sessions: []string{"begin W commit", "take V", "seal"}, w: aRow, v: aRow, of: seals, unsealed: true},
	{name: "a seal that is lifted", sessions: []string{"begin W commit", "take V", "unseal"}, w: aRow, v: aRow, of: seals},
	{name: "a client at a seal", sessions: []string{"+bare commit", "+W commit", "seal unseal"}, w: aRow, of: seals,
		unsealed: true},
	{name: "a client at a seal that is lifted", sessions: []string{"+bare commit", "bare", "unseal seal"}, of: seals},
}

func holds(r ruleset) bool         { return r.tokens() || r.claims() }
func byName(r ruleset) bool        { return r.tokens() && !r.has("Key") }
func byRow(r ruleset) bool         { return r.tokens() && r.has("Key") }
func locks(r ruleset) bool         { return r.has("EditLock") }
func serials(r ruleset) bool       { return r.has("Serial") }
func seals(r ruleset) bool         { return r.has("Sealed") }
func unsealedRules(r ruleset) bool { return !r.has("Sealed") }

// A scenario is a cast with its writes, under rules.
type scenario struct {
	cast
	rules   ruleset
	scripts [][]string // the steps of each session
	most    int        // limits the number of orders, which are then spread evenly; 0 for all
}

func (s *scenario) String() string {
	var all []string
	for _, script := range s.scripts {
		all = append(all, strings.Join(script, " "))
	}
	return fmt.Sprintf("%v: %s (%s)", s.rules, s.name, strings.Join(all, " | "))
}

// uses reports whether a session has this step.
func (s *scenario) uses(step string) bool {
	return slices.ContainsFunc(s.scripts, func(script []string) bool { return slices.Contains(script, step) })
}

// orders returns the orders of the scenario's steps that are run.
func (s *scenario) orders() [][]int {
	left, twins := make([]int, len(s.scripts)), make([]int, len(s.scripts))
	for i, script := range s.scripts {
		left[i] = len(script)
		for j := 1; j < i; j++ { // the first session begins with what the others take over
			if slices.Equal(script, s.scripts[j]) {
				twins[i], twins[j] = j, j
			}
		}
	}
	all := orders(left, twins)
	if s.most == 0 || len(all) <= s.most {
		return all
	}
	some := make([][]int, s.most)
	for i := range some {
		some[i] = all[i*len(all)/s.most]
	}
	return some
}

// scenarios are the casts of a database under its rules.
func (d *database) scenarios(r ruleset) (all []*scenario) {
	for _, c := range casts {
		if c.of != nil && !c.of(r) || c.alone && !r.alone() {
			continue
		}
		w, v := c.writes(r)
		for _, w := range w {
			for _, v := range v {
				if d.writes(r, w) && d.writes(r, v) {
					all = append(all, newScenario(c, r, w, v))
				}
			}
		}
	}
	return all
}

// writes are what W and V stand for under the rules. Every kind of write meets every other under the two rules that
// compare tokens. Under the others the second session has one kind, and under pairs of rules the first has fewer.
func (c *cast) writes(r ruleset) (w, v []string) {
	w, v = c.w, c.v
	if len(r) > 1 || !r.has("RowFence") && !r.has("Ledger") {
		v = v[:min(len(v), 1)]
	}
	if !r.alone() {
		w = slices.DeleteFunc(slices.Clone(w), func(kind string) bool { return !slices.Contains(someRow, kind) })
		if len(c.sessions) > 2 {
			w = w[:min(len(w), 1)]
		}
	}
	if len(w) == 0 {
		w = []string{""}
	}
	if len(v) == 0 {
		v = []string{""}
	}
	return w, v
}

func newScenario(c cast, r ruleset, w, v string) *scenario {
	s := &scenario{cast: c, rules: r}
	for _, text := range c.sessions {
		script := strings.Fields(text)
		for i, step := range script {
			step = strings.Replace(step, "W", w, 1)
			script[i] = strings.Replace(step, "V", v, 1)
		}
		s.scripts = append(s.scripts, script)
	}
	return s
}
