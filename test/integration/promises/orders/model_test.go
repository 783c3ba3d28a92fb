package orders_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An outcome is the result of a step.
type outcome string

const (
	done       outcome = "done"
	stale      outcome = "stale"
	notIssued  outcome = "not issued"
	unfenced   outcome = "no token"
	conflict   outcome = "conflict"
	gone       outcome = "gone"
	locked     outcome = "locked"
	constraint outcome = "constraint"
	held       outcome = "held by another"
	lost       outcome = "not held"
	sealed     outcome = "sealed"

	// These are errors that concurrent sessions may get from the database.
	serialization outcome = "serialization failure"
	deadlock      outcome = "deadlock"
	busy          outcome = "busy"
	resealed      outcome = "seal has changed"

	unexpected outcome = "unexpected"
)

// isConcurrency reports whether the response only concerns concurrent sessions.
func (o outcome) isConcurrency() bool {
	return o == serialization || o == deadlock || o == busy || o == resealed
}

// An op is an action of a session, with the presented tokens and the response.
type op struct {
	session int
	action  string
	tag     int64         // the value that a write stores in its rows
	tokens  map[int]int64 // by row; row 0 stands for the table
	serial  int64         // the version that the session has read; 0 for none
	editor  string

	answer  string
	outcome outcome
	err     error

	began, ended int64 // numbers in the order of all beginnings and ends
	txBegan      int64 // 0 outside of a transaction
}

func (o *op) String() string {
	text := fmt.Sprintf("%3d-%-3d session %d: %s", o.began, o.ended, o.session, o.action)
	if o.txBegan != 0 {
		text += fmt.Sprintf(" in transaction of %d", o.txBegan)
	}
	if len(o.tokens) != 0 {
		text += fmt.Sprintf(" tokens %v", o.tokens)
	}
	if o.serial != 0 {
		text += fmt.Sprintf(" serial %d", o.serial)
	}
	text += fmt.Sprintf(": %s %s", o.outcome, o.answer)
	if o.err != nil {
		text += fmt.Sprintf(" (%v)", o.err)
	}
	return text
}

// A row is a row of books.
type row struct {
	tag, price, mark, serial, attempt int64
	editor                            string
}

// A state models the database's content and the permitted effect of each action: the promise, for one action at a time.
type state struct {
	rules  ruleset
	newest int64 // token; those of the rows rise together
	rows   map[int]row
	jobs   int64 // the jobs' claims, which are equal
	note   int64 // the tag of the row of notes, which no rule guards
	sealed bool
	silent bool // a stale write that reaches no row may have no error
	holder int  // the session with the lease; -1 for none
}

func (s *state) clone() *state {
	c := *s
	c.rows = maps.Clone(s.rows)
	return &c
}

// shown returns the rows as a reader sees them.
func (s *state) shown() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[id]
		text := fmt.Sprintf("%d: tag %d price %d", id, r.tag, r.price)
		if s.rules.has("RowFence") {
			text += fmt.Sprintf(" mark %d", r.mark)
		}
		if s.rules.has("Serial") {
			text += fmt.Sprintf(" serial %d", r.serial)
		}
		if s.rules.has("Claim") {
			text += fmt.Sprintf(" attempt %d", r.attempt)
		}
		all = append(all, text+" "+r.editor)
	}
	return fmt.Sprintf("%s; note %d", strings.Join(all, "; "), s.note)
}

// do makes an op's changes in the state, unless it must be refused, and returns the answer or each reason for a
// refusal.
func (s *state) do(o *op) (answer string, reasons []outcome) {
	if w, ok := writes[o.action]; ok {
		return "", s.write(o, w)
	}
	switch o.action {
	case "check":
		return "", s.clone().write(o, writes["update"])
	case "issue":
		s.newest++
		return fmt.Sprint(s.newest), nil
	case "adopt":
		if s.newest > o.tokens[0] {
			return "", []outcome{stale}
		}
		s.newest = o.tokens[0]
	case "hold":
		return "", s.hold(o)
	case "note":
		s.note = o.tag
	case "acquire", "extend", "release", "expire":
		return s.lease(o)
	case "read":
		return fmt.Sprint(s.rows[1].serial), nil
	case "lock", "unlock":
		return "", s.lock(o)
	case "claim":
		return s.claim(), nil
	case "touch", "bare":
		if r, ok := s.rows[1]; ok && s.sealed {
			return "", []outcome{sealed}
		} else if ok && o.action == "touch" {
			r.price++
			s.rows[1] = r
		} else if ok {
			r.tag = o.tag
			s.rows[1] = r
		}
	case "seal", "unseal":
		s.sealed = o.action == "seal"
	default:
		panic("no model of " + o.action)
	}
	return "", nil
}

// write applies a guarded write of books.
func (s *state) write(o *op, w write) []outcome {
	var existing []int
	for _, id := range w.ids {
		if _, ok := s.rows[id]; ok {
			existing = append(existing, id)
		}
	}
	compared := existing
	if w.inserts && !w.updates {
		compared = nil // the conflicting row isn't written
	}
	reasons := s.refusals(o, w, compared)
	if w.inserts && !w.updates && len(existing) != 0 || w.wrong && len(existing) != 0 {
		reasons = append(reasons, constraint)
	}
	if len(reasons) != 0 {
		return reasons
	}
	for _, id := range existing {
		r := s.rows[id]
		if w.deletes {
			delete(s.rows, id)
			continue
		}
		if !w.raises {
			r.tag = o.tag
		}
		if s.rules.has("Serial") {
			r.serial++
		}
		r.mark = o.token(id)
		s.rows[id] = r
	}
	if w.inserts && len(existing) == 0 {
		s.rows[w.ids[0]] = row{tag: o.tag, price: 10, mark: o.token(w.ids[0]), serial: 1}
	}
	return nil
}

// reaches reports whether a write finds rows, or adds one.
func (s *state) reaches(o *op) bool {
	w, ok := writes[o.action]
	return !ok || w.inserts || slices.ContainsFunc(w.ids, func(id int) bool { _, ok := s.rows[id]; return ok })
}

// token returns the token that the op presents for a row.
func (o *op) token(id int) int64 {
	if t, ok := o.tokens[id]; ok {
		return t
	}
	return o.tokens[0]
}

// refusals returns the reasons for which the rules refuse a write to existing rows.
func (s *state) refusals(o *op, w write, existing []int) (reasons []outcome) {
	add := func(why outcome, holds bool) {
		if holds && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	for _, token := range o.tokens {
		add(stale, s.rules.ledger() && token < s.newest)
		add(notIssued, s.rules.ledger() && token > s.newest)
	}
	if s.rules.has("ClaimOf") {
		add(stale, o.token(1) != s.jobs)
	}
	for _, id := range existing {
		r := s.rows[id]
		if s.rules.has("RowFence") {
			add(stale, o.token(id) < r.mark || s.rules.has("SingleUse") && o.token(id) == r.mark)
		}
		if s.rules.has("Claim") {
			add(stale, o.token(id) != r.attempt)
		}
		if s.rules.has("Serial") && w.compared() {
			add(conflict, o.serial != r.serial)
		}
		if s.rules.has("EditLock") {
			add(locked, r.editor != "" && r.editor != o.editor)
		}
	}
	if s.rules.has("Serial") && w.compared() {
		add(gone, len(existing) == 0)
	}
	return reasons
}

// hold compares the tokens, or the claim of row 1, of a transaction that may only commit under the newest ones.
func (s *state) hold(o *op) (reasons []outcome) {
	if s.rules.claims() {
		claim := s.rows[1].attempt
		if s.rules.has("ClaimOf") {
			claim = s.jobs
		}
		if o.token(1) != claim {
			reasons = append(reasons, stale)
		}
		return reasons
	}
	for _, token := range o.tokens {
		if token < s.newest {
			return []outcome{stale}
		}
	}
	return nil
}

// lock is an op that requests row 1's edit lock or releases it.
func (s *state) lock(o *op) []outcome {
	r, ok := s.rows[1]
	switch {
	case o.action == "unlock":
		if ok && r.editor == o.editor {
			r.editor = ""
			s.rows[1] = r
		}
		return nil
	case !ok:
		return []outcome{gone}
	case r.serial != o.serial:
		return []outcome{conflict}
	case r.editor != "" && r.editor != o.editor:
		return []outcome{locked}
	}
	r.editor = o.editor
	s.rows[1] = r
	return nil
}

// claim increments the claims of the rows, or of the jobs under ClaimOf, and returns them.
func (s *state) claim() string {
	if s.rules.has("ClaimOf") {
		s.jobs++
		return fmt.Sprintf("1:%d 2:%[1]d 7:%[1]d", s.jobs)
	}
	var all []string
	for _, id := range []int{1, 2} {
		if r, ok := s.rows[id]; ok {
			r.attempt++
			s.rows[id] = r
			all = append(all, fmt.Sprintf("%d:%d", id, r.attempt))
		}
	}
	return strings.Join(all, " ")
}

// lease is an op on the lease.
func (s *state) lease(o *op) (string, []outcome) {
	switch o.action {
	case "acquire":
		if s.holder >= 0 {
			return "", []outcome{held}
		}
		s.newest++
		s.holder = o.session
		return fmt.Sprint(s.newest), nil
	case "expire":
		s.holder = -1
	default:
		if s.holder != o.session {
			return "", []outcome{lost}
		}
		if o.action == "release" {
			s.holder = -1
		}
	}
	return "", nil
}
