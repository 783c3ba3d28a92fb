package mysql

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Column is a column of one of sqlfence's tables on MySQL.
type Column struct {
	Name  string
	Bytes int // the size of the column's type, varbinary; 0 if the type is bigint
}

// Unfit is a query for the first defect of one of sqlfence's tables, which another client may have created. It has one
// row, with the defect or NULL, and no row without the table. Each of unique lists the columns, separated by commas,
// that together must be unique. A text column would be compared by its collation; a short column would cut names
// silently under an empty sql_mode; and only InnoDB surely has transactions and row locks.
func Unfit(table string, columns []Column, unique ...string) string {
	text := Text.Text
	// The subqueries repeat the table's name: with t.table_name MariaDB would open all tables of all databases in each.
	of := "table_schema = DATABASE() AND table_name = " + text(table) + " AND "
	var b strings.Builder
	b.WriteString("SELECT CASE\n\tWHEN COALESCE(t.engine, " + text("") + ") <> _utf8mb4'InnoDB' THEN _utf8mb4'it is " +
		"not a table of the engine InnoDB'")
	for _, c := range columns {
		want, is := "bigint", "data_type = _utf8mb4'bigint'"
		if c.Bytes > 0 {
			bytes := strconv.Itoa(c.Bytes)
			want, is = "varbinary("+bytes+")", "data_type = _utf8mb4'varbinary' AND character_octet_length >= "+bytes
		}
		b.WriteString("\n\tWHEN NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE " + of +
			"LOWER(column_name) " +
			"= " + text(c.Name) +
			" AND " + is + ") THEN " + text("its column "+c.Name+" is not a "+want))
	}
	for _, list := range unique {
		names := strings.Split(list, ", ")
		for i, name := range names {
			names[i] = text(name)
		}
		b.WriteString("\n\tWHEN NOT EXISTS (SELECT 1 FROM information_schema.statistics WHERE " + of +
			"non_unique = 0 GROUP BY index_name HAVING COUNT(*) = " +
			strconv.Itoa(len(names)) + " AND MIN(LOWER(column_name) IN (" + strings.Join(names, ", ") +
			")) AND MAX(sub_part) IS NULL) THEN " + text(list+" is not unique"))
	}
	b.WriteString(" END\nFROM information_schema.tables AS t WHERE t.table_schema = DATABASE() " +
		"AND t.table_name = " + text(table))
	return sqltext.Whole(Text, b.String())
}
