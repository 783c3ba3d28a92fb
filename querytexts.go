package sqlfence

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// queryTexts returns the rows of a query without arguments, as texts. NULL is the empty one.
func queryTexts(ctx context.Context, c driver.Conn, query string) ([][]string, error) {
	rows, err := queryBase(ctx, c, query, nil)
	if isSkip(err) {
		s, failed := prepareBase(ctx, c, query)
		if failed != nil {
			return nil, failed
		}
		defer s.Close()
		rows, err = queryStmt(ctx, s, nil)
	}
	if err != nil {
		return nil, err
	}
	var all [][]string
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case isEnd(err):
			return all, rows.Close()
		case err != nil:
			return nil, closing(rows.Close, err)
		}
		all = append(all, valueTexts(row))
	}
}

func valueTexts(row []driver.Value) []string {
	texts := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case nil:
		case []byte:
			texts[i] = string(v)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	return texts
}
