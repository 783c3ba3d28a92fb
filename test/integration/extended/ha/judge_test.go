//go:build linux

package ha_test

import (
	"cmp"
	"database/sql"
	"slices"
	"testing"
)

// A verdict compares the tokens and writes that clients have recorded with the database at the end of the run.
type verdict struct {
	tokens int // issued
	twice  int // issued a second time for the same name
	fell   int // not above a token that was received before the request, of the same or an earlier timeline
	behind int // the same, but of an older timeline than the received token: an old primary issued it

	stale, refused, notIssued int // writes under stale tokens, and how many were refused with ErrStale and ErrNotIssued
	acknowledged              int // writes under stale tokens that were acknowledged
	unknown                   int // all writes with an unknown outcome

	landed    int            // writes in the database
	over      map[string]int // by table: writes over a newer write, or not under the ledger's newest token
	lost      int            // acknowledged writes that the database doesn't have
	forbidden int            // writes in the database whose error had said that they failed
}

// guarded returns the number of stale writes that overwrote newer writes in guarded tables.
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

// judge compares the clients' records with the journal. A failover may have lost some of the journal.
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

// judgeRows checks the tokens of each row's versions, in the order of the versions.
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

// judgeTokens checks each token against all tokens that clients had received before the token was requested: it must be
// higher.
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

// judgeWrite compares the outcome that the client was given with whether the database has the write.
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
