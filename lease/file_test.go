package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A file is a fake of SQLite, as a [server] is of PostgreSQL. It has one writer at a time, and readers see committed
// rows. Its clock counts milliseconds.
type file struct {
	writing chan struct{} // holds a value while a connection writes

	mu        sync.Mutex
	writer    int          // the connection that writes, or none
	inTx      map[int]bool // connections
	committed tables
	written   tables // by the writer
}

// none is no connection; a test itself is 0.
const none = -1

// tables are the tables of a file; nil is a missing table.
type tables struct {
	tokens  map[string]int64
	leases  map[string]row
	indexed bool
}

func (t tables) clone() tables { return tables{maps.Clone(t.tokens), maps.Clone(t.leases), t.indexed} }

func newFile() *file {
	return &file{writing: make(chan struct{}, 1), inTx: map[int]bool{}, writer: none}
}

func (f *file) answer(ctx context.Context, c fakedb.Call) (fakedb.Response, error) {
	switch {
	case c.Kind == fakedb.Begin:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inTx[c.Conn] = true
		return fakedb.Response{}, nil
	case c.Kind == fakedb.Commit, c.Kind == fakedb.Rollback:
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.inTx, c.Conn)
		f.end(c.Conn, c.Kind == fakedb.Commit)
		return fakedb.Response{}, nil
	case strings.HasPrefix(c.Query, "SELECT"), strings.HasPrefix(c.Query, "EXPLAIN"):
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.writer == c.Conn {
			return f.written.answer(c)
		}
		return f.committed.answer(c)
	}
	if err := f.begin(ctx, c.Conn); err != nil {
		return fakedb.Response{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	answer, err := f.written.answer(c)
	if !f.inTx[c.Conn] {
		f.end(c.Conn, err == nil)
	}
	return answer, err
}

// begin waits until no other connection writes.
func (f *file) begin(ctx context.Context, conn int) error {
	f.mu.Lock()
	writes := f.writer == conn
	f.mu.Unlock()
	if writes {
		return nil
	}
	select {
	case f.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writer, f.written = conn, f.committed.clone()
	return nil
}

func (f *file) end(conn int, commit bool) {
	if f.writer != conn {
		return
	}
	if commit {
		f.committed = f.written
	}
	f.writer = none
	<-f.writing
}

// answer has the effects of a statement, and returns the answer.
func (t *tables) answer(c fakedb.Call) (answer fakedb.Response, err error) {
	has := func(parts ...string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.Query, part) })
	}
	rows := func(rows ...[]any) fakedb.Response { return fakedb.Response{Rows: rows} }
	switch {
	case has("pragma_table_info"):
		answer.Columns = []string{"name", "type", "required"}
		if t.tokens != nil {
			answer.Rows = [][]any{{"name", "text", true}, {"token", "bigint", true}}
		}
		return answer, nil
	case has("CREATE TABLE IF NOT EXISTS fencing_tokens"):
		t.tokens = map[string]int64{}
		return answer, nil
	case has("CREATE TABLE IF NOT EXISTS fencing_leases"):
		t.leases = map[string]row{}
		return answer, nil
	case has("fencing_leases") && t.leases == nil:
		return answer, errors.New("no such table: fencing_leases")
	case has("EXPLAIN"):
		return answer, nil
	case has("pragma_index_list"):
		if t.indexed {
			answer = rows([]any{int64(1)})
		}
		return answer, nil
	case has("CREATE INDEX IF NOT EXISTS fencing_leases_expires_at"):
		t.indexed = true
		return answer, nil
	case has("INSERT INTO fencing_tokens", "VALUES (?, ?)"):
		t.tokens[c.Args[0].(string)] = c.Args[1].(int64)
		return answer, nil
	case has("INSERT INTO fencing_leases"):
		return t.take(c.Args[0].(string), c.Args[1].(string), c.Args[2].(string), millis(c.Args[3])), nil
	case has("SELECT COALESCE(l.expires_at"):
		return t.seen(c.Args[0].(string)), nil
	case has("DELETE FROM fencing_leases"):
		maps.DeleteFunc(t.leases, func(_ string, r row) bool {
			if !live(r) {
				answer.Affected++
			}
			return !live(r)
		})
		return answer, nil
	case has("SELECT 1 FROM fencing_leases"):
		if key, _ := t.find(c.Args[0]); key != "" {
			answer = rows([]any{int64(1)})
		}
		return answer, nil
	case has("SELECT key FROM fencing_leases", "lock_id IS NULL"):
		for key, r := range t.leases {
			if r.lockID == "" && r.holder == c.Args[0] || r.lockID == c.Args[0] {
				answer = rows([]any{key})
			}
		}
		return answer, nil
	case has("SELECT key, lock_id"):
		for _, key := range slices.Sorted(maps.Keys(t.leases)) {
			r := t.leases[key]
			if live(r) && (!has("key = ?") || key == c.Args[0]) && (!has("lock_id = ?") || r.lockID == c.Args[0]) {
				answer.Rows = append(answer.Rows, []any{key, r.lockID, r.holder, r.token, r.acquired.UnixMicro(), r.expires.UnixMicro(), false})
			}
		}
		return decided(c, answer, false), nil
	case isUndo(c):
		if key, r := t.find(c.Args[1]); key == c.Args[0] {
			r.lockID, r.expires = "", today()
			t.leases[key] = r
		}
		return answer, nil
	case isRelease(c):
		var hold time.Duration
		if isHold(c) {
			hold = millis(c.Args[1])
		}
		key, r := t.find(c.Args[len(c.Args)-1])
		if key == "" || !live(r) {
			return answer, nil
		}
		t.leases[key] = released(r, c.Args[0].(string), today(), hold)
		return rows([]any{key}), nil
	case isExtend(c):
		key, r := t.find(c.Args[1])
		if key == "" || !live(r) {
			return answer, nil
		}
		ttl := millis(c.Args[0])
		r.expires = today().Add(ttl)
		t.leases[key] = r
		return rows([]any{r.expires.UnixMicro(), micros(ttl)}), nil
	}
	return answer, fmt.Errorf("the file doesn't know: %v", c)
}

// today is the clock.
func today() time.Time { return time.Now().Truncate(time.Millisecond) }

func millis(arg any) time.Duration { return time.Duration(arg.(int64)) * time.Millisecond }

func live(r row) bool { return r.lockID != "" && r.expires.After(today()) }

func (t *tables) find(lockID any) (string, row) {
	for key, r := range t.leases {
		if r.lockID == lockID {
			return key, r
		}
	}
	return "", row{}
}

func (t *tables) take(key, lockID, owner string, ttl time.Duration) fakedb.Response {
	before := t.leases[key]
	if live(before) || t.tokens[key] < 0 || max(before.token, t.tokens[key]) >= sqlfence.MaxToken {
		return fakedb.Response{}
	}
	now := today()
	r := row{lockID: lockID, holder: owner, token: 1 + max(before.token, t.tokens[key]), acquired: now, expires: now.Add(ttl)}
	t.leases[key] = r
	return fakedb.Response{Rows: [][]any{{key, lockID, owner, r.token, now.UnixMicro(), r.expires.UnixMicro(), false, micros(ttl)}}}
}

func (t *tables) seen(key string) fakedb.Response {
	r, there := t.leases[key]
	if !there {
		return fakedb.Response{Rows: [][]any{{false, true, false, t.tokens[key], "", nil, nil, nil, nil, nil, nil, nil, nil, false, nil}}}
	}
	left := micros(r.expires.Sub(today()))
	var lockID any
	if r.lockID != "" {
		lockID = r.lockID
	}
	return fakedb.Response{Rows: [][]any{{
		live(r), true, false, t.tokens[key], r.holder, r.expires.UnixMicro(), left,
		key, lockID, r.holder, r.token, r.acquired.UnixMicro(), r.expires.UnixMicro(), false, left,
	}}}
}
