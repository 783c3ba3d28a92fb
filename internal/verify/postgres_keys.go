package verify

import "strings"

// A column of an index may be an expression, and one that is generated has one. An exclusion
// constraint is as good as unique.
const postgresKeys = `SELECT i.indrelid::pg_catalog.text,
	CASE WHEN i.indisprimary THEN 'primary key' WHEN i.indisunique THEN 'unique index' WHEN i.indisexclusion THEN 'exclusion constraint' ELSE 'index' END AS kind,
	c.relname::pg_catalog.text, a.attname::pg_catalog.text,
	pg_catalog.concat_ws(' ', pg_catalog.pg_get_expr(i.indpred, i.indrelid), pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(d.adbin, d.adrelid)), k.turn
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
CROSS JOIN LATERAL pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k(turn)
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.turn]
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
WHERE i.indrelid IN (%[1]s)
UNION ALL SELECT f.conrelid::pg_catalog.text, 'foreign key', f.conname::pg_catalog.text, a.attname::pg_catalog.text, '', 0
FROM pg_catalog.pg_constraint AS f JOIN pg_catalog.pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
WHERE f.contype = 'f' AND f.conrelid IN (%[1]s)
UNION ALL SELECT p.partrelid::pg_catalog.text, 'partition key', '', a.attname::pg_catalog.text, COALESCE(pg_catalog.pg_get_expr(p.partexprs, p.partrelid), ''), k.turn
FROM pg_catalog.pg_partitioned_table AS p CROSS JOIN LATERAL pg_catalog.generate_series(0, p.partnatts - 1) AS k(turn)
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[k.turn]
WHERE p.partrelid IN (%[1]s)
ORDER BY 1, 2, 3, 6`

func (d postgres) keys(l *look, of []*relation) (map[string][]key, error) {
	rows, err := l.rows("the indexes", strings.ReplaceAll(postgresKeys, "%[1]s", strings.Join(ids(of), ", ")))
	return keysOf(rows), err
}
