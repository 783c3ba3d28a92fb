package model

import "fmt"

// movesOf returns the moves of session i.
func (d Design) movesOf(s state, i int) (all []move) {
	if i == 2 {
		return d.lockRow(s)
	}
	switch s.sessions[i].at {
	case idle:
		return append(d.issue(s, i), d.begin(s, i)...)
	case issuing, stored, committed:
		return d.issue(s, i)
	case begun:
		switch {
		case d.Rule == Hold, d.Mistake == CheckedBeforeWait:
			return d.check(s, i, checked)
		}
		return d.take(s, i, rowLocked)
	case checked:
		return append(d.take(s, i, ready), d.rollbackTo(s, i)...)
	case rowLocked:
		return d.check(s, i, ready)
	case ready:
		return d.commit(s, i)
	}
	return nil
}

// to returns the state after a change of session i.
func to(s state, i int, change func(s *state, c *session)) state {
	change(&s, &s.sessions[i])
	return s
}

func name(i int) string { return string(rune('A' + i)) }

// lockRow lets the third session lock the row, and unlock it again.
func (d Design) lockRow(s state) []move {
	switch c := s.sessions[2]; {
	case c.at == idle && !s.others(2, func(o *session) bool { return o.row }):
		return []move{{what: "C locks the row", to: to(s, 2, func(_ *state, c *session) { c.at, c.row = begun, true })}}
	case c.at == begun:
		return []move{{what: "C unlocks the row", to: to(s, 2, func(_ *state, c *session) { c.end(); c.at = resting })}}
	}
	return nil
}

// issue takes a token: it locks the name against writes, stores the next token, commits, and returns the token.
func (d Design) issue(s state, i int) []move {
	c := s.sessions[i]
	switch c.at {
	case idle:
		busy := func(o *session) bool { return o.shared && d.Mistake != IssuedWithoutLock || o.exclusive }
		if c.asks == 0 || s.others(i, busy) {
			return nil
		}
		return []move{{what: name(i) + " asks for a token, and locks the name",
			to: to(s, i, func(s *state, c *session) {
				c.at, c.exclusive, c.known, c.asks = issuing, true, s.returned.highest(), c.asks-1
			})}}
	case issuing:
		floor := int8(0)
		if d.Mistake != SameAfterFailover {
			floor = s.epoch * 10 // a token of a new timeline is above all of the older ones
		}
		next := max(s.primary.newest, floor) + 1
		after := to(s, i, func(_ *state, c *session) { c.at, c.next = stored, next })
		what := fmt.Sprintf("%s stores token %d", name(i), next)
		if d.Mistake == ReturnedBeforeCommit {
			return []move{d.returns(after, i, what+", and is told it before the commit", stored)}
		}
		return []move{{what: what, to: after}}
	case stored:
		after := to(s, i, func(s *state, c *session) {
			s.commits(d, data{c.next, s.primary.mark, s.primary.version}, d.Mistake != NotDurable)
			c.at, c.exclusive = committed, false
		})
		if d.Mistake == ReturnedBeforeCommit {
			after.sessions[i].end()
			after.sessions[i].at = idle
		}
		return []move{{what: fmt.Sprintf("%s commits token %d", name(i), c.next), to: after}}
	}
	return []move{d.returns(s, i, fmt.Sprintf("%s gets token %d", name(i), c.next), idle)}
}

// returns gives session i its token. No token is returned twice, and each is above those that were returned before the
// session asked.
func (d Design) returns(s state, i int, what string, at step) move {
	next := s.sessions[i].next
	m := move{what: what}
	switch known := s.sessions[i].known; {
	case s.returned.has(next):
		m.broken = fmt.Sprintf("token %d is returned twice", next)
	case next < known:
		m.broken = fmt.Sprintf("token %d is returned, and token %d was before %s asked", next, known, name(i))
	}
	m.to = to(s, i, func(s *state, c *session) {
		c.token, s.returned = next, s.returned|1<<next
		if c.at = at; at == idle {
			c.end()
		}
	})
	return m
}

// commits makes what a transaction has written the primary's data. A commit that is acknowledged is on disk, and on a
// synchronous standby.
func (s *state) commits(d Design, written data, durable bool) {
	s.primary = written
	if durable {
		s.disk = written
	}
	if d.Failover == Synchronous && s.epoch == 0 {
		s.standby = written
	}
}

// begin begins a transaction with one write.
func (d Design) begin(s state, i int) []move {
	if s.sessions[i].writes == 0 || s.sessions[i].token == 0 {
		return nil
	}
	return []move{{what: fmt.Sprintf("%s begins a write with token %d", name(i), s.sessions[i].token),
		to: to(s, i, func(s *state, c *session) { c.at, c.snapshot = begun, s.primary })}}
}

// take locks the row. RowFence compares the row then.
func (d Design) take(s state, i int, next step) []move {
	if s.others(i, func(o *session) bool { return o.row }) {
		return nil
	}
	c := s.sessions[i]
	mark := s.primary.mark
	if d.Mistake == SnapshotOfRow {
		mark = c.snapshot.mark
	}
	switch {
	case d.Snapshot && c.snapshot.version != s.primary.version && d.Mistake != SnapshotOfRow:
		return []move{d.fails(s, i, "meets a row that is newer than its snapshot")}
	case d.Rule == RowFence && mark > c.token:
		return []move{d.fails(s, i, fmt.Sprintf("is refused: the row has token %d", mark))}
	case d.Rule == RowFence:
		next = ready
	}
	return []move{{what: name(i) + " locks the row", to: to(s, i, func(_ *state, c *session) { c.at, c.row = next, true })}}
}

// check compares the token with the ledger, under a lock that keeps new tokens off until the transaction ends.
func (d Design) check(s state, i int, next step) []move {
	locks := d.Mistake != WithoutLock && d.Mistake != CheckedBeforeWait
	if locks && s.others(i, func(o *session) bool { return o.exclusive && d.Mistake != IssuedWithoutLock }) {
		return nil
	}
	c := s.sessions[i]
	newest := s.primary.newest
	switch {
	case d.Mistake == WithoutLock || d.Mistake == OldSnapshot:
		newest = c.snapshot.newest // of the statement or of the transaction
	case d.Snapshot && newest != c.snapshot.newest:
		return []move{d.fails(s, i, "meets a token that is newer than its snapshot")}
	}
	if newest != c.token {
		return []move{d.fails(s, i, fmt.Sprintf("is refused: the ledger has token %d", newest))}
	}
	return []move{{what: fmt.Sprintf("%s finds token %d in the ledger", name(i), newest),
		to: to(s, i, func(_ *state, c *session) { c.at, c.shared = next, locks })}}
}

// rollbackTo rolls a transaction of Hold back to a savepoint from before the check. sqlfence refuses the COMMIT of such
// a transaction, so it leads nowhere.
func (d Design) rollbackTo(s state, i int) []move {
	if d.Mistake != RolledBackTo || !s.sessions[i].shared {
		return nil
	}
	return []move{{what: name(i) + " rolls back to a savepoint from before the check",
		to: to(s, i, func(_ *state, c *session) { c.shared = false })}}
}

// fails rolls the transaction back. The session doesn't try this write again.
func (d Design) fails(s state, i int, why string) move {
	return move{what: name(i) + " " + why, to: to(s, i, func(_ *state, c *session) {
		c.end()
		c.at, c.writes = idle, c.writes-1
	})}
}

// commit commits the write. Under Ledger and Hold the write's token must be the ledger's, and under RowFence the row's
// token must not fall.
func (d Design) commit(s state, i int) []move {
	c := s.sessions[i]
	m := move{what: fmt.Sprintf("%s commits its write with token %d", name(i), c.token)}
	switch {
	case d.Rule == RowFence && c.token < s.primary.mark:
		m.broken = fmt.Sprintf("the row's token falls from %d to %d", s.primary.mark, c.token)
	case d.Rule != RowFence && c.token < s.primary.newest:
		m.broken = fmt.Sprintf("a write with token %d is committed, after token %d was", c.token, s.primary.newest)
	case d.Rule != RowFence && d.Failover != Asynchronous && c.token < s.returned.highest():
		m.broken = fmt.Sprintf("a write with token %d is committed, after token %d was returned", c.token, s.returned.highest())
	}
	m.to = to(s, i, func(s *state, c *session) {
		s.commits(d, data{s.primary.newest, c.token, s.primary.version + 1}, true)
		c.end()
		c.at, c.writes = idle, c.writes-1
	})
	return []move{m}
}
