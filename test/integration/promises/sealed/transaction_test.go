package sealed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// fromTransaction returns rules with which a seal accepts a transaction's tokens.
func fromTransaction(rules ...sqlfence.Rule) []sqlfence.Rule {
	return append([]sqlfence.Rule{sqlfence.Sealed(sqlfence.FromTransaction())}, rules...)
}

// The statements below set the transaction's token, or only seem to.
const (
	local   = "SELECT set_config('sqlfence.tokens', 'books:000000000000007', true)"
	withID  = "SELECT set_config('sqlfence.tokens', concat('books:000000000000007 ', txid_current()), true)"
	session = "SELECT set_config('sqlfence.tokens', 'books:000000000000007', false)"
	newer   = "SELECT set_config('sqlfence.tokens', 'books:000000000000008', true)"
	old     = "SELECT set_config('sqlfence.tokens', 'books:000000000000006', true)"
)

// send sends statements on one connection of the bare driver, and returns the first error. The session's settings are
// discarded afterwards.
func (l *lab) send(t testing.TB, statements ...string) error {
	t.Helper()
	conn, err := l.plain.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, query := range statements {
		if _, err = conn.ExecContext(t.Context(), query); err != nil {
			break
		}
	}
	for _, query := range []string{"ROLLBACK", "RESET ROLE", "RESET ALL"} {
		_, _ = conn.ExecContext(context.WithoutCancel(t.Context()), query)
	}
	return err
}

// newTransactionLab adds a cascading foreign key, functions, a trigger and a view, which write to the books.
func newTransactionLab(t *testing.T, b harness.Base, rules ...sqlfence.Rule) *lab {
	l := newUnsealed(t, b, fromTransaction(rules...)...)
	l.exec(t, `INSERT INTO authors (id, name) VALUES (1, 'x'), (2, 'y'); UPDATE books SET author = 1;
		ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE CASCADE ON UPDATE CASCADE;
		CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'UPDATE books SET price = 20 WHERE id = 1';
		CREATE FUNCTION d() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM books WHERE id = 1';
		CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE books SET price = 20 WHERE id = 1; RETURN NEW; END';
		CREATE TRIGGER t AFTER INSERT ON authors FOR EACH ROW EXECUTE FUNCTION t();
		CREATE VIEW v AS SELECT id, price FROM books`)
	l.seal(t)
	return l
}

// looks reports whether the server can distinguish a transaction's setting from a session's. If it can't, the setting
// must contain the transaction's number.
func (l *lab) looks(t *testing.T) bool {
	return !harness.Lacks(t, l.plain, "SELECT pg_get_backend_memory_contexts()")
}

// settable returns a statement that sets tokens, as the server takes it.
func (l *lab) settable(t *testing.T, set string) string {
	if l.looks(t) {
		return set
	}
	return strings.Replace(set, "', true)", " ' || txid_current(), true)", 1)
}

// Statements that don't mention the fence are written under the transaction's token. Under an older token they are
// refused.
func TestTakenFromTheTransaction(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		for name, rules := range map[string][]sqlfence.Rule{"row": nil, "ledger": {sqlfence.Ledger()}} {
			for query, want := range map[string]string{
				"UPDATE books SET price = 20 WHERE id = 1":                                                                                     "1:20@7 2:10@7 3:10@0",
				"UPDATE books SET price = 20, fence_token = 3 WHERE id = 1":                                                                    "1:20@7 2:10@7 3:10@0",
				"UPDATE books SET price = 20, fence_token = NULL WHERE id < 3":                                                                 "1:20@7 2:20@7 3:10@0",
				"INSERT INTO books (id) VALUES (4), (5)":                                                                                       "1:10@7 2:10@7 3:10@0 4:10@7 5:10@7",
				"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 20":                                                  "1:20@7 2:10@7 3:10@0",
				"DELETE FROM books WHERE id = 1":                                                                                               "2:10@7 3:10@0",
				"COPY books (id) FROM PROGRAM 'echo 9'":                                                                                        "1:10@7 2:10@7 3:10@0 9:10@7",
				"MERGE INTO books USING (VALUES (1)) AS v (i) ON id = i WHEN MATCHED THEN UPDATE SET price = 20":                               "1:20@7 2:10@7 3:10@0",
				"MERGE INTO books USING (VALUES (1)) AS v (i) ON id = i WHEN MATCHED THEN DELETE":                                              "2:10@7 3:10@0",
				"MERGE INTO books USING (VALUES (9), (1)) AS v (i) ON id = i WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (i)": "2:10@7 3:10@0 9:10@7",
				"WITH a AS (UPDATE books SET price = 11 WHERE id = 2 RETURNING 1) DELETE FROM books USING a WHERE id = 1":                      "2:11@7 3:10@0",
				"WITH a AS (DELETE FROM books WHERE id = 2 RETURNING id) UPDATE books SET price = a.id FROM a WHERE books.id = 1":              "1:2@7 3:10@0",
				"DELETE FROM authors WHERE id = 1":                                                                                             "",
				"UPDATE authors SET id = 3 WHERE id = 1":                                                                                       "1:10@7 2:10@7 3:10@7",
				"SELECT f()":                                                                                                                   "1:20@7 2:10@7 3:10@0",
				"SELECT d()":                                                                                                                   "2:10@7 3:10@0",
				"DO 'BEGIN PERFORM f(); END'":                                                                                                  "1:20@7 2:10@7 3:10@0",
				"INSERT INTO authors VALUES (5, 'x')":                                                                                          "1:20@7 2:10@7 3:10@0",
				"UPDATE v SET price = 20 WHERE id = 1":                                                                                         "1:20@7 2:10@7 3:10@0",
				"UPDATE books SET price = 1 WHERE id = 99":                                                                                     "1:10@7 2:10@7 3:10@0",
			} {
				t.Run(b.Name+"/"+name+"/"+query, func(t *testing.T) {
					l := newTransactionLab(t, b, rules...)
					if harness.Lacks(t, l.plain, query) {
						t.Skip("the server doesn't have it")
					}
					const before = "1:10@7 2:10@7 3:10@0"
					for _, older := range []string{l.settable(t, old), strings.Replace(withID, "7 ", "6 ", 1)} {
						adds := len(rules) == 0 && (strings.HasPrefix(query, "INSERT INTO books (id) VALUES (4)") || strings.HasPrefix(query, "COPY"))
						if err := l.send(t, "BEGIN", older, query, "COMMIT"); harness.SQLState(err) != "FT002" && !adds && !strings.Contains(query, "99") {
							t.Errorf("with an older token: %v", err)
						} else if adds { // new rows have no stored token to compare
							l.exec(t, "DELETE FROM books WHERE id > 3 AND set_config('sqlfence.delete_books', '7', true) IS NOT NULL")
						}
						l.want(t, before)
					}
					if err := l.send(t, query); harness.SQLState(err) != "FT001" && !strings.Contains(query, "99") {
						t.Errorf("without one: %v", err)
					}
					l.want(t, before)
					if err := l.send(t, "BEGIN", l.settable(t, local), query, "COMMIT"); err != nil {
						t.Error(err)
					}
					l.want(t, want)
				})
			}
		}
	}
}

// nothing are sequences of statements that set no valid token for the write. The write must be refused and change
// nothing.
var nothing = []struct {
	name       string
	statements string // separated by " ;; "
}{
	{"no token", "UPDATE books SET price = 99"},
	{"the statement before, outside of a transaction", local + " ;; UPDATE books SET price = 99"},
	{"the transaction before", "BEGIN ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; COMMIT ;; UPDATE books SET price = 99"},
	{"the transaction before, in a transaction", "BEGIN ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; COMMIT ;; BEGIN ;; UPDATE books SET price = 99"},
	{"the transaction before, rolled back", "BEGIN ;; " + local + " ;; ROLLBACK ;; BEGIN ;; UPDATE books SET price = 99"},
	{"the transaction before, with its number", "BEGIN ;; " + withID + " ;; COMMIT ;; UPDATE books SET price = 99"},
	{"set_config for the session", session + " ;; UPDATE books SET price = 99"},
	{"set_config for the session, in a transaction", session + " ;; BEGIN ;; UPDATE books SET price = 99"},
	{"set_config for the session, behind other statements", session + " ;; BEGIN ;; SELECT 1 ;; SELECT * FROM books FOR UPDATE ;; UPDATE books SET price = 99"},
	{"SET", "SET sqlfence.tokens = 'books:000000000000007' ;; UPDATE books SET price = 99"},
	{"SET SESSION", "SET SESSION sqlfence.tokens = 'books:000000000000007' ;; BEGIN ;; UPDATE books SET price = 99"},
	{"SET in the transaction before", "BEGIN ;; SET sqlfence.tokens = 'books:000000000000007' ;; COMMIT ;; BEGIN ;; UPDATE books SET price = 99"},
	{"SET behind SET LOCAL in the transaction before", "BEGIN ;; SET LOCAL sqlfence.tokens = 'books:000000000000006' ;; SET sqlfence.tokens = 'books:000000000000007' ;; UPDATE books SET price = 10 WHERE id = 1 ;; COMMIT ;; BEGIN ;; UPDATE books SET price = 99"},
	{"the session's beneath one that is rolled back", session + " ;; BEGIN ;; SAVEPOINT a ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; ROLLBACK TO SAVEPOINT a ;; UPDATE books SET price = 99"},
	{"the session's beneath one that was the transaction's", session + " ;; BEGIN ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; COMMIT ;; BEGIN ;; UPDATE books SET price = 99"},
	{"the session's, behind the transaction's in a savepoint", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 ;; SELECT set_config('sqlfence.tokens', '', true)"},
	{"the session's, behind a savepoint, and all is reset", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 ;; RESET ALL"},
	{"the session's, behind a savepoint that is released", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 ;; RELEASE SAVEPOINT a"},
	{"the session's, for a row that comes behind a savepoint", session + " ;; BEGIN ;; SAVEPOINT a ;; INSERT INTO books (id) VALUES (9) ;; RELEASE SAVEPOINT a"},
	{"the session's, for a row that goes behind a savepoint", session + " ;; BEGIN ;; SAVEPOINT a ;; DELETE FROM books WHERE id = 3 ;; RELEASE SAVEPOINT a"},
	{"the session's, behind a savepoint, looked at there", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 ;; SET CONSTRAINTS ALL IMMEDIATE"},
	{"the session's, behind a savepoint, with triggers off", session + " ;; SET session_replication_role = replica ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99"},
	{"the session's, again behind a refusal that is caught", session + " ;; BEGIN ;; DO 'BEGIN UPDATE books SET price = 99; EXCEPTION WHEN OTHERS THEN NULL; END' ;; UPDATE books SET price = 99"},
	{"the session's, behind a write with a proof", session + " ;; BEGIN ;; UPDATE books SET price = 10, fence_token = -7 WHERE id = 1 ;; UPDATE books SET price = 99"},
	{"the session's, behind a savepoint", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99"},
	{"the session's, in a function with settings", session + " ;; CREATE OR REPLACE FUNCTION g() RETURNS void LANGUAGE sql SET work_mem = '1MB' AS 'UPDATE books SET price = 99' ;; SELECT g()"},
	{"the session's, in a function that sets another", "SET sqlfence.tokens = 'books:000000000000007' ;; BEGIN ;; SELECT set_config('sqlfence.other', 'x', true), set_config('sqlfence.taken', 'x', true) ;; UPDATE books SET price = 99"},
	{"a savepoint that is rolled back", "BEGIN ;; SAVEPOINT a ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; ROLLBACK TO SAVEPOINT a ;; UPDATE books SET price = 99"},
	{"a savepoint that is rolled back, with the number", "BEGIN ;; SAVEPOINT a ;; " + withID + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; ROLLBACK TO SAVEPOINT a ;; UPDATE books SET price = 99"},
	{"another transaction's number", "SELECT set_config('sqlfence.tokens', concat('books:000000000000007 ', txid_current()), false) ;; BEGIN ;; UPDATE books SET price = 99"},
	{"another transaction's number, set for this one", "BEGIN ;; SELECT set_config('sqlfence.tokens', concat('books:000000000000007 ', txid_current() - 1), true) ;; UPDATE books SET price = 99"},
	{"a role's setting", "ALTER ROLE CURRENT_USER SET sqlfence.tokens = 'books:000000000000007' ;; {reconnect} ;; BEGIN ;; UPDATE books SET price = 99"},
	{"the session's, in doubt, and the transaction's behind it", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 1 ;; " + newer + " ;; UPDATE books SET price = 98 WHERE id = 2"},
	{"the session's, in doubt, and the transaction's at another savepoint", session + " ;; BEGIN ;; SAVEPOINT a ;; DELETE FROM books WHERE id = 1 ;; RELEASE SAVEPOINT a ;; SAVEPOINT b ;; " + newer + " ;; UPDATE books SET price = 98 WHERE id = 2"},
	{"the session's, in doubt, and the transaction's behind RESET ALL", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 1 ;; RESET ALL ;; " + newer + " ;; UPDATE books SET price = 98 WHERE id = 2"},
	{"the session's, in doubt, and the transaction's at another savepoint behind RESET ALL", session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 1 ;; RELEASE SAVEPOINT a ;; RESET ALL ;; " + newer + " ;; SAVEPOINT b ;; UPDATE books SET price = 98 WHERE id = 2"},
	{"a role's setting, by RESET", "{reconnect} ;; BEGIN ;; RESET sqlfence.tokens ;; UPDATE books SET price = 99"},
	{"a role's setting, by RESET ALL", "{reconnect} ;; SET sqlfence.tokens = '' ;; BEGIN ;; RESET ALL ;; UPDATE books SET price = 99"},
	{"a role's setting, by RESET behind the transaction's", "{reconnect} ;; BEGIN ;; " + newer + " ;; RESET sqlfence.tokens ;; UPDATE books SET price = 99"},
	{"a role's setting, as a local default", "{reconnect} ;; BEGIN ;; SET LOCAL sqlfence.tokens TO DEFAULT ;; UPDATE books SET price = 99"},
	{"a role's setting, by RESET at a savepoint", "{reconnect} ;; BEGIN ;; SAVEPOINT a ;; RESET sqlfence.tokens ;; UPDATE books SET price = 99"},
	{"RESET", "BEGIN ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; RESET sqlfence.tokens ;; UPDATE books SET price = 99"},
	{"the token of another name", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'papers:000000000000007', true) ;; UPDATE books SET price = 99"},
	{"a name that ends like it", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'my-books:000000000000007', true) ;; UPDATE books SET price = 99"},
	{"a name that begins like it", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'books:1:000000000000007', true) ;; UPDATE books SET price = 99"},
	{"a name with a blank in it", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'my books:000000000000007', true) ;; UPDATE books SET price = 99"},
	{"no list of tokens", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'books:7', true) ;; UPDATE books SET price = 99"},
	{"a sign", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'books:-00000000000007', true) ;; UPDATE books SET price = 99"},
	{"zero", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'books:000000000000000', true) ;; UPDATE books SET price = 99"},
	{"beyond all tokens", "BEGIN ;; SELECT set_config('sqlfence.tokens', 'books:999999999999999', true) ;; UPDATE books SET price = 99"},
	{"COMMIT AND CHAIN", "BEGIN ;; " + local + " ;; UPDATE books SET price = 10 WHERE id = 1 ;; COMMIT AND CHAIN ;; UPDATE books SET price = 99"},
	{"COMMIT in a procedure", "CREATE OR REPLACE PROCEDURE p() LANGUAGE plpgsql AS $$BEGIN PERFORM set_config('sqlfence.tokens', 'books:000000000000007', true); UPDATE books SET price = 10 WHERE id = 1; COMMIT; UPDATE books SET price = 99; END$$ ;; CALL p()"},
	{"COMMIT in a procedure, over the session's", session + " ;; CREATE OR REPLACE PROCEDURE p() LANGUAGE plpgsql AS $$BEGIN UPDATE books SET price = 10, fence_token = -7 WHERE id = 1; COMMIT; UPDATE books SET price = 99; END$$ ;; CALL p()"},
	{"TRUNCATE", "BEGIN ;; " + local + " ;; TRUNCATE books"},
}

func TestTokensThatProveNothing(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		l := newTransactionLab(t, b)
		for _, test := range nothing {
			t.Run(b.Name+"/"+test.name, func(t *testing.T) {
				if !l.looks(t) {
					t.Skip("the server takes only tokens with the transaction's number")
				}
				statements := strings.Split(test.statements, " ;; ")
				if at := slices.Index(statements, "{reconnect}"); at >= 0 {
					role := "role" + l.unique
					l.exec(t, "CREATE ROLE "+role+" SUPERUSER LOGIN PASSWORD 'x'; ALTER ROLE "+role+" SET sqlfence.tokens = 'books:000000000000007'")
					own := l.plain
					l.plain = l.login(t, role)
					defer func() {
						_ = l.plain.Close()
						l.plain = own
						l.exec(t, "DROP ROLE "+role)
					}()
					statements = statements[at+1:]
				}
				last := statements[len(statements)-1]
				if err := l.send(t, statements[:len(statements)-1]...); err != nil {
					t.Fatal(err)
				}
				before := l.books(t)
				err := l.send(t, append(statements, "COMMIT")...) // at COMMIT the triggers check what a subtransaction wrote
				if state := harness.SQLState(err); state != "FT001" && state != "FT003" {
					t.Errorf("%s: %v", last, err)
				}
				l.want(t, before)
			})
		}
	}
	for name, params := range map[string][2]string{"a client's option": {"options", "-c sqlfence.tokens=books:000000000000007"}, "a parameter": {"sqlfence.tokens", "books:000000000000007"}} {
		t.Run(name, func(t *testing.T) {
			l := newTransactionLab(t, harness.Bases[0])
			db := l.Raw(t, l.with(t, params[0], params[1]))
			tx := harness.Begin(t.Context(), t, db, 0)
			var set string
			if err := tx.QueryRow("SELECT current_setting('sqlfence.tokens')").Scan(&set); err != nil || set != "books:000000000000007" {
				t.Fatal(set, err)
			}
			if _, err := tx.Exec("UPDATE books SET price = 99"); harness.SQLState(err) != "FT001" {
				t.Error(err)
			}
			_ = tx.Rollback()
		})
	}
}

// A setting with the transaction's number counts for each write of the transaction. A setting without the number counts
// only for writes for which the seal can verify that it isn't the session's.
func TestWhereTheTokensAreSet(t *testing.T) {
	const writes = "UPDATE books SET price = price + 1 WHERE id = 1"
	l := newTransactionLab(t, harness.Bases[0])
	for _, test := range []struct {
		statements   string
		plain, named bool // whether the write succeeds
	}{
		{"BEGIN ;; {set} ;; " + writes, true, true},
		{"BEGIN; {set}; " + writes + "; COMMIT", true, true},
		{"{set}; " + writes, true, true},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE ;; {set} ;; " + writes, true, true},
		{"BEGIN ;; SAVEPOINT a ;; {set} ;; " + writes + " ;; RELEASE SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; SAVEPOINT a ;; {set} ;; RELEASE SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; " + writes + " ;; SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; " + writes + " ;; SAVEPOINT a ;; " + writes + " ;; ROLLBACK TO SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; SAVEPOINT a ;; " + writes + " ;; ROLLBACK TO SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; SAVEPOINT a ;; " + writes + " ;; SAVEPOINT b ;; " + writes + " ;; ROLLBACK TO SAVEPOINT b ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; DO 'BEGIN " + writes + "; EXCEPTION WHEN division_by_zero THEN NULL; END'", true, true},
		{"BEGIN ;; {set} ;; SAVEPOINT a ;; " + writes + " ;; SET CONSTRAINTS ALL IMMEDIATE", false, true},
		{"BEGIN ;; {set} ;; SAVEPOINT a ;; " + writes + " ;; RELEASE SAVEPOINT a ;; SET CONSTRAINTS ALL IMMEDIATE ;; " + writes + " ;; SAVEPOINT a ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; SAVEPOINT a ;; " + writes + " ;; RELEASE SAVEPOINT a ;; SELECT set_config('sqlfence.tokens', '', true)", false, true},
		{session + " ;; BEGIN ;; SAVEPOINT a ;; {set} ;; " + writes + " ;; ROLLBACK TO SAVEPOINT a ;; {set} ;; " + writes, true, true},
		{"CREATE OR REPLACE FUNCTION g() RETURNS void LANGUAGE sql SET work_mem = '1MB' AS '" + writes + "' ;; BEGIN ;; {set} ;; SELECT g()", false, true},
		{"CREATE OR REPLACE FUNCTION g() RETURNS void LANGUAGE sql SET work_mem = '1MB' AS '" + writes + "' ;; BEGIN ;; {set} ;; " + writes + " ;; SELECT g()", true, true},
		{session + " ;; BEGIN ;; {set} ;; " + writes, true, true},
		{"BEGIN ;; {set} ;; {set} ;; " + writes + " ;; " + old + " ;; {set} ;; " + writes, true, true},
	} {
		for set, passes := range map[string]bool{local: test.plain, withID: test.named} {
			passes = passes && (set == withID || l.looks(t))
			statements := strings.Split(strings.ReplaceAll(test.statements, "{set}", set), " ;; ")
			if err := l.send(t, append(statements, "COMMIT")...); (err == nil) != passes || !passes && harness.SQLState(err) != "FT001" {
				t.Errorf("%s: %v", statements, err)
			}
		}
	}
}

// With other rules, too, a transaction's token is compared like a statement's.
func TestTransactionWithOtherRules(t *testing.T) {
	set := func(tokens string) string { return "SELECT set_config('sqlfence.tokens', '" + tokens + "', true)" }
	for _, b := range harness.Chosen(postgres) {
		l := newTransactionLab(t, b, sqlfence.Key("id"), sqlfence.Ledger())
		l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/1', 8), ('books/2', 9)")
		for _, test := range []struct{ tokens, query, state string }{
			{"books/1:000000000000008", "UPDATE books SET price = 20 WHERE id = 1", ""},
			{"books/1:000000000000008 books/2:000000000000009", "UPDATE books SET price = 20 WHERE id < 3", ""},
			{"books/2:000000000000009   books/1:000000000000008 ", "UPDATE books SET price = 20 WHERE id < 3", ""},
			{"books/1:000000000000008", "UPDATE books SET price = 99 WHERE id < 3", "FT001"},
			{"books/1:000000000000008 books/2:000000000000008", "UPDATE books SET price = 99 WHERE id < 3", "FT002"},
			{"books/1:000000000000010", "UPDATE books SET price = 99 WHERE id = 1", "FT003"},
			{"books/1:000000000000008", "UPDATE books SET id = 2 WHERE id = 1", "FT001"},
			{"books/1:000000000000008", "DELETE FROM books WHERE id < 3", "FT001"},
			{"books/1:000000000000008 books/2:000000000000009", "DELETE FROM books WHERE id < 3", ""},
		} {
			if err := l.send(t, "BEGIN", l.settable(t, set(test.tokens)), test.query, "COMMIT"); harness.SQLState(err) != test.state {
				t.Errorf("%s: %s: %v", test.tokens, test.query, err)
			}
		}
		l.want(t, "3:10@0")

		l = newTransactionLab(t, b, sqlfence.SingleUse())
		for _, state := range []string{"", "FT002"} {
			if err := l.send(t, "BEGIN", l.settable(t, set("books:000000000000008")), "UPDATE books SET price = 20 WHERE id = 1", "COMMIT"); harness.SQLState(err) != state {
				t.Errorf("SingleUse: %v, want %s", err, state)
			}
		}

		l = newUnsealed(t, b, fromTransaction(sqlfence.Serial("version"))...)
		l.exec(t, "ALTER TABLE books ADD version bigint NOT NULL DEFAULT 1")
		l.seal(t)
		for query, state := range map[string]string{"UPDATE books SET price = 20 WHERE id = 2": "FT004", "UPDATE books SET price = 20, version = version + 1 WHERE id = 1": ""} {
			if err := l.send(t, "BEGIN", l.settable(t, local), query, "COMMIT"); harness.SQLState(err) != state {
				t.Errorf("%s: %v", query, err)
			}
		}
		l.want(t, "1:20@7 2:10@7 3:10@0")
	}
}

// In a transaction with a stale token the attacks on a sealed table fail, too.
func TestAttacksWithAStaleTransaction(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		l := newAttacked(t, b, fromTransaction(sqlfence.Ledger()))
		for i, a := range append(onBoth, onOne[sqlfence.Postgres]...) {
			for j, set := range []string{old, strings.Replace(withID, "7 ", "6 ", 1)} {
				if testing.Short() && i%2 != j { // each attack under one of the rulesets
					continue
				}
				stale := a
				stale.statements = "BEGIN ;; " + set + " ;; " + a.statements
				stale.says = "sqlfence: "
				if strings.Contains(a.says, "invalid input") || strings.Contains(a.says, "out of range") {
					stale.says = a.says
				}
				t.Run(b.Name+"/"+a.name, func(t *testing.T) { stale.run(t, l) })
			}
		}
	}
}

// For a setting without the transaction's number, a table owner who isn't a superuser needs a privilege. For a setting
// with the number the owner needs none. Roles that only write need no privilege.
func TestPrivilegesOfTheOwner(t *testing.T) {
	l := newUnsealed(t, harness.Bases[0], fromTransaction()...)
	var home string
	if err := l.plain.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	owner, writer := "owner"+l.unique, "writer"+l.unique
	l.exec(t, "CREATE ROLE "+owner+"; CREATE ROLE "+writer+"; GRANT USAGE, CREATE ON SCHEMA "+home+" TO "+owner+"; GRANT USAGE ON SCHEMA "+home+" TO "+writer+
		"; ALTER TABLE books OWNER TO "+owner+"; GRANT SELECT, INSERT, UPDATE, DELETE ON books TO "+writer+"; ALTER DEFAULT PRIVILEGES FOR ROLE "+owner+" REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
	defer l.exec(t, "DROP OWNED BY "+owner+", "+writer+"; DROP ROLE "+owner+", "+writer)
	if err := schema.Seal(t.Context(), l.as(t, "role", owner)); err != nil {
		t.Fatal(err)
	}
	send := func(set string) error {
		return l.send(t, "SET ROLE "+writer, "BEGIN", set, "UPDATE books SET price = price + 1 WHERE id = 1", "DELETE FROM books WHERE id = 99", "COMMIT")
	}
	if err := send(local); harness.SQLState(err) != "FT001" || !strings.Contains(err.Error(), "txid_current()") {
		t.Errorf("an owner without the privilege: %v", err)
	}
	if err := send(withID); err != nil {
		t.Error(err)
	}
	if !l.looks(t) {
		return
	}
	grant := "GRANT pg_read_all_stats TO " + owner
	if harness.Lacks(t, l.plain, grant) {
		grant = "GRANT EXECUTE ON FUNCTION pg_get_backend_memory_contexts() TO " + owner
	}
	l.exec(t, grant)
	if err := send(local); err != nil {
		t.Error(err)
	}
	if err := send(session); harness.SQLState(err) != "" {
		t.Logf("set for the session, in this transaction: %v", err)
	}
	l.want(t, "1:13@7 2:10@7 3:10@0")
}

// sqlfence's statements present the token of their context, even if the transaction has another token.
func TestOwnStatementsInATransactionWithTokens(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		l := newTransactionLab(t, b)
		tx := harness.Begin(t.Context(), t, l.db, 0)
		for _, query := range []string{local, "INSERT INTO books (id) VALUES (4)", "UPDATE books SET price = 20 WHERE id = 1", "DELETE FROM books WHERE id = 2"} {
			if _, err := tx.ExecContext(holding(t, 9), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		l.want(t, "1:20@9 3:10@0 4:10@9")
		tx = harness.Begin(t.Context(), t, l.db, 0)
		if _, err := tx.ExecContext(t.Context(), strings.Replace(local, "07'", "20'", 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(holding(t, 8), "UPDATE books SET price = 99 WHERE id = 1"); !errors.Is(err, sqlfence.ErrStale) {
			t.Error(err)
		}
		_ = tx.Rollback()
		if _, err := l.db.ExecContext(t.Context(), "UPDATE books SET price = 99 WHERE id = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Error(err)
		}
	}
}

// Such seals need settings that end with the transaction, and only PostgreSQL has these.
func TestTransactionElsewhere(t *testing.T) {
	l := newUnsealed(t, harness.MySQL, fromTransaction()...)
	if err := schema.Seal(t.Context(), l.db); !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "FromTransaction") {
		t.Error(err)
	}
	if _, err := schema.SealPlan(t.Context(), l.db); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Error(err)
	}
	l.exec(t, "UPDATE books SET price = 20 WHERE id = 1") // the table isn't sealed
}

// Partitions and child tables accept a transaction's token as the table does, and it lets a row move.
func TestTransactionInParts(t *testing.T) {
	const savepoint = "SAVEPOINT a"
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			l := newUnsealed(t, harness.Bases[1], fromTransaction()...)
			l.exec(t, shape)
			l.exec(t, "TRUNCATE books; INSERT INTO books (id, price) VALUES (1, 10), (2, 10)")
			for range 2 {
				l.seal(t)
				if found := l.broken(t); len(found) > 0 {
					t.Errorf("found %v", found)
				}
			}
			for _, set := range []string{l.settable(t, local), withID} {
				if err := l.send(t, "BEGIN", set, savepoint, "UPDATE books SET price = 20, region = 'b' WHERE id = 1", "COMMIT"); err != nil {
					t.Error(err)
				}
				if err := l.send(t, "BEGIN", set, "UPDATE books SET price = 21, region = 'a' WHERE id = 1", "COMMIT"); err != nil {
					t.Error(err)
				}
			}
			for _, query := range []string{"UPDATE books SET price = 99, region = 'b'", "DELETE FROM books", "INSERT INTO books (id, region) VALUES (3, 'b')"} {
				if err := l.send(t, session, "BEGIN", savepoint, query, "COMMIT"); harness.SQLState(err) != "FT001" {
					t.Errorf("%s: %v", query, err)
				}
				if err := l.send(t, "BEGIN", l.settable(t, strings.Replace(local, "07'", "06'", 1)), query, "ROLLBACK"); harness.SQLState(err) != "FT002" && query[0] != 'I' {
					t.Errorf("%s: %v", query, err)
				}
			}
			l.want(t, "1:21@7 2:10@0")
		})
	}
}
