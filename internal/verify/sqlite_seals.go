package verify

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// What package schema calls the triggers of a seal, between the prefix and the table's name.
var sqliteSeal = []string{"delete", "deleted", "insert", "inserted", "inserting", "update", "updated", "updating"}

func (sqlite) sealAsks() string               { return "FROM " + sqltext.LedgerTable }
func (d sqlite) sealNames(name string) string { return d.Text(name) }
func (sqlite) sealOnce() string               { return "<= abs(" }
func (sqlite) sealReads(string, string) bool  { return true } // that of its file

func (sqlite) sealLocks() string { return "(call Seal again)" }

func (d sqlite) seals(l *look, of []*relation) (map[string]seal, error) {
	rows, err := d.eachSchema(l, "the seals", "1, 2", func(text, name string) string {
		return `SELECT ` + text + ` || '.' || m.name, g.name, g.sql, EXISTS (SELECT 1 FROM ` + name + `.sqlite_master WHERE type = 'table' AND name = '` + sqltext.SQLiteSealState + `' COLLATE NOCASE) FROM ` + name + `.sqlite_master AS m JOIN ` + name + `.sqlite_master AS g ON g.type = 'trigger' AND g.tbl_name = m.name COLLATE NOCASE
WHERE m.type = 'table' AND ` + d.named(of, text)
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
		state := true
		for _, r := range rows {
			switch ours, isOurs := strings.CutPrefix(r[1], sqltext.SQLiteSeal); {
			case r[0] != rel.id:
			case isOurs:
				kind, _, _ := strings.Cut(ours, "_")
				has, s.body = append(has, kind), s.body+r[2]+"\n"
				state = r[3] == "1"
			case !isOwn(r[1]):
				s.others = append(s.others, d.wrongTrigger(rel, r[1], r[2])...)
			}
		}
		if len(has) == 0 {
			continue
		}
		if !state {
			s.problem = "there is no table " + sqltext.SQLiteSealState + ", without which no row can be written"
		}
		for _, kind := range sqliteSeal {
			if !slices.Contains(has, kind) && s.problem == "" {
				s.problem = "it lacks the trigger " + sqltext.SQLiteSeal + kind
			}
		}
		if s.problem == "" && !d.isOf(s.body, rel.name) {
			s.problem = "its triggers are about the table by another name, as after a RENAME with PRAGMA legacy_alter_table"
		}
		for _, u := range unique[rel.id] {
			if s.problem == "" && !d.sees(s.body, u) {
				s.problem = "it doesn't know of the unique index " + quoteIfNeeded(d, u.name) + ", by which REPLACE deletes rows"
			}
		}
		found[rel.id] = s
	}
	return found, nil
}

// isOf reports whether the triggers of a seal write to this table. SQLite renames it in them, in double quotes, but
// for PRAGMA legacy_alter_table.
func (d sqlite) isOf(body, table string) bool {
	body = strings.ToLower(body)
	for _, name := range []string{d.Quote(table), `"` + strings.ReplaceAll(table, `"`, `""`) + `"`} {
		if strings.Contains(body, strings.ToLower("UPDATE "+name+" SET")) {
			return true
		}
	}
	return false
}

// wrongTrigger returns what is wrong with a trigger that Seal wouldn't take.
func (d sqlite) wrongTrigger(rel *relation, name, text string) (found []otherTrigger) {
	at := beginning.FindStringIndex(text)
	if at == nil {
		return nil
	}
	head, named := noTexts(text[:at[0]]), "The trigger "+quoteIfNeeded(d, name)+" of "+rel.name
	if of := updatedColumns.FindStringSubmatch(comments.ReplaceAllString(text[:at[0]], " ")); of != nil || updatesAny.MatchString(head) {
		columns := ""
		if of != nil {
			columns = of[1]
		}
		found = append(found, otherTrigger{
			problem: named + " is fired by an UPDATE of the mark alone, by which the seal stores it: it sees more UPDATEs than there are.",
			remedy:  "Say which columns it is about, without the fence column: UPDATE OF column, ... ON " + quoteIfNeeded(d, rel.name) + ".",
			columns: columns,
		})
	}
	if !beforeRow.MatchString(head) && skipsRows.MatchString(noTexts(text[at[1]:])) {
		found = append(found, otherTrigger{
			problem: named + " may skip the seal's by RAISE(IGNORE) or RAISE(FAIL): the mark stays negative then, and every token passes.",
			remedy:  "Let it RAISE(ABORT), or make it a BEFORE trigger.",
		})
	}
	return found
}

var (
	updatedColumns = regexp.MustCompile(`(?is)\bupdate\s+of\b(.*?)\bon\b`)
	updatesAny     = regexp.MustCompile(`(?i)\bupdate\s+on\b`)
	beforeRow      = regexp.MustCompile(`(?i)\bbefore\b`)
	skipsRows      = regexp.MustCompile(`(?i)\braise\s*\(\s*(?:ignore|fail)\b`)
)

// A uniqueIndex is one of a table's, by its columns with their collations. The name of a column is empty for an
// expression. A partial one has a condition, if it is to be understood.
type uniqueIndex struct {
	name    string
	within  string
	columns [][2]string
}

// unique returns the relations' unique indexes.
func (d sqlite) unique(l *look, of []*relation) (map[string][]uniqueIndex, error) {
	rows, err := d.eachSchema(l, "the unique indexes", "1, 2, 3", func(text, name string) string {
		return `SELECT ` + text + ` || '.' || m.name, i.name, x.seqno, x.name, x.coll, p.sql FROM ` + name + `.sqlite_master AS m, pragma_index_list(m.name, ` + text + `) AS i, pragma_index_xinfo(i.name, ` + text + `) AS x
LEFT JOIN ` + name + `.sqlite_master AS p ON i.partial AND p.type = 'index' AND p.name = i.name
WHERE m.type = 'table' AND i."unique" AND x."key" AND x.cid <> -1 AND ` + d.named(of, text)
	})
	found := make(map[string][]uniqueIndex)
	for _, r := range rows {
		of := found[r[0]]
		if len(of) == 0 || of[len(of)-1].name != r[1] {
			of = append(of, uniqueIndex{name: r[1], within: sqltext.SQLiteWithin(r[5])})
		}
		last := &of[len(of)-1]
		last.columns = append(last.columns, [2]string{r[3], r[4]})
		found[r[0]] = of
	}
	return found, err
}

// sees reports whether a seal looks for the rows with the same values in an index.
func (d sqlite) sees(seal string, u uniqueIndex) bool {
	return slices.ContainsFunc(strings.Split(seal, " AS way WHERE "), func(part string) bool {
		if strings.HasPrefix(part, "(") { // it looks for those alone that are in a partial one
			of, ok := strings.CutPrefix(part, "("+u.within+") AND ")
			if part = of; !ok || u.within == "" {
				return false
			}
		}
		same, _, found := strings.Cut(part, " AND abs(")
		known := 0
		for _, c := range u.columns {
			if way := "way." + d.Quote(c[0]); c[0] != "" {
				known += strings.Count(same, way+" = ") + strings.Count(same, way+" COLLATE "+d.Quote(c[1])+" ")
			}
		}
		return found && known == len(u.columns) && known == strings.Count(same, "way.")
	})
}
