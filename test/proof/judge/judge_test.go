package judge

import (
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A correct history has no violation. Each violation that is planted in a copy of the history must be found.
func TestPlants(t *testing.T) {
	plants(t, wellBehaved(history.All), "")
	plants(t, wellBehaved(history.For(false, false)), "a token is issued before a write of the one before is committed")
}

// plants plants every violation except the one named in without.
func plants(t *testing.T, good *history.History, without string) {
	t.Helper()
	v := New().Check(good, time.Minute)
	if len(v.Violations) > 0 {
		t.Fatalf("found in a history in which all is well: %v", v.Violations)
	}
	if !v.Counts.Contended() {
		t.Errorf("it counts as one without contention: %+v", v.Counts)
	}
	for _, p := range Plants {
		planted, ok := p.Into(good)
		if !ok {
			if p.Name != without {
				t.Errorf("no place for: %s", p.Name)
			}
			continue
		}
		if v := New().Check(planted, time.Minute); len(v.Violations) == 0 {
			t.Errorf("not found: %s", p.Name)
		}
	}
	if again := New().Check(good, time.Minute); len(again.Violations) > 0 {
		t.Errorf("a plant has changed the history that it was planted into a copy of: %v", again.Violations)
	}
}

// A commit after a newer token was issued breaks the promise that only the newest token's holder writes.
func TestCommitBehindANewerToken(t *testing.T) {
	h := *wellBehaved(history.All)
	if !commitLate(&h) {
		t.Fatal("no place")
	}
	v := New().Check(&h, time.Minute).Violations
	if len(v) != 1 || v[0].Promise != Newest {
		t.Errorf("found: %v", v)
	}
}

// A recorder writes the history of a database that runs one operation at a time.
type recorder struct {
	h   *history.History
	seq int64
}

func (r *recorder) asked(request fence.Request, answer fence.Answer, events ...history.Event) {
	id := int64(len(r.h.Ops) + 1)
	request.ID = id
	at := time.Duration(id) * time.Millisecond
	r.h.Ops[id] = &history.Op{Request: request, Answer: answer, Call: at, Return: at + time.Microsecond}
	for _, e := range events {
		r.seq++
		e.Seq = r.seq
		if e.What == history.Update || e.What == history.Commit || e.What == history.Edit {
			e.Op = id
		}
		r.h.Events = append(r.h.Events, e)
	}
}

// write records a write of row 1 under a token. was and mark are the fence column's values before and after the write.
func (r *recorder) write(table, name string, token, was, mark int64, is string) {
	request := fence.Request{Do: fence.Write, Steps: []fence.Step{{Table: table, Row: 1, Form: "update"}}}
	if name != "" {
		request.Tokens = []fence.Token{{Name: name, Value: token}}
	}
	if is != fence.OK {
		r.asked(request, fence.Answer{Is: is})
		return
	}
	r.asked(request, fence.Answer{Is: is, Rows: 1}, history.Event{What: history.Update, Name: table, Row: 1, Was: was, Mark: mark})
}

// transaction records a transaction that writes row 1 and commits. If written is 0, it records only the commit.
func (r *recorder) transaction(table string, token, was int64, written int64) {
	request := fence.Request{
		Do: fence.Write, Steps: []fence.Step{{Table: table, Row: 1, Form: history.Bulk}}, Level: "serializable",
		Tokens: []fence.Token{{Name: table, Value: token}},
	}
	events := []history.Event{{What: history.Update, Name: table, Row: 1, Was: was, Mark: token}, {What: history.Commit}}
	r.asked(request, fence.Answer{Is: fence.OK, Rows: written}, events[1-written:]...)
}

func (r *recorder) grant(do, name string, token int64, more ...history.Event) {
	events := append([]history.Event{{What: history.Ledger, Name: name, Was: token - 1, Mark: token}}, more...)
	r.asked(fence.Request{Do: do, Name: name}, fence.Answer{Is: fence.OK, Token: token}, events...)
}

func wellBehaved(tables []history.Table) *history.History {
	r := recorder{h: &history.History{Tables: tables, Ops: make(map[int64]*history.Op), TTL: time.Second}}
	const second = 1_000_000
	for token := int64(1); token <= 3; token++ {
		r.grant(fence.Issue, "marked", token)
		r.write("marked", "marked", token, token-1, token, fence.OK)
		r.write("marked", "marked", token-1, 0, 0, fence.Stale)

		if history.Find(tables, "removed") != nil {
			r.grant(fence.Issue, "removed", token)
			r.transaction("removed", token, token-1, 1)
			r.transaction("removed", token-1, 0, 0) // a stale transaction that has met no row
		}

		began := token * 10 * second
		lease := history.Event{What: history.Grant, Name: "leased/1", Mark: token, Began: began, Ended: began + second}
		if token > 1 {
			lease.Op = began - 10*second + second + second/2 // after the lease before has ended
		}
		renewed := lease
		renewed.What, renewed.Op, renewed.Ended = history.Renew, lease.Ended, began+second+second/2
		r.grant(fence.Acquire, "leased/1", token, lease, renewed)
		r.write("leased", "leased/1", token, token-1, token, fence.OK)
		read := fence.Request{Do: fence.Read, Steps: []fence.Step{{Table: "leased", Row: 1}}}
		r.asked(read, fence.Answer{Is: fence.OK, Value: int64(len(r.h.Ops)), Mark: token})

		r.write("versions", "", 0, token, token+1, fence.OK)
		r.asked(fence.Request{Do: fence.Write, User: 3, Steps: []fence.Step{{Table: "edited", Row: 1}}}, fence.Answer{Is: fence.OK, Rows: 1},
			history.Event{What: history.Edit, Name: "edited", Row: 1, Was: 3, Mark: 3, Began: began, Ended: began + second},
			history.Event{What: history.Update, Name: "edited", Row: 1, Was: token, Mark: token + 1})
		claim := fence.Request{Do: fence.Claim, Steps: []fence.Step{{Table: "claimed", Row: 1}}}
		r.asked(claim, fence.Answer{Is: fence.OK, Rows: 1, Token: token},
			history.Event{What: history.Update, Name: "claimed", Row: 1, Was: token - 1, Mark: token})
		r.write("claimed", "claimed/1", token, token, token, fence.OK)
	}
	return r.h
}
