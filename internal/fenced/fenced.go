// Package fenced returns the settings of a fenced database to sqlfence's other packages.
package fenced

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A Driver is sqlfence's wrapper of a base driver.
type Driver interface{ Settings() *core.Settings }

// A Conn is sqlfence's wrapper of a base driver's connection.
type Conn interface {
	Fenced() (*core.Settings, core.ConnAdapter)
}

// SettingsOf returns the settings of a fenced database, for the named function. If the database isn't fenced, or its
// fenced driver is wrapped, the error is core.ErrInvalid.
func SettingsOf(function string, db *sql.DB) (*core.Settings, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: %s: nil database", core.ErrInvalid, function)
	}
	if d, ok := db.Driver().(Driver); ok {
		return d.Settings(), nil
	}
	return nil, fmt.Errorf("%w: %s: the driver %T isn't fenced, or another wrapper surrounds it; open the database by "+
		"sqlfence.Open, OpenDB or a registered driver", core.ErrInvalid, function, db.Driver())
}

// Schema returns the schema of sqlfence's tables by WithSchema; empty without WithSchema or for an unfenced driver.
func Schema(driver any) string {
	if d, ok := driver.(Driver); ok {
		return d.Settings().Schema()
	}
	return ""
}

// Queries is a connection or a transaction.
type Queries interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Texts returns the rows of a query as texts. NULL is the empty text.
func Texts(ctx context.Context, conn Queries, query string, args ...any) (all [][]string, err error) {
	err = dberr.Reprepared(func() (err error) {
		all, err = texts(ctx, conn, query, args)
		return err
	})
	return all, err
}

func texts(ctx context.Context, conn Queries, query string, args []any) (all [][]string, err error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		texts, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range texts {
			into[i] = &texts[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(columns))
		for i, text := range texts {
			row[i] = text.String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
