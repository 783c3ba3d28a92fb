package verify

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// What package schema calls the triggers of a seal, between the prefix and the table's name.
var sqliteSeal = []string{"delete", "deleted", "insert", "inserted", "update", "updated"}

func (sqlite) sealAsks() string               { return "FROM " + sqltext.LedgerTable }
func (d sqlite) sealNames(name string) string { return d.Text(name) }
func (sqlite) sealOnce() string               { return "<= abs(" }

func (d sqlite) seals(l *look, of []*relation) (map[string]seal, error) {
	rows, err := d.eachSchema(l, "the seals", "1, 2", func(text, name string) string {
		return `SELECT ` + text + ` || '.' || m.name, g.name, g.sql FROM ` + name + `.sqlite_master AS m JOIN ` + name + `.sqlite_master AS g ON g.type = 'trigger' AND g.tbl_name = m.name COLLATE NOCASE
WHERE g.name GLOB '` + sqltext.SQLiteSeal + `*' AND m.type = 'table' AND ` + d.named(of, text)
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	unique, err := d.unique(l, of)
	if err != nil {
		return nil, err
	}
	found := make(map[string]seal)
	for _, rel := range of {
		var s seal
		var has []string
		for _, r := range rows {
			if r[0] == rel.id {
				kind, _, _ := strings.Cut(strings.TrimPrefix(r[1], sqltext.SQLiteSeal), "_")
				has, s.body = append(has, kind), s.body+r[2]+"\n"
			}
		}
		if len(has) == 0 {
			continue
		}
		for _, kind := range sqliteSeal {
			if !slices.Contains(has, kind) && s.problem == "" {
				s.problem = "it lacks the trigger " + sqltext.SQLiteSeal + kind
			}
		}
		for _, c := range unique[rel.id] {
			if s.problem == "" && !strings.Contains(s.body, "way."+d.Quote(c)) {
				s.problem = "it doesn't know of the unique column " + plain(d, c) + ", by which REPLACE deletes rows"
			}
		}
		found[rel.id] = s
	}
	return found, nil
}

// unique returns the columns of the relations' unique indexes.
func (d sqlite) unique(l *look, of []*relation) (map[string][]string, error) {
	rows, err := d.eachSchema(l, "the unique indexes", "1, 2", func(text, name string) string {
		return `SELECT DISTINCT ` + text + ` || '.' || m.name, x.name FROM ` + name + `.sqlite_master AS m, pragma_index_list(m.name, ` + text + `) AS i, pragma_index_xinfo(i.name, ` + text + `) AS x
WHERE m.type = 'table' AND i."unique" AND x."key" AND x.cid >= 0 AND ` + d.named(of, text)
	})
	found := make(map[string][]string)
	for _, r := range rows {
		found[r[0]] = append(found[r[0]], r[1])
	}
	return found, err
}
