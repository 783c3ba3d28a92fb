package verify

// An index that a constraint has made has no text.
func (d sqlite) keys(l *look, of []*relation) (map[string][]key, error) {
	rows, err := d.eachSchema(l, "the indexes", "1, 2, 3, 6", func(text, name string) string {
		return `SELECT ` + text + ` || '.' || m.name, CASE WHEN i.origin = 'pk' THEN 'primary key' WHEN i."unique" THEN 'unique index' ELSE 'index' END AS kind, CASE WHEN i.origin = 'pk' THEN '' ELSE i.name END, x.name,
	COALESCE((SELECT substr(s.sql, instr(s.sql, '(')) FROM ` + name + `.sqlite_master AS s WHERE s.type = 'index' AND s.name = i.name), ''), x.seqno
FROM ` + name + `.sqlite_master AS m, pragma_index_list(m.name, ` + text + `) AS i, pragma_index_xinfo(i.name, ` + text + `) AS x WHERE m.type = 'table' AND x."key" AND ` + d.named(of, text) + `
UNION ALL SELECT ` + text + ` || '.' || m.name, 'primary key', '', c.name, '', c.pk FROM ` + name + `.sqlite_master AS m, pragma_table_info(m.name, ` + text + `) AS c
WHERE m.type = 'table' AND c.pk AND NOT EXISTS (SELECT 1 FROM pragma_index_list(m.name, ` + text + `) AS i WHERE i.origin = 'pk') AND ` + d.named(of, text) + `
UNION ALL SELECT ` + text + ` || '.' || m.name, 'foreign key', 'to ' || f."table", f."from", '', f.seq FROM ` + name + `.sqlite_master AS m, pragma_foreign_key_list(m.name, ` + text + `) AS f
WHERE m.type = 'table' AND ` + d.named(of, text)
	})
	return keysOf(rows), err
}
