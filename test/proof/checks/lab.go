//go:build linux

package checks

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/test/proof/storm"
)

// A Lab is the processes of a fence on a database of PostgreSQL's. The clocks of processes with even numbers are ahead.
type Lab struct {
	target  *storm.Target
	program fence.Program
	table   *history.Table
	db      *sql.DB

	id      int64
	row     int64
	running map[int]*fence.Process
}

// New makes a program create its tables. The checks write the given table of the history, which has a lock for each
// row.
func New(t *testing.T, target *storm.Target, p fence.Program, tables []history.Table, table, ledger string) *Lab {
	t.Helper()
	db, err := sql.Open("pgx", target.Direct())
	l := &Lab{
		target: target, program: p, table: history.Find(tables, table), db: harness.CloseAtEnd(t, db, err),
		running: make(map[int]*fence.Process),
	}
	if err := l.patient(); err != nil {
		t.Fatal(err)
	}
	first, err := p.Start(l.opening(1, true))
	if err != nil {
		t.Fatal(err)
	}
	first.Kill()
	if err := history.Install(t.Context(), target.Admin, target.Database, tables, ledger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for process := range l.running {
			l.end(process)
		}
	})
	return l
}

// patient has the server leave a transaction alone for longer than a pause of a check, and what waits for it for longer
// still: else it would end what the check is about.
func (l *Lab) patient() error {
	var name string
	err := l.db.QueryRow("SELECT quote_ident(current_database())").Scan(&name)
	for _, setting := range []string{"idle_in_transaction_session_timeout = '1500ms'", "lock_timeout = '2s'"} {
		if err == nil {
			_, err = l.db.Exec("ALTER DATABASE " + name + " SET " + setting)
		}
	}
	return err
}

// Run returns what was seen of the checks that aren't kept, by their names.
func (l *Lab) Run(t *testing.T) map[string]*Seen {
	t.Helper()
	found := make(map[string]*Seen)
	for i, c := range List {
		l.row = 1 + int64(i)%l.table.Rows
		var err error
		harness.Eventually(t, "there is time for: "+c.Name, func() bool {
			err = c.do(l)
			return !errors.Is(err, errSlow)
		})
		var seen *Seen
		switch {
		case errors.As(err, &seen):
			found[c.Name] = seen
		case err != nil:
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	return found
}

// Seen is what was seen where a check isn't kept.
type Seen struct {
	Text    string
	Without bool // the check hasn't come to its question, for something else that doesn't hold
}

func (s *Seen) Error() string { return s.Text }

func broken(format string, args ...any) error { return &Seen{Text: fmt.Sprintf(format, args...)} }

func without(format string, args ...any) error {
	return &Seen{Text: fmt.Sprintf(format, args...), Without: true}
}

// reached is for what is itself the question.
func reached(err error) error {
	var seen *Seen
	if errors.As(err, &seen) {
		return broken("%s", seen.Text)
	}
	return err
}

// errSlow is for a check that the machine was too slow for.
var errSlow = errors.New("a lock has ended before the check had")

func (l *Lab) opening(process int, setup bool) fence.Request {
	l.id++
	r := fence.Request{
		ID: l.id, Do: fence.Open, Database: l.target.Database, DSN: l.target.DSN, Process: process, Setup: setup, TTL: long.Milliseconds(),
	}
	if process%2 == 0 {
		r.Clock = 2 * long.Milliseconds()
	}
	return r
}

// ask sends a request to a process, and starts the process if necessary. A fence under no fault has to answer.
func (l *Lab) ask(process int, r fence.Request) (<-chan fence.Answer, error) {
	p := l.running[process]
	if p == nil {
		var err error
		if p, err = l.program.Start(l.opening(process, false)); err != nil {
			return nil, err
		}
		l.running[process] = p
	}
	answer := make(chan fence.Answer, 1)
	go func() { answer <- p.Ask(r, harness.Patience) }()
	return answer, nil
}

// end kills a process. The next request starts it again.
func (l *Lab) end(process int) {
	if p := l.running[process]; p != nil {
		p.Kill()
		delete(l.running, process)
	}
}

// A lock is one that a process has taken, or asks for.
type lock struct {
	process int
	row     int64
	id      string
	token   int64
	ends    time.Time // not before that

	answer <-chan fence.Answer
}

// lasts reports whether a long lock hasn't ended yet.
func (k *lock) lasts() bool { return time.Now().Before(k.ends) }

func (l *Lab) name(k *lock) string { return l.table.Resource(k.row) }

// another returns another row than the check's own.
func (l *Lab) another() int64 { return 1 + l.row%l.table.Rows }

// asks has a process ask for the lock, and stand still for hold behind it, if the program has such a place.
func (l *Lab) asks(process int, ttl, hold time.Duration) (k *lock, err error) {
	l.id++
	k = &lock{process: process, row: l.row, ends: time.Now().Add(ttl)}
	k.answer, err = l.ask(process, fence.Request{
		ID: l.id, Do: fence.Acquire, Name: l.name(k), TTL: ttl.Milliseconds(), Hold: hold.Milliseconds(),
	})
	return k, err
}

// taken waits for the answer, and reports whether the lock was given.
func (k *lock) taken() bool {
	a := <-k.answer
	k.id, k.token = a.Lock, a.Token
	return a.Is == fence.OK
}

// try takes the lock, and returns nil where another has it.
func (l *Lab) try(process int) (*lock, error) {
	k, err := l.asks(process, long, 0)
	if err != nil || !k.taken() {
		return nil, err
	}
	return k, nil
}

// take takes the lock as soon as it is free.
func (l *Lab) take(process int, ttl time.Duration) (*lock, error) {
	return l.takeUnless(func() bool { return false }, process, ttl)
}

// takeUnless takes the lock as soon as it is free, and returns nil if something has ended before.
func (l *Lab) takeUnless(ended func() bool, process int, ttl time.Duration) (*lock, error) {
	for limit := time.Now().Add(long + 20*short); ; time.Sleep(5 * time.Millisecond) {
		k, err := l.asks(process, ttl, 0)
		switch {
		case err != nil:
			return nil, err
		case k.taken():
			return k, nil
		case ended():
			return nil, nil
		case time.Now().After(limit):
			return nil, without("process %d can't take the lock, though the one before should have ended", process)
		}
	}
}

// pass has the lock go from one process to another without a release.
func (l *Lab) pass(former, newer int) (a, b *lock, err error) {
	if a, err = l.take(former, short); err != nil {
		return nil, nil, err
	}
	b, err = l.take(newer, long)
	return a, b, err
}

// release gives a lock back. The response is ignored, because a former holder may get any response.
func (l *Lab) release(k *lock) error {
	l.id++
	answer, err := l.ask(k.process, fence.Request{ID: l.id, Do: fence.Release, Name: l.name(k), Lock: k.id})
	if err == nil {
		<-answer
	}
	return err
}

// A write is a sent write request.
type write struct {
	lab    *Lab
	lock   *lock
	id     int64
	answer <-chan fence.Answer

	err  error
	said fence.Answer
	seq  int64 // where it has landed; 0 is nowhere
}

// begin sends a write. The write pauses for hold before its statement, if the program supports a pause.
func (l *Lab) begin(k *lock, hold time.Duration) *write {
	l.id++
	w := &write{lab: l, lock: k, id: l.id}
	w.answer, w.err = l.ask(k.process, fence.Request{
		ID: w.id, Do: fence.Write, Name: l.name(k), Lock: k.id, Tokens: []fence.Token{{Name: l.name(k), Value: k.token}},
		Steps: []fence.Step{{Table: l.table.Name, Row: k.row, Form: "update"}}, Hold: hold.Milliseconds(),
	})
	return w
}

// answered reports whether the answer is there.
func (w *write) answered() bool { return w.err != nil || len(w.answer) > 0 }

// wait waits for the answer, and looks for what has landed.
func (w *write) wait() *write {
	if w.err == nil {
		w.said = <-w.answer
		const query = "SELECT COALESCE(max(seq), 0) FROM history WHERE op = $1 AND what <> 'commit'"
		w.err = w.lab.db.QueryRow(query, w.id).Scan(&w.seq)
	}
	return w
}

func (w *write) landed() bool { return w.seq > 0 }

// told returns an error if the answer isn't what has happened.
func (w *write) told() error {
	switch is := w.said.Is; {
	case w.err != nil:
		return w.err
	case is == fence.OK && !w.landed():
		return broken("a write of token %d was acknowledged, and isn't there", w.lock.token)
	case is != fence.OK && is != fence.Unknown && w.landed():
		return broken("a write of token %d has landed, and the answer was: %s %s", w.lock.token, is, w.said.Error)
	}
	return nil
}

func (l *Lab) write(k *lock) *write { return l.begin(k, 0).wait() }

// lands has a lock's holder write.
func (l *Lab) lands(k *lock) error { return l.write(k).hasToLand() }

// hasToLand returns an error if the write of a lock's holder hasn't landed.
func (w *write) hasToLand() error {
	switch {
	case w.err != nil || w.landed():
		return w.err
	case !w.lock.lasts(), w.said.Is == fence.Failed: // for a lock that it waited for
		return errSlow
	}
	return without("the write of the holder, token %d, doesn't land: %s %s", w.lock.token, w.said.Is, w.said.Error)
}

// behind returns an error if a stale write has landed after a newer write.
func behind(stale, newer *write) error {
	err := cmp.Or(stale.err, newer.hasToLand())
	if err == nil && stale.seq > newer.seq {
		err = broken("token %d writes the row behind %d", stale.lock.token, newer.lock.token)
	}
	return err
}

// lockRow has all writes of the row wait, until it is unlocked.
func (l *Lab) lockRow() (unlock func(), err error) {
	tx, err := l.db.BeginTx(context.Background(), nil)
	if err == nil {
		_, err = tx.Exec("SET LOCAL idle_in_transaction_session_timeout = 0")
	}
	if err == nil {
		_, err = tx.Exec(fmt.Sprintf("SELECT FROM %s WHERE id = %d FOR UPDATE", l.table.Name, l.row))
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = tx.Rollback() }, nil
}

// blocked has a process take the lock and write the row, which waits until that is unlocked.
func (l *Lab) blocked(ttl time.Duration) (w *write, unlock func(), err error) {
	k, err := l.take(1, ttl)
	if err != nil {
		return nil, nil, err
	}
	if unlock, err = l.lockRow(); err != nil {
		return nil, nil, err
	}
	w = l.begin(k, 0)
	l.settle(w)
	return w, unlock, nil
}

// untilIdle waits until no statement of the processes is under way.
func (l *Lab) untilIdle() {
	const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'"
	for active := 1; active > 0; time.Sleep(5 * time.Millisecond) {
		if err := l.db.QueryRow(query).Scan(&active); err != nil {
			return
		}
	}
}

// settle waits until each of the writes has ended or waits for a lock.
func (l *Lab) settle(writes ...*write) {
	const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for {
		under := 0
		for _, w := range writes {
			if !w.answered() {
				under++
			}
		}
		waiting := 0
		if err := l.db.QueryRow(query).Scan(&waiting); err != nil || waiting >= under {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
