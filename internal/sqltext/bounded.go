package sqltext

import (
	"fmt"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A Bounded is a statement with {floor}, the lower bound of new tokens. full has the bound of the server's timeline,
// which began at the last promotion or restore; lower has that of the first timeline, if the server hides its own.
type Bounded struct{ full, lower, epoch string }

// NewBounded returns the statement of a template, as [Render] writes it. The template must number its arguments.
func NewBounded(d Dialect, text string, pieces ...Fragments) Bounded {
	full, _ := Render(d, text, pieces...)
	first := d.Capabilities().Epoch
	if first != "" {
		first = "0"
	}
	lower, _ := Render(d, text, append([]Fragments{{"epoch": Raw("0"),
		"floor": Raw(lowerBound(d, first))}}, pieces...)...)
	return Bounded{full, lower, d.Capabilities().Epoch}
}

// Timelines remembers whether a server's timeline can be read. The zero value assumes
// that it can. It is safe for concurrent use.
type Timelines struct{ unreadable atomic.Bool }

// Send sends the full form of f if the server's timeline can be read, otherwise the lower one. If the full form and a
// query of the timeline alone fail, but the lower form succeeds, the timeline can't be read; Timelines remembers this,
// and found is true once. ask sends a query without arguments.
func (t *Timelines) Send(f Bounded, send, ask func(text string) error) (found bool, err error) {
	if t.unreadable.Load() {
		return false, send(f.lower)
	}
	err = send(f.full)
	// The error may have another cause: a missing privilege on the table, or a plan of a changed table in pgx's cache.
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

// refused reports whether the server lacks a function of the epoch, or doesn't allow the call.
func refused(err error) bool {
	switch dberr.SQLState(err) {
	case dberr.UndefinedFunction, dberr.InsufficientPrivilege, dberr.FeatureNotSupported:
		return true
	}
	return false
}

// Exhausted returns the reason why no token above value is issued for name: limit is the highest token, and a value
// above limit marks a retired name.
func Exhausted(name string, value, limit int64) string {
	if value > limit {
		return fmt.Sprintf("%q was retired; take another name", name)
	}
	return fmt.Sprintf("%q stands at %d, the highest is %d; replace the name: tokens.Store.Rotate, "+
		"sqlfence tokens rotate", name, value, limit)
}
