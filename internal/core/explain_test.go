package core_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func TestExplain(t *testing.T) {
	base := &fakedb.Recorder{}
	db := open(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithTable("pens", sqlfence.Ledger(), sqlfence.Key("id")),
		sqlfence.WithTable("bills", sqlfence.Serial("version")))
	for query, want := range map[string]struct {
		kind   sqlfence.EventKind
		tables []string
		sql    string // a part of the SQL string
		offset int    // of the refusal
	}{
		"SELECT 1":                                     {sqlfence.Passed, nil, "SELECT 1", 0},
		"SELECT price FROM books":                      {sqlfence.Passed, nil, "SELECT price FROM books", 0},
		"UPDATE books SET price = ?":                   {sqlfence.Guarded, []string{"books"}, "<= ?2 THEN ?2", 0},
		"UPDATE books SET price = :price":              {sqlfence.Guarded, []string{"books"}, "<= 1 THEN 1", 0}, // no numbers with names
		"INSERT INTO pens (id) VALUES (:a), (:b)":      {sqlfence.Guarded, []string{"pens"}, "fencing_tokens", 0},
		"UPDATE bills SET total = :total":              {sqlfence.Guarded, []string{"bills"}, "`version` = ", 0},
		"UPDATE books SET fence = 9":                   {sqlfence.Refused, []string{"books"}, "", 17},
		"DELETE FROM fencing_tokens":                   {sqlfence.Refused, []string{"fencing_tokens"}, "", 12},
		"INSERT INTO pens (id) VALUES (abs(random()))": {sqlfence.Refused, []string{"pens"}, "", 30},
	} {
		x, err := sqlfence.Explain(db, query)
		if err != nil {
			t.Fatal(err)
		}
		if x.Kind != want.kind || !slices.Equal(x.Tables, want.tables) || (x.SQL == "") != (want.sql == "") || !strings.Contains(x.SQL, want.sql) {
			t.Errorf("%s: %+v", query, x)
		}
		var refused *sqlfence.UnguardableError
		if errors.As(x.Err, &refused) != (want.kind == sqlfence.Refused) || refused != nil && refused.Offset != want.offset {
			t.Errorf("%s: %#v", query, x.Err)
		}
	}
	base.WantSent(t)
}

func TestExplainOfAnotherDatabase(t *testing.T) {
	raw := sql.OpenDB(&fakedb.Recorder{})
	defer raw.Close()
	for _, db := range []*sql.DB{nil, raw} {
		if _, err := sqlfence.Explain(db, "SELECT 1"); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
	d, err := sqlfence.WrapDriver(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books"))
	if err != nil {
		t.Fatal(err)
	}
	sql.Register("explained", d)
	db, err := sql.Open("explained", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if x, err := sqlfence.Explain(db, "DELETE FROM books"); err != nil || x.Kind != sqlfence.Guarded {
		t.Errorf("%+v, %v", x, err)
	}
}

// The guarded form of a statement, or the reason of its refusal, without a database.
func ExampleExplain() {
	db, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.Postgres),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		"DELETE FROM books WHERE id = $1",
		"TRUNCATE books",
	} {
		x, err := sqlfence.Explain(db, query)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(x.Kind, x.Tables)
		if x.Err != nil {
			fmt.Println(x.Err)
			continue
		}
		fmt.Println(x.SQL)
	}
	// Output:
	// guarded [books]
	// DELETE FROM books WHERE CASE WHEN (id = $1) THEN CASE WHEN pg_catalog.int8le(pg_catalog.int8abs(GREATEST(COALESCE("books"."fence_token", 0), -9223372036854775807)), $2::bigint) THEN true ELSE pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat('sqlfence:nonce:stale:0:', "books"."fence_token"))) IS NOT NULL END ELSE false END AND (id = $1)
	// refused [books]
	// sqlfence: statement can't be guarded: table "books", at byte 9: this kind of statement on a registered table can't be guarded; write UPDATE, DELETE or INSERT, or run it under Bypass; a migration belongs on a connection without sqlfence
}
