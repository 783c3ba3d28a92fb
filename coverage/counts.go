package coverage

import (
	"errors"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence"
)

// Counts are the numbers of executions, by outcome ([sqlfence.EventKind]). One execution may have several outcomes: a
// write to two tables can be guarded for one table and unfenced for the other.
type Counts struct {
	Guarded  int64 `json:"guarded"`  // executed with the guard
	Refused  int64 `json:"refused"`  // not sent, or failed by a guard; see Reasons
	Observed int64 `json:"observed"` // sent in Observe mode; Enforce mode would have refused them
	Unfenced int64 `json:"unfenced"` // writes without a token, by the rule Optional or UnfencedInserts
	Bypassed int64 `json:"bypassed"` // sent unchanged, by sqlfence.Bypass or WithoutGuards
	Passed   int64 `json:"passed"`   // wrote to no registered table

	// Unanswered were sent and got no response ([sqlfence.ErrUnknownOutcome]).
	Unanswered int64 `json:"unanswered,omitempty"`

	// Time is the sum of [sqlfence.Event.Duration] of the guarded statements; in JSON in nanoseconds.
	Time time.Duration `json:"guarded_ns"`
}

func (n *Counts) add(e *sqlfence.Event) {
	switch e.Kind {
	case sqlfence.Guarded:
		n.Guarded++
		n.Time += e.Duration
	case sqlfence.Refused:
		n.Refused++
	case sqlfence.WouldRefuse:
		n.Observed++
	case sqlfence.Unfenced:
		n.Unfenced++
	case sqlfence.Bypassed:
		n.Bypassed++
	case sqlfence.Passed:
		n.Passed++
	case sqlfence.Unanswered:
		n.Unanswered++
	}
}

func (n *Counts) total() int64 {
	return n.Guarded + n.Refused + n.Observed + n.Unfenced + n.Bypassed + n.Passed + n.Unanswered
}

// A Reason is why executions of a statement were refused, would have been refused, or weren't guarded.
type Reason struct {
	Text  string `json:"text"`
	Count int64  `json:"count"`

	// Offset is a position in bytes in the SQL string of the first execution with this reason; -1 for none.
	Offset int `json:"offset"`

	// Open is true if the program has to be changed before the statement can be enforced: the statement can't be
	// guarded, or its context lacks something. Open is false for errors that a correct program can get, such as stale
	// tokens, for a [sqlfence.Bypass], and for new rows under [sqlfence.UnfencedInserts].
	Open bool `json:"open"`
}

// guardsWork are the refusals that every program must expect.
var guardsWork = []error{sqlfence.ErrStale, sqlfence.ErrNotIssued, sqlfence.ErrConflict, sqlfence.ErrGone,
	sqlfence.ErrLocked, sqlfence.ErrUnknownOutcome}

// reasonOf returns the reason of an event; ok is false if the event has none.
func reasonOf(e *sqlfence.Event) (r Reason, ok bool) {
	r.Offset = -1
	switch e.Kind {
	case sqlfence.Bypassed:
		r.Text = "bypassed: " + e.Reason
	case sqlfence.Unfenced:
		r.Text, r.Open = "no token for an Optional table", true
		if e.Reason == "UnfencedInserts" {
			r.Text, r.Open = "no token, which UnfencedInserts allows", false
		}
	case sqlfence.Refused, sqlfence.WouldRefuse, sqlfence.Unanswered:
		r.Text, r.Open = e.Err.Error(), true
		for _, expected := range guardsWork {
			if errors.Is(e.Err, expected) {
				r.Text, r.Open = expected.Error(), false
			}
		}
		if at := (*sqlfence.UnguardableError)(nil); errors.As(e.Err, &at) {
			r.Text, r.Offset = at.Reason, at.Offset
		}
	default:
		return r, false
	}
	r.Text = clip(r.Text, maxReason)
	return r, true
}

// maxReason is how many bytes of a reason's text are kept.
const maxReason = 2000

func (s *statement) addReason(e *sqlfence.Event) {
	r, ok := reasonOf(e)
	if !ok {
		return
	}
	if i := slices.IndexFunc(s.Reasons, func(at Reason) bool { return at.Text == r.Text }); i >= 0 {
		s.Reasons[i].Count++
		return
	}
	if len(s.Reasons) >= maxReasons {
		// The last reason counts all further reasons.
		last := &s.Reasons[maxReasons-1]
		*last = Reason{Text: "other reasons", Offset: -1, Count: last.Count + 1, Open: last.Open || r.Open}
		return
	}
	r.Count = 1
	s.Reasons = append(s.Reasons, r)
}
