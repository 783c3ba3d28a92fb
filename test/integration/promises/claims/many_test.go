package claims_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// strange are keys that have a meaning in a list of claims, in a JSON text or in a statement.
var strange = []string{
	`o'neill`, `'`, `"`, `""`, `\`, `\\`, `\"`, `\u0041`, `A`, `a,b`, `{`, `}`, `{}`, `[1]`, `":0`, `":0,"`, `:0`, `a:1`, `null`, `0`,
	"a\tb", "a\nb", "\x01", "\x7f", "\u00e9", "\ufb00", "\U0001f600", "\u2028", `$1`, `?`, `?1`, `:name`, `@a`, `%s`, `--`, `/*`, `$."a"`,
}

// TestManyClaims presents any number of claims by one statement, which is prepared once.
func TestManyClaims(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		const rows = 300
		keys := make([]string, rows)
		for i := range keys {
			keys[i] = fmt.Sprintf(`job "%d"`, i)
		}
		copy(keys, strange)
		db, plain := named(t, b, keys)
		const query = "UPDATE named SET state = 'done' WHERE place <= $1"
		stmt, err := db.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stmt.Close() })
		for _, n := range []int{1, 2, 16, 17, len(strange), rows, 3} {
			claims := make([]sqlfence.Token, n)
			for i := range claims {
				if claims[i], err = sqlfence.ClaimToken("named", keys[i], 3); err != nil {
					t.Fatal(err)
				}
			}
			for what, send := range map[string]func(context.Context) error{
				"prepared": func(ctx context.Context) error { _, err := stmt.ExecContext(ctx, n); return err },
				"at once":  func(ctx context.Context) error { _, err := db.ExecContext(ctx, query, n); return err },
				"in the text": func(ctx context.Context) error {
					_, err := db.ExecContext(ctx, strings.ReplaceAll(query, "$1", fmt.Sprint(n)))
					return err
				},
			} {
				name := fmt.Sprintf("%d claims, %s", n, what)
				newest := claims[n-1]
				for _, value := range []int64{2, 4, 30, sqlfence.MaxToken} {
					claims[n-1].Value = value
					var stale *sqlfence.StaleError
					if err := send(sqlfence.WithFence(t.Context(), claims...)); !errors.As(err, &stale) || stale.Token != claims[n-1] || stale.Current != 3 {
						t.Errorf("%s: a claim with the value %d: %v", name, value, err)
					}
				}
				claims[n-1] = newest
				other, err := sqlfence.ClaimToken("named", "no such row", 3)
				if err != nil {
					t.Fatal(err)
				}
				without := append([]sqlfence.Token{other}, claims[:n-1]...)
				if err := send(sqlfence.WithFence(t.Context(), without...)); !errors.Is(err, sqlfence.ErrOutOfScope) {
					t.Errorf("%s: without the claim of %q: %v", name, keys[n-1], err)
				}
				if got := done(t, plain); got != 0 {
					t.Errorf("%s: %d rows were written by refused statements", name, got)
				}
				if err := send(sqlfence.WithFence(t.Context(), append(claims, other)...)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if got := done(t, plain); got != n {
					t.Errorf("%s: %d rows were written", name, got)
				}
				takesMany(t, db, name, claims, strings.Contains(what, "text"))
				if _, err := plain.ExecContext(t.Context(), "UPDATE named SET state = 'run'"); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// takesMany takes over rows whose claims are 3: under all claims, without the last claim, and with a wrong last claim.
// Each transaction is rolled back.
func takesMany(t *testing.T, db *sql.DB, name string, claims []sqlfence.Token, inText bool) {
	t.Helper()
	query, args := "UPDATE named SET attempt = attempt + 1 WHERE place <= $1", []any{len(claims)}
	if inText {
		query, args = strings.ReplaceAll(query, "$1", fmt.Sprint(args...)), nil
	}
	take := func(claims ...sqlfence.Token) error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(sqlfence.WithFence(t.Context(), claims...), query, args...)
		return err
	}
	last := claims[len(claims)-1]
	for what, held := range map[string][]sqlfence.Token{"all": claims, "all but the last": claims[:len(claims)-1]} {
		if err := take(held...); err != nil {
			t.Errorf("%s: taken over with %s of the claims: %v", name, what, err)
		}
	}
	old, high := last, last
	old.Value, high.Value = 2, 30
	var stale *sqlfence.StaleError
	if err := take(append(claims[:len(claims)-1:len(claims)-1], old)...); !errors.As(err, &stale) || stale.Token != old || stale.Current != 3 {
		t.Errorf("%s: taken over with an old claim: %v", name, err)
	}
	var notIssued *sqlfence.NotIssuedError
	if err := take(append(claims[:len(claims)-1:len(claims)-1], high)...); !errors.As(err, &notIssued) || notIssued.Token != high || notIssued.Current != 3 {
		t.Errorf("%s: taken over with a claim that was never given: %v", name, err)
	}
}

// named returns a database with a row for each key, all of the generation 3, and the same without sqlfence.
func named(t *testing.T, b harness.Base, keys []string) (db, plain *sql.DB) {
	t.Helper()
	dsn := b.DSN(t)
	plain = b.Raw(t, dsn)
	column := "varchar(40)"
	if b.Dialect == sqlfence.MySQL {
		column += " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
	}
	create := "CREATE TABLE named (name " + column + " NOT NULL PRIMARY KEY, place int NOT NULL, state varchar(20) NOT NULL, attempt bigint)"
	if _, err := plain.ExecContext(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if _, err := plain.ExecContext(t.Context(), "INSERT INTO named (name, place, state, attempt) VALUES ($1, $2, 'run', 3)", key, i+1); err != nil {
			t.Fatalf("%q: %v", key, err)
		}
	}
	return b.Fenced(t, dsn, sqlfence.WithTable("named", sqlfence.Key("name"), sqlfence.Claim("attempt"))), plain
}

// done returns how many rows are done.
func done(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM named WHERE state = 'done'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
