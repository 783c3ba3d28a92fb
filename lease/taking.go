package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/share"
)

// A taking is one attempt at a lease, in its own statement or a shared one.
type taking struct {
	r       *request
	o       *outcome // nil until it is settled
	unknown bool     // a statement that was sent may have taken the lease, in spite of err
	err     error
}

func (m *Leases) settle(ctx context.Context, t *taking) error {
	if t.r.session.Valid { // a batch has none
		return m.takeAlone(ctx, t, share.Place{})
	}
	shared := &taking{r: t.r}
	at, settled, err := m.takes.Share(ctx, t.r.key, shared)
	if err != nil { // the batch may still write to shared, and undoAbandoned undoes what it takes
		m.abandoned.add(t.r)
		return err
	}
	*t = *shared
	if settled {
		if t.unknown {
			m.undo(t.r, true)
		}
		return t.err
	}
	return m.takeAlone(ctx, t, at)
}

// takeAll sends one statement for several attempts. It leaves to takeAlone what it doesn't settle. takeAlone also finds
// the leases that a statement took before its connection broke.
func (m *Leases) takeAll(ctx context.Context, batch []*share.Member[*taking]) {
	var asked []*taking
	for _, b := range batch {
		asked = append(asked, b.Call)
	}
	sending, cancel := m.goOn(ctx)
	defer cancel()
	ok, committing, err := m.dialect.takeAll(sending, &m.database, asked)
	if err == nil && !ok {
		m.takes.Off()
	}
	for _, b := range batch {
		t := b.Call
		switch {
		case err == nil && t.o != nil && t.o.won == nil && t.r.notified > 0:
			t.o = nil // it has yet to ask for a notification
		case err != nil:
			t.o = nil
			t.unknown = committing && mayHaveCommitted(err)
			if t.unknown && !errors.Is(err, driver.ErrBadConn) {
				t.err = err
			}
		}
		b.Settled = t.o != nil || t.err != nil
	}
}

// undoAbandoned undoes what a batch took for callers that had gone: in one statement, except for attempts of unknown
// outcome.
func (m *Leases) undoAbandoned(gone []*share.Member[*taking]) {
	var won []*taking
	for _, b := range gone {
		switch t := b.Call; {
		case t.unknown:
			m.undo(t.r, true)
		case t.o != nil && t.o.won != nil:
			won = append(won, t)
		}
	}
	switch len(won) {
	case 0:
	case 1:
		m.undo(won[0].r, false)
	default:
		m.undoAll(won)
	}
}

// undoAll releases leases. Those that another transaction has locked are released one by one.
func (m *Leases) undoAll(won []*taking) {
	var longest time.Duration
	for _, t := range won {
		m.abandoned.add(t.r)
		longest = max(longest, t.r.ttl)
	}
	m.cleanup.Add(&cleanup.Task{For: longest, Do: func(ctx context.Context, _ *sql.DB) (done bool, err error) {
		all := make([]*releasing, len(won))
		for i, t := range won {
			all[i] = &releasing{lockID: t.r.lockID, release: newLockID()}
		}
		if _, err := m.dialect.releaseAll(ctx, &m.database, all, m.listener.listener != nil); err != nil {
			return false, err
		}
		for i, r := range all {
			if r.key == "" {
				m.undo(won[i].r, false)
				continue
			}
			m.queues.wake(r.key)
		}
		return true, nil
	}})
}
