package fencepgx_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// When a session has moved, it may find a view by the table's name. In none of pgx's ways does a stale write succeed
// through the view. If the session finds a table, writes work.
func TestViewsDontStandInATablesPlace(t *testing.T) {
	rule := sqlfence.RowFence("fence_token")
	s := newShop(t, rule)
	var home string
	if err := s.db.QueryRow(t.Context(), "SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	elsewhere := home + "_elsewhere"
	s.Exec(t, "CREATE SCHEMA "+elsewhere)
	defer s.Exec(t, "DROP SCHEMA "+elsewhere+" CASCADE")
	move := "SET search_path TO " + elsewhere + ", " + home
	for what, create := range map[string]string{
		"view":  "CREATE VIEW @.books AS SELECT id, isbn, price, writer AS fence_token FROM books",
		"table": "CREATE TABLE @.books (LIKE books INCLUDING ALL)",
	} {
		s.Exec(t, strings.Replace(create, "@", elsewhere, 1))
		for name, write := range map[string]func(db *fencepgx.DB) error{
			"statements": func(db *fencepgx.DB) error {
				return pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), move); err != nil {
						return err
					}
					_, err := tx.Exec(harness.Holding(t, 8), setPrice, 30, 1)
					return err
				})
			},
			"a batch": func(db *fencepgx.DB) error {
				b := new(pgx.Batch)
				b.Queue(move)
				b.Queue(setPrice, 30, 1)
				return db.SendBatch(harness.Holding(t, 8), b).Close()
			},
			"a transaction's first text": func(db *fencepgx.DB) error {
				return pgx.BeginTxFunc(t.Context(), db, pgx.TxOptions{BeginQuery: "BEGIN; " + move}, func(tx pgx.Tx) error {
					_, err := tx.Exec(harness.Holding(t, 8), setPrice, 30, 1)
					return err
				})
			},
			"a copy": func(db *fencepgx.DB) error {
				return pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), move); err != nil {
						return err
					}
					_, err := tx.CopyFrom(harness.Holding(t, 8), booksTable, twoColumns, pgx.CopyFromRows([][]any{{7, 2}}))
					return err
				})
			},
		} {
			t.Run(what+"/"+name, func(t *testing.T) {
				_, db := s.both(t, func(*pgxpool.Config) {}, harness.Books(rule))
				defer db.Close()
				unchanged := s.Unchanged(t)
				if err := write(db); what == "view" {
					harness.WantError(t, err, sqlfence.ErrUnguardable)
				} else if err != nil {
					t.Error(err)
				}
				unchanged()
			})
		}
		s.Exec(t, "DROP "+what+" "+elsewhere+".books")
	}
}

// Rows can't be copied into PostgreSQL's catalogue tables.
func TestDefinitionsAreNotCopiedTo(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	for _, table := range []pgx.Identifier{{"pg_catalog", "pg_description"}, {"pg_description"}} {
		_, err := s.db.CopyFrom(t.Context(), table, []string{"objoid", "classoid", "objsubid", "description"},
			pgx.CopyFromRows([][]any{{uint32(1), uint32(1), int32(0), "x"}}))
		harness.WantError(t, err, sqlfence.ErrUnguardable)
	}
}
