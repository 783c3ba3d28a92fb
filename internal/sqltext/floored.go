package sqltext

import (
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A Floored is a statement that names {floor}, and the same with {start} where the server
// doesn't tell its timeline.
type Floored struct{ full, lower string }

// NewFloored returns the statement of a text, as [Render] writes it. Its arguments are
// numbered by hand.
func NewFloored(d Dialect, text string, pieces ...Pieces) Floored {
	full, _ := Render(d, text, pieces...)
	lower, _ := Render(d, text, append([]Pieces{{"floor": Raw(Start)}}, pieces...)...)
	return Floored{full, lower}
}

// Timelines keeps in mind whether a server tells its timeline. The zero value takes
// it that it does. It is safe for concurrent use.
type Timelines struct{ untold atomic.Bool }

// Send sends f, with the floor if the server tells its timeline. That it doesn't is
// found out by an error of f, then of the floor's own expression, and kept in mind if
// f without the floor succeeds; found is true then, once. ask sends a text without
// arguments.
func (t *Timelines) Send(f Floored, send, ask func(text string) error) (found bool, err error) {
	if t.untold.Load() {
		return false, send(f.lower)
	}
	err = send(f.full)
	// The same codes also stand for other things: a privilege that is missing on the
	// table, or a plan that pgx has cached of a table that has changed.
	if !refused(err) || f.full == f.lower || !refused(ask("SELECT "+epoch)) {
		return false, err
	}
	if err := send(f.lower); err != nil {
		return false, err
	}
	return t.untold.CompareAndSwap(false, true), nil
}

// Untold is what to log when Send has found out that the server doesn't tell.
const Untold = "the server doesn't tell its timeline, so tokens can fall behind in a failover or a restore that loses some; " +
	"call tokens' Repair after one"

// refused reports whether the server has no such function, or keeps it to itself.
func refused(err error) bool {
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction, dberr.InsufficientPrivilege, dberr.FeatureNotSupported:
		return true
	}
	return false
}
