package schema

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A registration has the table's and columns' names as the database stores them, and the rules in the syntax of
// --table.
func TestRegistrationHasTheDatabasesNames(t *testing.T) {
	db, err := sqlfence.OpenDB(new(fakedb.DB), sqlfence.WithDialect(sqlfence.SQLite),
		sqlfence.WithTable("Books", sqlfence.Key("id"), sqlfence.RowFence(`"fence,token"`), sqlfence.Ledger()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const want = `{
  "dialect": "SQLite",
  "tables": [
    {
      "table": "books",
      "rules": [
        "row-fence:\"fence,token\"",
        "ledger",
        "resource:\"Books\"",
        "key:id"
      ]
    }
  ]
}
`
	if got, err := Registration(db); err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, db := range []*sql.DB{nil, sql.OpenDB(unknownDriver{})} {
		if _, err := Registration(db); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("%v: %v", db, err)
		}
	}
}
