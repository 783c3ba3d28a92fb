package verify

// A generated column has the expression of a functional index. MySQL has one of its own for such an
// index, which only SHOW INDEX and a column of its statistics that MariaDB hasn't show.
func (d mysql) keys(l *look, of []*relation) (map[string][]key, error) {
	expression, err := d.indexExpression(l)
	if err != nil {
		return nil, err
	}
	rows, err := l.rows("the indexes", `SELECT CONCAT(s.table_schema, '.', s.table_name) AS id, CASE WHEN s.index_name = 'PRIMARY' THEN 'primary key' WHEN s.non_unique = 0 THEN 'unique index' ELSE 'index' END AS kind,
	CASE WHEN s.index_name = 'PRIMARY' THEN '' ELSE s.index_name END AS name, COALESCE(s.column_name, ''), CONCAT(COALESCE(c.generation_expression, ''), ' ', COALESCE(`+expression+`, '')), s.seq_in_index AS turn
FROM information_schema.statistics AS s LEFT JOIN information_schema.columns AS c ON c.table_schema = s.table_schema AND c.table_name = s.table_name AND c.column_name = s.column_name
WHERE `+d.named(of, "s.table_schema", "s.table_name")+`
UNION ALL SELECT CONCAT(table_schema, '.', table_name), 'foreign key', constraint_name, column_name, '', ordinal_position FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL AND `+d.named(of, "table_schema", "table_name")+` ORDER BY id, kind, name, turn`)
	return keysOf(rows), err
}

// indexExpression is the column of the statistics that has an index's expression, where there is one.
func (mysql) indexExpression(l *look) (string, error) {
	rows, err := l.rows("the indexes", `SELECT 1 FROM information_schema.columns WHERE LOWER(table_schema) = 'information_schema' AND LOWER(table_name) = 'statistics' AND LOWER(column_name) = 'expression'`)
	if len(rows) == 0 {
		return "NULL", err
	}
	return "s.expression", err
}
