package lease_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A server is a fake PostgreSQL. It recognizes the statements of package lease by their text, and has their effects; an
// unknown statement is an error. Tests with a real server check that the server accepts the statements, and check
// concurrent statements.
type server struct {
	mu       sync.Mutex
	tokens   map[string]int64 // nil: the table doesn't exist
	leases   map[string]row   // likewise
	locks    map[int64]int    // advisory locks, with the connection of the session that holds it
	indexed  bool             // the index on expires_at is there
	notified []string
	busy     map[string]bool         // keys whose rows somebody has locked
	fails    func(fakedb.Call) error // nil, or refuses statements
	marks    map[int]any             // of the sessions, by their connections
	isolated bool                    // transactions are above READ COMMITTED
	standby  bool                    // it may lag behind
	refused  int                     // how many marks of waiters are refused, as if the lease had changed hands
}

// A row of fencing_leases; an empty lockID is NULL, as is a session of 0.
type row struct {
	lockID, holder    string
	session, token    int64
	acquired, expires time.Time
	notifyUntil       time.Time
}

func (s *server) answer(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Query = fakedb.Plain(c.Query)
	has := func(parts ...string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.Query, part) })
	}
	if s.fails != nil {
		if err := s.fails(c); err != nil {
			return fakedb.Response{}, err
		}
	}
	if answer, err, known := s.answerSetup(has); known {
		return answer, err
	}
	switch {
	case has("INSERT INTO fencing_tokens", "DO NOTHING"):
		for _, name := range strings.Split(strings.Trim(c.Args[0].(string), "[]"), ",") {
			s.tokens[strings.Trim(name, `"`)] += 0
		}
	case slices.Contains([]string{"BEGIN", "COMMIT", "ROLLBACK"}, c.Query):
	case has("set_config('sqlfence.session'"):
		if s.marks == nil {
			s.marks = make(map[int]any)
		}
		s.marks[c.Conn] = c.Args[0]
	case has("current_setting('sqlfence.session'"):
		return fakedb.Response{Rows: [][]any{{s.marks[c.Conn] == c.Args[0]}}}, nil
	case has("pg_advisory_lock("):
		s.locks[c.Args[0].(int64)] = c.Conn
	case has("pg_advisory_unlock("):
		id := c.Args[0].(int64)
		held := s.locks[id] == c.Conn
		delete(s.locks, id)
		return fakedb.Response{Rows: [][]any{{held}}}, nil
	case isUndo(c):
		return s.undo(c)
	case isAcquire(c) && isShared(c):
		return s.acquireAll(c)
	case isAcquire(c):
		return s.acquire(c)
	case isRelease(c) && isShared(c):
		return s.releaseAll(c)
	case isRelease(c):
		return s.release(c)
	case isExtend(c):
		return s.extend(c)
	case has("DELETE FROM fencing_leases"):
		return s.sweep(), nil
	case has("SELECT 1 FROM fencing_leases"):
		if key, _ := s.find(c.Args[0].(string)); key != "" {
			return fakedb.Response{Rows: [][]any{{int64(1)}}}, nil
		}
	case has("SELECT key FROM fencing_leases", "lock_id IS NULL"):
		for key, r := range s.leases {
			if r.lockID == "" && r.holder == c.Args[0] || r.lockID == c.Args[0] {
				return fakedb.Response{Rows: [][]any{{key}}}, nil
			}
		}
	case has("SELECT key, lock_id"):
		return decided(c, s.list(c), s.standby), nil
	default:
		return fakedb.Response{}, fmt.Errorf("the server doesn't know: %v", c)
	}
	return fakedb.Response{}, nil
}

// answerSetup answers statements about the tables themselves, and reports whether the statement was one of them.
func (s *server) answerSetup(has func(parts ...string) bool) (answer fakedb.Response, err error, known bool) {
	creates := has("CREATE TABLE")
	switch {
	case has("fencing_leases") && s.leases == nil && !creates, has("fencing_tokens") && s.tokens == nil && !creates && !has("pg_attribute"):
		err = stateError("42P01")
	case has("EXPLAIN"):
	case has("pg_index"):
		if s.indexed {
			answer.Rows = [][]any{{int64(1)}}
		}
	case has("CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at)"):
		s.indexed = true
	case has("pg_attribute"):
		if s.tokens != nil {
			answer = fakedb.Response{Columns: []string{"name", "type", "required"}, Rows: [][]any{{"name", "text", true}, {"token", "bigint", true}}}
		}
	case has("CREATE TABLE IF NOT EXISTS fencing_tokens"):
		s.tokens = map[string]int64{}
	case has("CREATE TABLE IF NOT EXISTS fencing_leases"):
		s.leases = map[string]row{}
	default:
		return answer, nil, false
	}
	return answer, err, true
}

func (s *server) live(r row) bool {
	_, alive := s.locks[r.session]
	return r.expires.After(time.Now()) && (r.session == 0 || alive)
}

// find returns the row with a lock id, live or not.
func (s *server) find(lockID string) (string, row) {
	for key, r := range s.leases {
		if r.lockID == lockID {
			return key, r
		}
	}
	return "", row{}
}

func micros(d time.Duration) any { return d.Microseconds() }

func (s *server) acquire(c fakedb.Call) (fakedb.Response, error) {
	key, lockID, owner := c.Args[0].(string), c.Args[1].(string), c.Args[2].(string)
	ttl := time.Duration(c.Args[3].(int64)) * time.Microsecond
	session, _ := c.Args[4].(int64)
	refresh := c.Args[5].(bool)
	now := time.Now()
	before, there := s.leases[key]
	live, ready := s.live(before), session == 0
	if !ready {
		_, ready = s.locks[session]
	}
	marked := len(c.Args) > 6 && s.refused == 0
	s.refused = max(0, s.refused-1)
	if marked && live {
		before.notifyUntil = now.Add(time.Duration(c.Args[6].(int64))*time.Microsecond + time.Minute)
		s.leases[key] = before
	}
	values := []any{live, ready, marked, s.tokens[key], before.holder, nil, nil}
	if there {
		values[5], values[6] = before.expires.UnixMicro(), micros(before.expires.Sub(now))
	}
	r := before
	switch {
	case live && before.lockID == lockID:
	case !ready, live && (owner == "" || owner != before.holder), !live && (s.tokens[key] < 0 || s.tokens[key] >= sqlfence.MaxToken):
		return fakedb.Response{Rows: [][]any{append(values, nil, nil, nil, nil, nil, nil, false, nil)}}, nil
	case live && refresh:
		r.expires = now.Add(ttl)
	case !live:
		r = row{lockID, owner, session, 1 + max(before.token, s.tokens[key]), now, now.Add(ttl), before.notifyUntil}
		s.tokens[key] = r.token
	}
	s.leases[key] = r
	values = append(values, key, r.lockID, r.holder, r.token, r.acquired.UnixMicro(), r.expires.UnixMicro(), r.session != 0, micros(r.expires.Sub(now)))
	return fakedb.Response{Rows: [][]any{values}}, nil
}

func (s *server) extend(c fakedb.Call) (fakedb.Response, error) {
	key, r := s.find(c.Args[0].(string))
	if key == "" || !s.live(r) {
		return fakedb.Response{}, nil
	}
	ttl := time.Duration(c.Args[1].(int64)) * time.Microsecond
	r.expires = time.Now().Add(ttl)
	s.leases[key] = r
	return fakedb.Response{Rows: [][]any{{r.expires.UnixMicro(), micros(ttl)}}}, nil
}

func (s *server) release(c fakedb.Call) (fakedb.Response, error) {
	key, r := s.find(c.Args[0].(string))
	if key == "" || !s.live(r) {
		return fakedb.Response{}, nil
	}
	var hold time.Duration
	if isHold(c) {
		hold = time.Duration(c.Args[2].(int64)) * time.Microsecond
	}
	s.leases[key] = released(r, c.Args[1].(string), time.Now(), hold)
	if strings.Contains(c.Query, "THEN pg_catalog.pg_notify('sqlfence_leases', l.key)") {
		if r.notifyUntil.After(time.Now()) {
			s.notified = append(s.notified, key)
		}
		return fakedb.Response{Rows: [][]any{{key, ""}}}, nil
	}
	return fakedb.Response{Rows: [][]any{{key}}}, nil
}

// acquireAll leaves out what acquire could not settle without an owner.
func (s *server) acquireAll(c fakedb.Call) (all fakedb.Response, err error) {
	var requests []struct {
		Key    string `json:"key"`
		LockID string `json:"lock_id"`
		Holder string `json:"holder"`
		TTL    int64  `json:"ttl"`
	}
	if err := json.Unmarshal([]byte(c.Args[0].(string)), &requests); err != nil {
		return all, err
	}
	for _, r := range requests {
		before := s.leases[r.Key]
		settled := !s.busy[r.Key]
		if s.live(before) && (before.lockID == r.LockID || r.Holder != "" && r.Holder == before.holder) ||
			!s.live(before) && (s.tokens[r.Key] < 0 || s.tokens[r.Key] >= sqlfence.MaxToken) {
			settled = false
		}
		if !settled {
			all.Rows = append(all.Rows, []any{r.LockID, false, !s.isolated, false, true, false, int64(0), "", nil, nil, nil, nil, nil, nil, nil, nil, false, nil})
			continue
		}
		one, err := s.acquire(fakedb.Call{Args: []any{r.Key, r.LockID, r.Holder, r.TTL, nil, false}})
		if err != nil {
			return all, err
		}
		all.Rows = append(all.Rows, append([]any{r.LockID, true, !s.isolated}, one.Rows[0]...))
	}
	return all, nil
}

func (s *server) releaseAll(c fakedb.Call) (all fakedb.Response, err error) {
	var requests []struct {
		LockID  string `json:"lock_id"`
		Release string `json:"release"`
	}
	if err := json.Unmarshal([]byte(c.Args[0].(string)), &requests); err != nil {
		return all, err
	}
	for _, r := range requests {
		if key, _ := s.find(r.LockID); s.busy[key] {
			continue
		}
		one, err := s.release(fakedb.Call{Query: c.Query, Args: []any{r.LockID, r.Release}})
		if err != nil {
			return all, err
		}
		for _, row := range one.Rows {
			all.Rows = append(all.Rows, append([]any{r.LockID}, row...))
		}
	}
	return all, nil
}

func (s *server) undo(c fakedb.Call) (fakedb.Response, error) {
	key, lockID := c.Args[0].(string), c.Args[1].(string)
	r, there := s.leases[key]
	if !there || r.lockID == lockID {
		r.lockID, r.session, r.expires = "", 0, time.Now()
		s.leases[key] = r
	}
	return fakedb.Response{}, nil
}

func (s *server) sweep() (answer fakedb.Response) {
	maps.DeleteFunc(s.leases, func(_ string, r row) bool {
		ended := !s.live(r)
		if ended {
			answer.Affected++
		}
		return ended
	})
	return answer
}

// decided prepends the columns of queries that decide by their answer.
func decided(c fakedb.Call, list fakedb.Response, standby bool) fakedb.Response {
	if !strings.Contains(c.Query, "AS found") {
		return list
	}
	list.Columns = make([]string, 10)
	for i, row := range list.Rows {
		list.Rows[i] = append([]any{standby, true, int64(1)}, row...)
	}
	if len(list.Rows) == 0 {
		list.Rows = [][]any{append([]any{standby, false}, make([]any, 8)...)}
	}
	return list
}

func (s *server) list(c fakedb.Call) (answer fakedb.Response) {
	for _, key := range slices.Sorted(maps.Keys(s.leases)) {
		r := s.leases[key]
		byKey, byID := strings.Contains(c.Query, "key = $1"), strings.Contains(c.Query, "lock_id = $1")
		if !s.live(r) || byKey && key != c.Args[0] || byID && r.lockID != c.Args[0] {
			continue
		}
		answer.Rows = append(answer.Rows, []any{key, r.lockID, r.holder, r.token, r.acquired.UnixMicro(), r.expires.UnixMicro(), r.session != 0})
	}
	return answer
}
