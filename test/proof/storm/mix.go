//go:build linux

package storm

import (
	"slices"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// Everything returns requests for sqlfence: all tables, kinds of statements and isolation levels. A token is mostly the
// newest known to any lane, and sometimes an older one. Faults make further tokens stale.
func Everything(l *Lane) fence.Request {
	t := &l.Storm.Tables[l.IntN(len(l.Storm.Tables))]
	row := 1 + l.Int64N(t.Rows)
	switch {
	case t.Edited && l.IntN(6) == 0:
		return fence.Request{Do: fence.Edit, User: l.user(), TTL: l.Storm.TTL.Milliseconds(), Steps: []fence.Step{{Table: t.Name, Row: row}}}
	case t.Edited && l.IntN(40) == 0:
		return fence.Request{Do: fence.Leave, User: l.user(), Steps: []fence.Step{{Table: t.Name, Row: row}}}
	case t.Serial && l.IntN(2) == 0:
		return read(t, row)
	case t.Claim && l.IntN(10) == 0:
		return fence.Request{Do: fence.Claim, Steps: []fence.Step{{Table: t.Name, Row: row}}}
	case (t.Keyed || t.Claim) && l.IntN(8) == 0:
		return read(t, row)
	}
	if r, ok := l.grant(t, row); ok {
		return r
	}
	return l.write(t, row)
}

// user is who edits in this lane.
func (l *Lane) user() int64 { return int64(l.Number) + 1 }

func read(t *history.Table, row int64) fence.Request {
	return fence.Request{Do: fence.Read, Steps: []fence.Step{{Table: t.Name, Row: row}}}
}

// grant asks for a token where none is known, and sometimes.
func (l *Lane) grant(t *history.Table, row int64) (r fence.Request, ok bool) {
	name := t.Resource(row)
	if len(l.Locks) > 0 && t.Leased && l.IntN(10) == 0 {
		return l.hold(), true
	}
	_, known := l.Storm.Pool.Get(name, false)
	switch {
	case !t.Fence && !t.Ledger, known && l.IntN(12) > 0:
		return r, false
	case t.Leased:
		return fence.Request{Do: fence.Acquire, Name: name, TTL: l.Storm.TTL.Milliseconds()}, true
	case t.Foreign:
		return fence.Request{Do: fence.Adopt, Name: name, Tokens: []fence.Token{{Name: name, Value: l.Storm.Pool.Foreign()}}}, true
	}
	return fence.Request{Do: fence.Issue, Name: name}, true
}

// hold extends or releases a lease that the lane has, or had.
func (l *Lane) hold() fence.Request {
	i := l.IntN(len(l.Locks))
	lock := l.Locks[i]
	if l.IntN(2) == 0 {
		return fence.Request{Do: fence.Extend, Name: lock.Name, Lock: lock.ID, TTL: l.Storm.TTL.Milliseconds()}
	}
	l.Locks = slices.Delete(l.Locks, i, i+1)
	return fence.Request{Do: fence.Release, Name: lock.Name, Lock: lock.ID}
}

// write writes one row, or some in a transaction.
func (l *Lane) write(t *history.Table, row int64) (r fence.Request) {
	r.Do = fence.Write
	if !l.Storm.Target.Patient && l.IntN(25) == 0 {
		r.Within = 1 + l.Int64N(20) // and gives up
	}
	l.step(&r, t, row)
	if l.IntN(6) > 0 && !t.Held {
		return r
	}
	r.Level = l.Storm.Target.Levels[l.IntN(len(l.Storm.Target.Levels))]
	if l.IntN(8) == 0 {
		r.Hold = l.Int64N(20)
	}
	for range l.IntN(3) {
		t := &l.Storm.Tables[l.IntN(len(l.Storm.Tables))]
		row := 1 + l.Int64N(t.Rows)
		if !slices.ContainsFunc(r.Steps, func(s fence.Step) bool { return s.Table == t.Name }) {
			l.step(&r, t, row)
		}
	}
	return r
}

// step adds a statement and the required token.
func (l *Lane) step(r *fence.Request, t *history.Table, row int64) {
	name := t.Resource(row)
	given := slices.ContainsFunc(r.Tokens, func(t fence.Token) bool { return t.Name == name }) // by the table that has the claims
	if t.NeedsToken() && !given {
		token, ok := l.Storm.Pool.Get(name, l.IntN(8) == 0)
		if !ok && (t.Claim || t.ClaimOf != "") {
			token = 0
		}
		if token == 0 {
			token = 1
		}
		r.Tokens = append(r.Tokens, fence.Token{Name: name, Value: token})
	}
	if t.Edited {
		r.User = l.user()
	}
	form := l.form(t)
	if form == history.Bulk {
		row = t.Rows
	}
	r.Steps = append(r.Steps, fence.Step{Table: t.Name, Row: row, Form: form})
}

// form is a kind of statement that the table's rules and the database have.
func (l *Lane) form(t *history.Table) string {
	forms := append([]string{"update", "update", "update literal", "with"}, l.Storm.Target.Forms...)
	if !t.Claim && !t.Serial {
		forms = append(forms, "upsert")
	}
	if !t.Keyed && !t.Claim && t.ClaimOf == "" {
		forms = append(forms, history.Bulk)
	}
	if t.Deletes {
		forms = append(forms, "delete", "upsert", "upsert")
	}
	return forms[l.IntN(len(forms))]
}

// Locked is what any fence is asked: lanes take locks of rows, write under them, and now and then once more, when the lock
// may have passed to another long ago.
func Locked(l *Lane) fence.Request {
	t := &l.Storm.Tables[0]
	if len(l.Locks) > 0 && l.IntN(3) > 0 {
		i := l.IntN(len(l.Locks))
		lock := l.Locks[i]
		switch {
		case l.IntN(8) == 0:
			l.Locks = slices.Delete(l.Locks, i, i+1)
			return fence.Request{Do: fence.Release, Name: lock.Name, Lock: lock.ID}
		case len(l.Locks) > 6:
			l.Locks = l.Locks[1:]
		}
		return l.underLock(t, lock)
	}
	name := t.Resource(1 + l.Int64N(t.Rows))
	r := fence.Request{Do: fence.Acquire, Name: name, TTL: l.Storm.TTL.Milliseconds()}
	if l.IntN(4) == 0 {
		r.Hold = l.Int64N(3 * r.TTL)
	}
	return r
}

// underLock writes the row that a lock is for. The pause is where the fence wants it.
func (l *Lane) underLock(t *history.Table, lock Lock) fence.Request {
	row := int64(1)
	for t.Resource(row) != lock.Name {
		row++
	}
	r := fence.Request{
		Do: fence.Write, Name: lock.Name, Lock: lock.ID, Tokens: []fence.Token{{Name: lock.Name, Value: lock.Token}},
		Steps: []fence.Step{{Table: t.Name, Row: row}},
	}
	if l.IntN(3) == 0 {
		r.Hold = l.Int64N(l.Storm.TTL.Milliseconds())
	}
	return r
}
