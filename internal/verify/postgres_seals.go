package verify

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// What package schema calls the triggers of a seal. A table with partitions has another one, as
// have these.
var (
	postgresSeal  = []string{sqltext.SealTrigger, "~sqlfence_before", "~sqlfence_delete", "~sqlfence_truncate"}
	postgresMoves = "~sqlfence_after"
)

func (postgres) sealAsks() string               { return "FOR SHARE" }
func (d postgres) sealNames(name string) string { return d.Text(name) }

// sealReads: the ledger is named as format writes it, in quotes where it has to be.
func (postgres) sealReads(body, schema string) bool {
	plain := func(s string) string { return strings.ReplaceAll(s, `"`, "") }
	return strings.Contains(plain(body), "FROM "+plain(schema)+"."+sqltext.LedgerTable+" AS ")
}

func (postgres) sealOnce() string  { return "int8gt(given, stored)" }
func (postgres) sealLocks() string { return "record_image_eq(" }

// A table's partitions and children have triggers of their own.
const postgresSeals = `WITH RECURSIVE tree(root, oid) AS (
	SELECT c.oid, c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN (%s)
	UNION SELECT t.root, i.inhrelid FROM tree AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid)
SELECT t.root::pg_catalog.text, t.oid::pg_catalog.regclass::pg_catalog.text, (t.root = t.oid)::pg_catalog.text, COALESCE(g.tgname::pg_catalog.text, ''), COALESCE(g.tgenabled::pg_catalog.text, ''),
	COALESCE(p.prosrc, ''),
	COALESCE((SELECT k.convalidated::pg_catalog.text FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = t.oid AND k.conname = '` + sqltext.SealedMark + `'), '')
FROM tree AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.oid
LEFT JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = t.oid AND (pg_catalog.starts_with(g.tgname::pg_catalog.text, '~sqlfence_') OR ` + sqltext.FiredBehindSeal + `)
LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = g.tgfoid
WHERE c.relkind IN ('r', 'p') ORDER BY 1, t.oid, 4`

func (d postgres) seals(l *look, of []*relation) (map[string]seal, error) {
	rows, err := l.rows("the seals", strings.Replace(postgresSeals, "%s", strings.Join(ids(of), ", "), 1))
	if err != nil {
		return nil, err
	}
	found := make(map[string]seal)
	for _, rel := range of {
		mine := slices.DeleteFunc(slices.Clone(rows), func(r []string) bool { return r[0] != rel.id })
		if !slices.ContainsFunc(mine, func(r []string) bool { return r[2] == "true" && slices.Contains(postgresSeal, r[3]) }) {
			continue
		}
		wanted := postgresSeal
		if rel.kind != "table" {
			wanted = append(slices.Clone(wanted), postgresMoves)
		}
		found[rel.id] = sealOf(mine, wanted)
	}
	return found, nil
}

// sealOf reads the triggers of a table and of its parts, each of which wants these.
func sealOf(rows [][]string, wanted []string) (s seal) {
	has := make(map[string][]string)
	var parts []string
	for _, r := range rows {
		part, root, trigger, on := r[1], r[2] == "true", r[3], r[4]
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
		has[part] = append(has[part], trigger)
		switch {
		case trigger > sqltext.SealTrigger && s.problem == "":
			s.problem = "the trigger " + trigger + " of " + part + " is fired after it, and may change what it has compared"
			s.remedy = "Give the trigger a name that is sorted before " + sqltext.SealTrigger + "."
		case trigger != "" && on != "O" && on != "A" && s.problem == "":
			s.problem = "the trigger " + trigger + " of " + part + " is switched off"
		case root && trigger == sqltext.SealTrigger:
			s.body = r[5]
		}
		if root && r[6] != "true" && s.problem == "" {
			s.problem = "it lacks the constraint " + sqltext.SealedMark + ", or that isn't validated"
		}
	}
	for _, part := range parts {
		for _, trigger := range wanted {
			if !slices.Contains(has[part], trigger) && s.problem == "" {
				s.problem = part + " lacks the trigger " + trigger
			}
		}
	}
	return s
}
