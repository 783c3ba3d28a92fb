package harness

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
)

// Describe returns all column types and values of rows as text.
func Describe(rows *sql.Rows, err error) string {
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	var b strings.Builder
	for {
		types, err := rows.ColumnTypes()
		if err != nil {
			return err.Error()
		}
		for _, c := range types {
			length, hasLength := c.Length()
			nullable, hasNullable := c.Nullable()
			precision, scale, hasScale := c.DecimalSize()
			fmt.Fprintln(&b, c.Name(), c.DatabaseTypeName(), c.ScanType(), length, hasLength, nullable, hasNullable, precision, scale, hasScale)
		}
		for rows.Next() {
			values := make([]any, len(types))
			targets := make([]any, len(types))
			for i := range values {
				targets[i] = &values[i]
			}
			if err := rows.Scan(targets...); err != nil {
				return err.Error()
			}
			for _, v := range values {
				fmt.Fprintf(&b, "%T %v, ", v, v)
			}
		}
		if !rows.NextResultSet() {
			break
		}
		b.WriteString("next result\n")
	}
	fmt.Fprint(&b, rows.Err())
	return b.String()
}

// OnConn runs do with a connection as database/sql holds it.
func OnConn(t *testing.T, db *sql.DB, do func(c driver.Conn)) {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Raw(func(dc any) error { do(dc.(driver.Conn)); return nil }); err != nil {
		t.Fatal(err)
	}
}
