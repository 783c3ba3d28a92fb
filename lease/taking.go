package lease

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlfence/sqlfence/internal/share"
)

// A taking is one attempt at a lease, by a statement of its own or together with others.
type taking struct {
	r       *request
	o       *outcome // nil until it is settled
	unknown bool     // a statement that was sent may have taken the lease, in spite of err
	err     error
}

// settle makes the attempt.
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

// takeAll sends one statement for several attempts. What it doesn't settle, because of others or
// because it has failed for good, is left to takeAlone, which also finds the leases that a
// statement has taken before its connection broke.
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

// undoAbandoned undoes what a batch has taken for a caller that had gone.
func (m *Leases) undoAbandoned(b *share.Member[*taking]) {
	if t := b.Call; t.unknown || t.o != nil && t.o.won != nil {
		m.undo(t.r, t.unknown)
	}
}
