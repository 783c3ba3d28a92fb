package verify

import "strings"

// A foreign table may stand behind a view, or be a partition or a child.
const postgresForeign = `WITH RECURSIVE behind(root, oid) AS (
	SELECT c.oid, c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN (%s)
	UNION SELECT b.root, x.oid FROM behind AS b CROSS JOIN LATERAL (
		SELECT d.refobjid FROM pg_catalog.pg_rewrite AS r
		JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
		WHERE r.ev_class = b.oid AND r.ev_type = '1'
		UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = b.oid) AS x(oid))
SELECT b.root::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, (pg_catalog.pg_relation_is_updatable(b.root, true) & 28 <> 0)::pg_catalog.text
FROM behind AS b JOIN pg_catalog.pg_class AS c ON c.oid = b.oid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'f' AND b.oid <> b.root ORDER BY 1, 2, 3`

func (d postgres) foreign(l *look, _ []*relation, list string) (links []link, err error) {
	rows, err := l.rows("the foreign tables", strings.Replace(postgresForeign, "%s", list, 1))
	for _, r := range rows {
		for _, t := range l.of(r[0]) {
			t.rel.remote = true
		}
		if r[3] == "true" {
			links = append(links, link{code: "foreign-table", id: r[0], schema: r[1], name: r[2]})
		}
	}
	return links, err
}

// What everybody may read of a subscription: not where it comes from. It writes to partitions, too.
const postgresSubscriptions = `WITH RECURSIVE tree(root, oid) AS (
	SELECT c.oid, c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN (%s)
	UNION SELECT t.root, i.inhrelid FROM tree AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid)
SELECT DISTINCT t.root::pg_catalog.text, s.subname::pg_catalog.text
FROM tree AS t JOIN pg_catalog.pg_subscription_rel AS r ON r.srrelid = t.oid JOIN pg_catalog.pg_subscription AS s ON s.oid = r.srsubid
ORDER BY 1, 2`

func (d postgres) subscriptions(l *look, _ []*relation, list string) (links []link, err error) {
	rows, err := l.rows("the subscriptions", strings.Replace(postgresSubscriptions, "%s", list, 1))
	for _, r := range rows {
		links = append(links, link{code: "subscription", id: r[0], detail: quoteIfNeeded(d, r[1])})
	}
	return links, err
}
