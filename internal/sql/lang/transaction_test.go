package lang

import (
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

func TestInTransaction(t *testing.T) {
	for _, tt := range []struct {
		d     dialect.Dialect
		query string
		in    bool
		want  bool
	}{
		{dialect.Postgres, "SELECT 1", false, false}, {dialect.Postgres, "SELECT 1", true, true}, {dialect.Postgres, "BEGIN", false, true},
		{dialect.Postgres, "START TRANSACTION; COMMIT", false, false}, {dialect.Postgres, "COMMIT AND CHAIN", true, true}, {dialect.Postgres, "COMMIT AND NO CHAIN", true, false},
		{dialect.Postgres, "ROLLBACK", true, false}, {dialect.Postgres, "ROLLBACK TO a", true, true}, {dialect.Postgres, "ROLLBACK WORK TO a", true, true}, {dialect.Postgres, "ROLLBACK TO a", false, false},
		{dialect.Postgres, "PREPARE TRANSACTION 'x'", true, false}, {dialect.Postgres, "PREPARE x AS SELECT 1", true, true}, {dialect.Postgres, "ABORT", true, false},
		{dialect.Postgres, "'", false, true}, {dialect.Postgres, "CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; END", false, true}, {dialect.Postgres, "CREATE TABLE begin (a int)", false, false},
		{dialect.SQLite, "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", true, true},
		{dialect.SQLite, "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END;", true, true},
		{dialect.SQLite, "CREATE TABLE trigger_ (a); END", true, false},
		{dialect.SQLite, "ROLLBACK TRANSACTION a TO b", true, true}, {dialect.SQLite, "ROLLBACK TRANSACTION a", true, false},
		{dialect.SQLite, "END", true, false}, {dialect.SQLite, ";;", true, true}, {dialect.SQLite, "BEGIN; COMMIT; BEGIN", false, true},
	} {
		if got := InTransaction(tt.d, tt.query, tt.in); got != tt.want {
			t.Errorf("%s, %v: %v", tt.query, tt.in, got)
		}
	}
}

func TestMySQLInTransaction(t *testing.T) {
	for in, want := range map[string]bool{
		"BEGIN": true, "BEGIN; COMMIT": false, "START TRANSACTION": true, "ROLLBACK": false,
		"SET autocommit = 0": true, "SET @@session.autocommit = 1": true, "SET `autocommit` = 1": true, "XA START 'a'": true,
		"SET @a = 1": false, "SET autocommit_ = 1": false, "SELECT 'a\\''": true,
	} {
		if got := InTransaction(dialect.MySQL, in, false); got != want {
			t.Errorf("%s: got %v", in, got)
		}
	}
}

func TestTxControls(t *testing.T) {
	const body = "CREATE FUNCTION f() RETURNS int LANGUAGE SQL BEGIN ATOMIC SELECT 1; SELECT 2; END"
	for query, want := range map[string]struct {
		all   []TxControl
		alone bool
	}{
		"SAVEPOINT x":                                  {[]TxControl{{SetSavepoint, "x"}}, true},
		"savepoint savepoint":                          {[]TxControl{{SetSavepoint, "savepoint"}}, true},
		`RELEASE SAVEPOINT "X"`:                        {[]TxControl{{ReleaseSavepoint, "X"}}, true},
		"release X;":                                   {[]TxControl{{ReleaseSavepoint, "x"}}, true},
		"; SAVEPOINT x ;;":                             {[]TxControl{{SetSavepoint, "x"}}, true},
		"/* a */ ROLLBACK WORK TO SAVEPOINT x":         {[]TxControl{{RollbackToSavepoint, "x"}}, true},
		"ROLLBACK TO x; SELECT 1; COMMIT":              {[]TxControl{{RollbackToSavepoint, "x"}, {}}, false},
		"ROLLBACK":                                     {[]TxControl{{}}, true},
		"PREPARE TRANSACTION 'x'; PREPARE x AS SELECT": {[]TxControl{{}}, false},
		"BEGIN; SELECT 'ROLLBACK TO x'":                {nil, false},
		"ROLLBACK TO 'x":                               {[]TxControl{{Verb: RollbackToSavepoint}}, false},
		body:                                           {nil, false},
		body + "; END":                                 {[]TxControl{{}}, false},
		body + "; " + body + "; ROLLBACK TO x":         {[]TxControl{{RollbackToSavepoint, "x"}}, false},
	} {
		if all, alone := TxControls(dialect.Postgres, query); !slices.Equal(all, want.all) || alone != want.alone {
			t.Errorf("%s: %v, alone %v; want %v", query, all, alone, want)
		}
	}
}
