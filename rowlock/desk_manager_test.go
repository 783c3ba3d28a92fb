package rowlock_test

import (
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// The desk's answers to the statements on rowlocks.

func (d *desk) record(s statement) (answer fakedb.Response, err error) {
	key, r, ok, err := d.find(s)
	if err != nil || !ok {
		return answer, err
	}
	table, _ := s.arg("SELECT CAST(@ AS text), ")
	session, _ := s.arg("CAST(" + d.by + " AS text), CAST(@ AS text)")
	d.tables.held[key] = held{table.(string), fmt.Sprint(r.by), session.(string), r.since, r.expiry, d.now}
	return fakedb.Response{Affected: 1}, nil
}

// unrecord deletes entries from rowlocks: the entry of a row's key, or the entry that a list has shown.
func (d *desk) unrecord(s statement) (answer fakedb.Response, err error) {
	if s.has("row_key = (SELECT") {
		key, _, _, err := d.find(s)
		delete(d.tables.held, key)
		return fakedb.Response{}, err
	}
	for _, key := range d.matching(s.between(" WHERE ", ";")) {
		delete(d.tables.held, key)
		answer.Affected++
	}
	return answer, nil
}

func (d *desk) heartbeat(s statement) (answer fakedb.Response, err error) {
	for _, key := range d.matching(s.between(" WHERE ", ";")) {
		h := d.tables.held[key]
		h.heartbeat = d.now
		d.tables.held[key] = h
		answer.Affected++
	}
	return answer, nil
}

func (d *desk) list(s statement) (answer fakedb.Response, err error) {
	for _, key := range d.matching(s.between(" WHERE ", " ORDER BY ")) {
		h := d.tables.held[key]
		answer.Rows = append(answer.Rows, []any{h.table, key, h.user, h.session, d.stamp(h.since), d.stamp(h.expiry), d.stamp(h.heartbeat)})
	}
	return answer, nil
}

// matching returns the keys in rowlocks for which all conditions in where hold.
func (d *desk) matching(where statement) (keys []string) {
	for key, h := range d.tables.held {
		same := true
		for column, value := range map[string]any{"table_name": h.table, "row_key": key, "user_id": h.user, "session": h.session} {
			if want, ok := where.arg(column + " = @"); ok && want != value {
				same = false
			}
		}
		since, ok := where.arg("= CAST(@") // no other condition compares a time so
		same = same && (!ok || since == d.stamp(h.since))
		same = same && (!where.has("session <> ''") || h.session != "")
		same = same && (!where.has("expiry > ") || h.expiry.After(d.now))
		silence, ok := where.arg("+ CAST(@")
		same = same && (!ok || !h.heartbeat.After(d.now.Add(d.term(silence))))
		if same {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
