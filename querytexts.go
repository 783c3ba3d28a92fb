package sqlfence

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// queryTexts returns the rows of a query without arguments, as texts. NULL is the empty one.
func queryTexts(ctx context.Context, c driver.Conn, query string) ([][]string, error) {
	rows, err := basedriver.Query(ctx, c, query, nil)
	if basedriver.IsSkip(err) {
		s, failed := basedriver.Prepare(ctx, c, query)
		if failed != nil {
			return nil, failed
		}
		defer s.Close()
		rows, err = basedriver.QueryStmt(ctx, s, nil)
	}
	if err != nil {
		return nil, err
	}
	var all [][]string
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case basedriver.IsEnd(err):
			return all, rows.Close()
		case err != nil:
			return nil, basedriver.Closing(rows.Close, err)
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
