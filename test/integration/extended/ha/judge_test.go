//go:build linux

package ha_test

import (
	"cmp"
	"database/sql"
	"slices"
	"testing"
)

// A verdict is what a run has shown: the tokens and writes of clients beside what is in the database at its end.
type verdict struct {
	tokens int // given out
	twice  int // a second time, of the same name
	fell   int // not above one whose answer had come before the question, on the same or an earlier timeline
	behind int // the same, of an older timeline: a primary issued it beside a newer one

	stale, refused, notIssued int // writes under replaced tokens, and how many of them were refused, and as what
	acknowledged              int // the others
	unknown                   int // of all writes

	landed    int            // in the database
	over      map[string]int // by table, those behind a newer one of their row, or beside a newer token of the ledger
	lost      int            // acknowledged, and not in the database
	forbidden int            // in the database, though an error had said that they aren't
}

// guarded returns how many stale writes stand over newer ones in tables that sqlfence guards.
func (v *verdict) guarded() (n int) {
	for _, t := range tables {
		if t.rules != nil {
			n += v.over[t.name]
		}
	}
	return n
}

type entry struct {
	write, table           string
	row                    int
	version, token, newest int64
}

// judge compares what the clients know with the journal, of which a failover may have lost a part.
func judge(t *testing.T, tr *trail, db *sql.DB) *verdict {
	t.Helper()
	entries := readJournal(t, db)
	v := &verdict{landed: len(entries), over: make(map[string]int)}
	v.judgeTokens(tr.issued)
	v.judgeRows(entries)
	in := make(map[string]bool)
	for _, e := range entries {
		in[e.write] = true
	}
	for _, s := range tr.sent {
		v.judgeWrite(s, in[s.write])
	}
	return v
}

func readJournal(t *testing.T, db *sql.DB) (entries []entry) {
	t.Helper()
	found, err := db.Query("SELECT write, book, id, version, token, newest FROM journal ORDER BY book, id, version")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var e entry
		if err := found.Scan(&e.write, &e.table, &e.row, &e.version, &e.token, &e.newest); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return entries
}

// judgeRows looks at each row's versions, in their order.
func (v *verdict) judgeRows(entries []entry) {
	highest := make(map[string]int64)
	for _, e := range entries {
		i := slices.IndexFunc(tables, func(t table) bool { return t.name == e.table })
		row := rowName(e.table, e.row)
		if e.token < highest[row] || tables[i].ledger && e.token != e.newest {
			v.over[e.table]++
		}
		highest[row] = max(highest[row], e.token)
	}
}

// judgeTokens goes through the questions for tokens in the order in which they began, beside the answers in the order in
// which they came.
func (v *verdict) judgeTokens(all []issued) {
	v.tokens = len(all)
	asked, answered := slices.Clone(all), slices.Clone(all)
	slices.SortFunc(asked, func(a, b issued) int { return a.began.Compare(b.began) })
	slices.SortFunc(answered, func(a, b issued) int { return a.ended.Compare(b.ended) })
	highest := make(map[string]int64)
	type given struct {
		name  string
		value int64
	}
	seen := make(map[given]bool)
	next := 0
	for _, q := range asked {
		for ; next < len(answered) && answered[next].ended.Before(q.began); next++ {
			a := answered[next]
			highest[a.name] = max(highest[a.name], a.value)
		}
		switch g := (given{q.name, q.value}); {
		case seen[g]:
			v.twice++
		case q.value > highest[q.name]:
		case cmp.Less(timelineOf(q.value), timelineOf(highest[q.name])):
			v.behind++
		default:
			v.fell++
		}
		seen[given{q.name, q.value}] = true
	}
}

// judgeWrite compares what a client was told of a write with whether it is there.
func (v *verdict) judgeWrite(s sent, there bool) {
	if s.outcome == unknown {
		v.unknown++
	}
	if s.outcome == landed && !there {
		v.lost++
	}
	if s.outcome > landed && there {
		v.forbidden++
	}
	if !s.stale || s.table == "plain" {
		return
	}
	switch v.stale++; s.outcome {
	case landed:
		v.acknowledged++
	case refused:
		v.refused++
	case notIssued:
		v.notIssued++
	}
}
