package sqltext

import (
	"fmt"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A Floored is a statement that names {floor}, and the same one as on the first timeline, for a
// server that doesn't show its own.
type Floored struct{ full, lower, epoch string }

// NewFloored returns the statement of a text, as [Render] writes it. Its arguments are
// numbered by hand.
func NewFloored(d Dialect, text string, pieces ...Pieces) Floored {
	full, _ := Render(d, text, pieces...)
	first := d.Facts().Epoch
	if first != "" {
		first = "0"
	}
	lower, _ := Render(d, text, append([]Pieces{{"epoch": Raw("0"), "floor": Raw(floor(d, first))}}, pieces...)...)
	return Floored{full, lower, d.Facts().Epoch}
}

// Timelines remembers whether a server's timeline can be read. The zero value assumes
// that it can. It is safe for concurrent use.
type Timelines struct{ unreadable atomic.Bool }

// Send sends f, with the floor if the server's timeline can be read. If f fails, and the
// floor's own expression as well, but f without the floor succeeds, then it can't be
// read; Timelines remembers that, and found is true, once. ask sends a text without
// arguments.
func (t *Timelines) Send(f Floored, send, ask func(text string) error) (found bool, err error) {
	if t.unreadable.Load() {
		return false, send(f.lower)
	}
	err = send(f.full)
	// The same codes have other causes, too: a missing privilege on the table, or a
	// plan of a changed table in pgx's cache.
	if !refused(err) || f.full == f.lower || !refused(ask("SELECT "+f.epoch)) {
		return false, err
	}
	if err := send(f.lower); err != nil {
		return false, err
	}
	return t.unreadable.CompareAndSwap(false, true), nil
}

// Unreadable is the warning to log when Send has found that the timeline can't be read.
const Unreadable = "the server's timeline can't be read, so tokens may repeat after a failover or a restore that " +
	"loses some; raise them after one: tokens.Store.Repair, sqlfence tokens repair"

// refused reports whether the server has no such function, or doesn't allow it.
func refused(err error) bool {
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction, dberr.InsufficientPrivilege, dberr.FeatureNotSupported:
		return true
	}
	return false
}

// Exhausted says why no token above value is issued for name: none is above limit, and a value
// beyond it is a name's that was retired.
func Exhausted(name string, value, limit int64) string {
	if value > limit {
		return fmt.Sprintf("%q was retired; take another name", name)
	}
	return fmt.Sprintf("%q stands at %d, the highest is %d; replace the name: tokens.Store.Rotate, "+
		"sqlfence tokens rotate", name, value, limit)
}
