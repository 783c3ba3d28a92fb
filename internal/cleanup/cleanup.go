// Package cleanup does work that outlives its caller: it releases a lock or lease that a statement may have taken after
// its caller left, and ends the statement on the server.
//
// Cleanup must not take connections from waiting callers. So a database has a single [Queue], with a single goroutine
// and at most one connection. While the pool has no free connection, the queue still takes a connection for a quarter
// of the time, because a lease that isn't released may block the very callers that wait.
package cleanup

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

const (
	// most is the maximum number of waiting tasks. Beyond it, each new task drops a waiting task: the oldest one that
	// Do has already tried without an error, or else the oldest of all.
	most = 1000

	// limit bounds one try, with the wait for a connection.
	limit = 2 * time.Second

	// firstBackoff is the time between the first two tries of a task that isn't done. Each further pause is twice as
	// long, up to lastBackoff if the tries fail.
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 2 * time.Second

	// overtime is how long a queue does tasks although the pool has no free connection. Then the queue pauses for the
	// time between, unless a connection becomes free.
	overtime = 100 * time.Millisecond
	between  = 300 * time.Millisecond
)

// A Queue does tasks one after the other. [New] returns one. It is safe for concurrent use and needs no closing:
// its goroutine ends with the last task, and all tasks are dropped when the database has been closed.
type Queue struct {
	db *sql.DB

	mu      sync.Mutex
	tasks   []*Task       // in the order of next
	added   chan struct{} // has a value if a task was added since the goroutine last looked
	running bool
}

// New returns a queue without tasks, for connections of db.
func New(db *sql.DB) *Queue { return &Queue{db: db, added: make(chan struct{}, 1)} }

// A Task is tried until it is done or its time is over.
type Task struct {
	// Do tries the task once, and reports whether the task is done. Otherwise the queue tries the task again after a
	// pause.
	Do func(ctx context.Context, db *sql.DB) (done bool, err error)
	// For is how long the queue tries the task after Add.
	For time.Duration
	// Dropped is called if the task isn't done within For, unless the database has been closed. err is the last error,
	// or nil. Dropped may be nil.
	Dropped func(err error)

	added, until, next time.Time
	backoff            time.Duration
	repeated           bool // Do has returned without an error
	err                error
}

var errTooMany = errors.New("too many tasks of callers that have gone")

// Add adds a task and returns at once.
func (q *Queue) Add(t *Task) {
	now := time.Now()
	t.added, t.until, t.next, t.backoff = now, now.Add(t.For), now, firstBackoff
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.tasks) == most {
		at := slices.Index(q.tasks, slices.MinFunc(q.tasks, func(a, b *Task) int {
			switch {
			case a.repeated == b.repeated:
				return a.added.Compare(b.added)
			case a.repeated:
				return -1
			}
			return 1
		}))
		q.tasks[at].drop(errTooMany)
		q.tasks = slices.Delete(q.tasks, at, at+1)
	}
	q.insert(t)
	select {
	case q.added <- struct{}{}:
	default:
	}
	if !q.running {
		q.running = true
		go q.run()
	}
}

// insert puts a task in its place. The caller must hold mu.
func (q *Queue) insert(t *Task) {
	at, _ := slices.BinarySearchFunc(q.tasks, t, func(a, b *Task) int {
		if a.next.After(b.next) {
			return 1
		}
		return -1
	})
	q.tasks = slices.Insert(q.tasks, at, t)
}

// run does the tasks until none is left.
func (q *Queue) run() {
	ended := time.Now() // end of the last or current overtime
	for {
		t, wait := q.first()
		switch {
		case t == nil:
			return
		case wait > 0:
			q.await(wait)
		case q.IsBusy() && time.Now().After(ended) && time.Since(ended) < between:
			time.Sleep(firstBackoff)
		default:
			if now := time.Now(); now.Sub(ended) >= between {
				ended = now.Add(overtime)
			}
			q.try(t)
		}
	}
}

// first returns the task that comes next and how long to wait for its time. Without a task, first records that the
// goroutine ends.
func (q *Queue) first() (*Task, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.tasks = slices.DeleteFunc(q.tasks, func(t *Task) bool {
		if now.Before(t.until) {
			return false
		}
		t.drop(t.err)
		return true
	})
	if len(q.tasks) == 0 {
		q.running = false
		return nil, 0
	}
	t := q.tasks[0]
	return t, t.next.Sub(now)
}

// await waits, at most until a task is added.
func (q *Queue) await(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.added:
	}
}

// IsBusy reports whether a caller would have to wait for a connection of the pool.
func (q *Queue) IsBusy() bool {
	s := q.db.Stats()
	return s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections
}

// try tries a task. If the task isn't done, its next try comes after a pause, and other tasks before that.
func (q *Queue) try(t *Task) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done, err := t.Do(ctx, q.db)
	q.mu.Lock()
	defer q.mu.Unlock()
	if dberr.IsClosed(err) {
		q.tasks = nil
		return
	}
	at := slices.Index(q.tasks, t)
	if at < 0 { // the task was dropped
		return
	}
	q.tasks = slices.Delete(q.tasks, at, at+1)
	if done && err == nil {
		return
	}
	t.next = time.Now().Add(t.backoff)
	t.backoff *= 2
	if t.err = err; err != nil {
		t.next = minTime(t.next, t.until)
		t.backoff = min(t.backoff, lastBackoff)
	} else {
		t.repeated = true
	}
	q.insert(t)
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (t *Task) drop(err error) {
	if t.Dropped != nil {
		t.Dropped(err)
	}
}
