package verify

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgresSeal is a query for the parts of a table's seal: the kind, the name, what Seal would create, what is there,
// and what is wrong with it. A table's partitions and children have triggers of their own.
const postgresSeal = `SELECT {id}, parts.* FROM (WITH RECURSIVE {wanted},
	about (root, home, parted, ledger) AS (SELECT s.root, s.home, s.parted, (SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass({ledger name})) FROM source AS s)
SELECT 'has', '', '', '', '' FROM source AS s WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger AS g JOIN wanted AS w ON w.name = g.tgname WHERE g.tgrelid = s.root)
UNION ALL SELECT 'late', pg_catalog.concat(g.tgname, ' of ', tree.oid::pg_catalog.regclass), '', '', 'is fired after it, and may change what it has compared'
	FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid WHERE ` + sqltext.FiredBehindSeal + `
UNION ALL SELECT 'trigger', pg_catalog.concat(w.name, ' of ', w.part::pg_catalog.regclass), '', '', CASE WHEN g.oid IS NULL THEN 'is missing'
	WHEN g.tgenabled = 'O' THEN 'isn''t ENABLE ALWAYS, and not fired in a session that calls itself a replica' WHEN g.tgenabled <> 'A' THEN 'is switched off' WHEN (` + seal.Same + `) IS NOT TRUE THEN pg_catalog.concat('isn''t that of a seal: ', pg_catalog.pg_get_triggerdef(g.oid)) ELSE '' END
	FROM wanted AS w LEFT JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = w.part AND g.tgname = w.name{functions}
UNION ALL SELECT 'constraint', k.name, pg_catalog.format('CHECK ((%I >= 0))', {column}), COALESCE(pg_catalog.pg_get_constraintdef(c.oid), ''), CASE WHEN c.oid IS NULL THEN 'is missing' ELSE '' END
	FROM source AS s CROSS JOIN (VALUES ('` + sqltext.SealedMark + `')) AS k (name) LEFT JOIN pg_catalog.pg_constraint AS c ON c.conrelid = s.root AND c.conname = k.name
) AS parts (kind, name, wants, is_now, problem)`

const postgresSealFunction = `
UNION ALL SELECT 'function', {function}, {body}, COALESCE(p.prosrc, ''), CASE WHEN p.oid IS NULL THEN 'is missing'
	WHEN p.prosecdef OR p.proconfig IS NOT NULL OR l.lanname <> 'plpgsql' THEN 'isn''t that of a seal, but of another language or with settings'
	WHEN NOT pg_catalog.pg_has_role(p.proowner, c.relowner, 'MEMBER') THEN pg_catalog.concat('belongs to ', pg_catalog.pg_get_userbyid(p.proowner), ', who may replace it, and doesn''t own the table') ELSE '' END
	FROM about JOIN pg_catalog.pg_class AS c ON c.oid = about.root LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = pg_catalog.to_regprocedure(pg_catalog.format('%I.%I()', home, {function}))
	LEFT JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang`

func (d postgres) seals(l *look, of []target) (map[string]seals, error) {
	var queries []string
	for _, t := range of {
		if !strings.HasSuffix(t.rel.kind, "table") || t.rel.kind == "foreign table" {
			continue
		}
		table, functions := t.sealed(), ""
		for _, f := range seal.Functions(table) {
			functions += strings.NewReplacer("{function}", d.Text(f.Name), "{body}", f.Body()).Replace(postgresSealFunction)
		}
		source := "SELECT c.oid, n.nspname::pg_catalog.text, c.relkind = 'p' FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = " + t.rel.id
		queries = append(queries, strings.NewReplacer("{id}", d.Text(t.rel.id), "{wanted}", seal.Wanted(table, source), "{functions}", functions,
			"{ledger name}", d.Text(seal.LedgerName(l.opts.Schema)), "{column}", d.Text(t.Fence)).Replace(postgresSeal))
	}
	rows, err := l.rows("the seals", strings.Join(queries, "\nUNION ALL "))
	found := make(map[string]seals)
	for _, r := range rows {
		if r[1] == "has" {
			found[r[0]] = seals{}
		}
	}
	for _, r := range rows {
		s, has := found[r[0]]
		if !has || s.problem != "" {
			continue
		}
		kind, name, wants, is, problem := r[1], r[2], r[3], r[4], r[5]
		switch {
		case kind == "late":
			s.problem, s.remedy = "the trigger "+name+" "+problem, "Give the trigger a name that is sorted before "+sqltext.SealTrigger+"."
		case problem != "":
			s.problem = "its " + kind + " " + name + " " + problem
		case is != wants:
			s.shape = differs("its "+kind+" "+name, wants, is)
		}
		found[r[0]] = s
	}
	return found, err
}
