package harness

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// EachLedger runs test on all Stores, by the base driver alone and fenced. db is
// open on the fresh database dsn, which has no table yet.
func EachLedger(t *testing.T, test func(t *testing.T, b Base, dsn string, db *sql.DB)) {
	t.Helper()
	EachStore(t, func(t *testing.T, b Base) {
		t.Run("raw", func(t *testing.T) {
			dsn := b.DSN(t)
			test(t, b, dsn, b.Raw(t, dsn))
		})
		t.Run("fenced", func(t *testing.T) {
			dsn := b.DSN(t)
			test(t, b, dsn, b.Fenced(t, dsn, Books()))
		})
	})
}

// NewStore is tokens.New on db.
func NewStore(t testing.TB, db *sql.DB, opts ...tokens.Option) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// IssueToken issues the next token of a name and returns its value.
func IssueToken(t testing.TB, store *tokens.Store, name string) int64 {
	t.Helper()
	token, err := store.Issue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if token.Name != name {
		t.Fatalf("token = %v, want name %q", token, name)
	}
	return token.Value
}

// MustExec executes a test's own statement on a database that may be fenced.
func MustExec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(sqlfence.Bypass(t.Context(), "a test prepares it"), query, args...)
	switch {
	case IsKept(err):
		Unkept(t, db, query, args...)
	case err != nil:
		t.Fatalf("%s: %v", query, err)
	}
}

// LedgerRows returns what fencing_tokens holds, as "name=token", in order, but for the row
// without a name where tokens start from 0, and for the floor of PostgreSQL's.
func LedgerRows(t testing.TB, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT name, token FROM fencing_tokens WHERE (name <> '' OR token <> 0) AND name <> 'sqlfence:floor' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var name string
		var token sql.NullInt64
		if err := rows.Scan(&name, &token); err != nil {
			t.Fatal(err)
		}
		value := "NULL"
		if token.Valid {
			value = fmt.Sprint(token.Int64)
		}
		list = append(list, name+"="+value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// WantLedger fails the test unless LedgerRows returns want.
func WantLedger(t testing.TB, db *sql.DB, want ...string) {
	t.Helper()
	if got := LedgerRows(t, db); !slices.Equal(got, want) {
		t.Errorf("fencing_tokens holds %q, want %q", got, want)
	}
}
