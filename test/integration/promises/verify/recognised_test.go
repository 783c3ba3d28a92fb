package verify_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// Without registered tables Check checks the session's database, and not other programs' databases on the server.
func TestOtherDatabasesOfTheServerAreNotRecognised(t *testing.T) {
	dsn, other := harness.MySQLDatabase(t), harness.MySQLDatabase(t)
	for source, table := range map[string]string{dsn: "books", other: "others"} {
		db, err := sql.Open("mysql", source)
		harness.CloseAtEnd(t, db, err)
		harness.MustExec(t, db, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, fence_token varchar(9))")
		harness.MustExec(t, db, "CREATE TABLE fencing_tokens (name varbinary(512) PRIMARY KEY, token bigint)")
	}
	db, err := sqlfence.Open("mysql", dsn)
	harness.CloseAtEnd(t, db, err)
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(found)
	if !strings.Contains(text, "books") || strings.Contains(text, "others") || len(withCode(found, "several-ledgers")) > 0 {
		t.Errorf("%s", text)
	}
}
