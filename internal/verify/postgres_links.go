package verify

import "strings"

func (d postgres) links(l *look, of []*relation) ([]link, error) {
	list := strings.Join(ids(of), ", ")
	var links []link
	for _, part := range []func(*look, []*relation, string) ([]link, error){d.views, d.rules, d.cascades, d.partitions, d.foreign, d.subscriptions} {
		found, err := part(l, of, list)
		if err != nil {
			return nil, err
		}
		links = append(links, found...)
	}
	return links, nil
}

// Views are followed to those that depend on them; 28 is INSERT, UPDATE and DELETE.
const postgresViews = `WITH RECURSIVE used(oid) AS (
	SELECT c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN (%s)
	UNION SELECT r.ev_class FROM used AS u
	JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = u.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
	JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid AND r.ev_type = '1')
SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, pg_catalog.pg_get_viewdef(c.oid)
FROM used AS u JOIN pg_catalog.pg_class AS c ON c.oid = u.oid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND pg_catalog.pg_relation_is_updatable(c.oid, false) & 28 <> 0 ORDER BY 1, 2`

func (d postgres) views(l *look, of []*relation, list string) ([]link, error) {
	rows, err := l.rows("the views", strings.Replace(postgresViews, "%s", list, 1))
	var views []view
	for _, r := range rows {
		views = append(views, view{r[0], r[1], r[2]})
	}
	return writableViews(d, views, of), err
}

const postgresRules = `SELECT DISTINCT d.refobjid::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, r.rulename::pg_catalog.text,
	pg_catalog.pg_get_ruledef(r.oid), (r.ev_class = d.refobjid)::pg_catalog.text
FROM pg_catalog.pg_rewrite AS r
JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE r.ev_type <> '1' AND d.refobjid IN (%s) ORDER BY 1, 2, 3, 4`

func (d postgres) rules(l *look, of []*relation, list string) ([]link, error) {
	rows, err := l.rows("the rules", strings.Replace(postgresRules, "%s", list, 1))
	var links []link
	for _, r := range rows {
		x := link{code: "rule", id: r[0], schema: r[1], name: r[2], detail: quoteIfNeeded(d, r[3])}
		_, action, _ := strings.Cut(r[4], " DO ")
		rel := l.of(r[0])[0].rel
		switch {
		case r[5] == "true":
			x.code = "own-rule"
		case !newBody(d, action).writes(d, rel):
			continue
		}
		links = append(links, x)
	}
	return links, err
}

// The constraints of partitions are those of their parents.
const postgresCascades = `SELECT k.conrelid::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
	CASE k.confupdtype WHEN 'c' THEN ' ON UPDATE CASCADE' WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' ELSE '' END
	|| CASE k.confdeltype WHEN 'c' THEN ' ON DELETE CASCADE' WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' ELSE '' END
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS c ON c.oid = k.confrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0 AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd')) AND k.conrelid IN (%s)
ORDER BY 1, 2, 3, 4`

func (d postgres) cascades(l *look, _ []*relation, list string) ([]link, error) {
	rows, err := l.rows("the foreign keys", strings.Replace(postgresCascades, "%s", list, 1))
	var links []link
	for _, r := range rows {
		links = append(links, link{"cascade", r[0], r[1], r[2], strings.TrimSpace(r[3])})
	}
	return links, err
}

const postgresPartitions = `WITH RECURSIVE down(root, oid) AS (
	SELECT i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent IN (%[1]s)
	UNION SELECT d.root, i.inhrelid FROM down AS d JOIN pg_catalog.pg_inherits AS i ON i.inhparent = d.oid),
up(root, oid) AS (
	SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid IN (%[1]s)
	UNION SELECT u.root, i.inhparent FROM up AS u JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = u.oid)
SELECT x.root::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, x.what
FROM (SELECT root, oid, CASE WHEN (SELECT relispartition FROM pg_catalog.pg_class AS p WHERE p.oid = down.oid) THEN 'partition' ELSE 'child table' END AS what FROM down
	UNION ALL SELECT root, oid, 'parent table' FROM up) AS x
JOIN pg_catalog.pg_class AS c ON c.oid = x.oid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') ORDER BY 1, 4, 2, 3`

func (d postgres) partitions(l *look, _ []*relation, list string) ([]link, error) {
	rows, err := l.rows("the partitions", strings.ReplaceAll(postgresPartitions, "%[1]s", list))
	var links []link
	for _, r := range rows {
		links = append(links, link{"partition", r[0], r[1], r[2], r[3]})
	}
	return links, err
}

// Of a function whose body is of SQL's own form, the text is made from that. What the catalogue's
// own functions do is known.
const postgresCode = `SELECT p.kind, p.name, p.tables, p.shown, p.body, p.proname::pg_catalog.text FROM (
	SELECT p.oid, p.proname, CASE WHEN g.tables IS NOT NULL THEN 'trigger' WHEN p.prokind = 'p' THEN 'procedure' ELSE 'function' END AS kind,
		CASE WHEN pg_catalog.pg_function_is_visible(p.oid) THEN '' ELSE pg_catalog.quote_ident(n.nspname) || '.' END || pg_catalog.quote_ident(p.proname) AS name,
		COALESCE(g.tables, '') AS tables, COALESCE(g.shown, '') AS shown,
		CASE WHEN p.prosrc <> '' THEN p.prosrc ELSE pg_catalog.pg_get_functiondef(p.oid) END AS body
	FROM pg_catalog.pg_proc AS p
	JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_catalog.pg_language AS x ON x.oid = p.prolang
	LEFT JOIN LATERAL (SELECT pg_catalog.string_agg(t.tgrelid::pg_catalog.text, ',' ORDER BY t.oid) AS tables,
			pg_catalog.string_agg(DISTINCT t.tgrelid::pg_catalog.regclass::pg_catalog.text, ', ') AS shown
		FROM pg_catalog.pg_trigger AS t WHERE t.tgfoid = p.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D') AS g ON true
	WHERE x.lanname NOT IN ('internal', 'c') AND p.prokind IN ('f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	OFFSET 0) AS p
WHERE EXISTS (SELECT FROM pg_catalog.unnest(ARRAY[%s]::pg_catalog.text[]) AS w WHERE pg_catalog.strpos(pg_catalog.lower(p.body), w) > 0)
ORDER BY 1, 2, p.oid`

func (d postgres) code(l *look, words []string) ([]code, error) {
	rows, err := l.rows("the functions", strings.Replace(postgresCode, "%s", texts(d, words), 1))
	var found []code
	for _, r := range rows {
		c := code{kind: r[0], name: r[1], fires: strings.Split(r[2], ","), on: r[3], body: r[4], bare: r[5]}
		if c.kind == "trigger" {
			c.name = "function " + c.name
		}
		found = append(found, c)
	}
	return found, err
}
