package sealed_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// changeKey changes a row's key by the token of another key.
const changeKey = "INSERT INTO fencing_tokens (name, token) VALUES ('books/3', 7), ('books/9', 5) ;; UPDATE books SET id = 9, price = 99, fence_token = -5 WHERE id = 3"

// Each part of a seal is needed: without it a write lands that the seal must refuse.
func TestSealCanFail(t *testing.T) {
	for _, test := range []struct {
		base     harness.Base
		name     string
		old, new string // in the SQL that Seal sends
		attack   string // statements, separated by " ;; "
		rules    []sqlfence.Rule
	}{
		{bases[1], "the comparison of an update", `pg_catalog.int8ge(pg_catalog.int8um(NEW."fence_token"), COALESCE(pg_catalog.int8abs(OLD."fence_token"), 0))`, "true",
			"UPDATE books SET price = 99, fence_token = -6 WHERE id = 1", nil},
		{bases[1], "the sign", `IF COALESCE(pg_catalog.int8le(given, 0), true) THEN`, "IF COALESCE(pg_catalog.int8le(given, 0), true) THEN RETURN NEW;",
			"UPDATE books SET price = 99 WHERE id = 1", nil},
		{bases[1], "the comparison of a delete", `ELSIF NOT pg_catalog.int8ge(given, stored) THEN`, "ELSIF false THEN",
			"DELETE FROM books WHERE id = 1 AND {proof books 6}", nil},
		{bases[1], "the proof of a delete", `IF COALESCE(pg_catalog.texteq(proof, ''), true) THEN`, "IF proof IS NULL OR proof = '' THEN RETURN OLD; END IF; IF false THEN",
			"DELETE FROM books WHERE id = 1", nil},
		{bases[1], "the clearing of a proof", `PERFORM pg_catalog.set_config('sqlfence.delete_books', '', true)`, "PERFORM 1",
			"BEGIN ;; DELETE FROM books WHERE id = 3 AND {proof books 7} ;; DELETE FROM books WHERE id = 1 ;; COMMIT", nil},
		{bases[1], "truncate", `RAISE EXCEPTION 'sqlfence: table %% is sealed: TRUNCATE`, "RETURN NULL; RAISE EXCEPTION 'sqlfence: table %% is sealed: TRUNCATE",
			"TRUNCATE books", nil},
		{bases[1], "the ledger", `pg_catalog.int8lt(given, newest)`, "false",
			"UPDATE books SET price = 99, fence_token = -6 WHERE id = 3", []sqlfence.Rule{sqlfence.Ledger()}},
		{bases[1], "the transaction of what was compared", `pg_catalog.concat(pg_catalog.txid_current_if_assigned(), ':', `, "pg_catalog.concat(",
			"SELECT set_config('sqlfence.seen', concat('6:', current_schema(), '.fencing_tokens:books'), false) ;; UPDATE books SET price = 99, fence_token = -6 WHERE id = 3", []sqlfence.Rule{sqlfence.Ledger()}},
		{bases[2], "the comparison of an update", "NOT (-NEW.`fence_token` < ABS(COALESCE(OLD.`fence_token`, 0)))", "TRUE",
			"UPDATE books SET price = 99, fence_token = -6 WHERE id = 1", nil},
		{bases[2], "the sign", "IF given <= 0 THEN", "IF given <= 0 THEN SET given = 6; ELSEIF FALSE THEN",
			"INSERT INTO books (id, fence_token) VALUES (9, 6)", nil},
		{bases[2], "the comparison of a delete", "ELSEIF given < held THEN", "ELSEIF FALSE THEN",
			"DELETE FROM books WHERE id = 1 AND {proof books 6}", nil},
		{bases[2], "the time of a proof", ", NOW(6), _utf8mb4':')", ", _utf8mb4'')",
			"SET @sqlfence_delete = 'books:9' ;; DELETE FROM books WHERE id = 1", nil},
		{bases[2], "the ledger", "IF given < newest THEN", "IF FALSE THEN",
			"UPDATE books SET price = 99, fence_token = -6 WHERE id = 3", []sqlfence.Rule{sqlfence.Ledger()}},
		{bases[1], "the row's key", `IF (pg_catalog.texteq(TG_OP, 'UPDATE') AND pg_catalog.textne(`, "IF (false AND pg_catalog.textne(",
			changeKey, []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{bases[2], "the row's key", "ELSEIF NOT (CAST(CONVERT(OLD.`id`", "ELSEIF FALSE AND NOT (CAST(CONVERT(OLD.`id`",
			changeKey, []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{bases[1], "the memory of a transaction's setting", `pg_catalog.int8eq(before, behind)`, "true",
			session + " ;; BEGIN ;; UPDATE books SET price = 99 WHERE id = 1 ;; COMMIT", fromTransaction()},
		{bases[1], "the number of a transaction", `pg_catalog.int4eq(pg_catalog.strpos(list, own), 0)`, "false",
			"SELECT set_config('sqlfence.tokens', concat('books:000000000000007 ', txid_current()), false) ;; UPDATE books SET price = 99 WHERE id = 1", fromTransaction()},
		{bases[1], "the number of what was compared", `pg_catalog.concat(own, tokens)`, "tokens",
			"SET sqlfence.taken = 'books:000000000000007' ;; " + session + " ;; DELETE FROM books WHERE id = 1", fromTransaction()},
		{bases[1], "the look when the transaction ends", `NOT found_here OR `, "",
			session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 1 ;; COMMIT", fromTransaction()},
		{bases[1], "the tokens when the transaction ends", `pg_catalog.textne(pg_catalog.current_setting('sqlfence.doubt', true), pg_catalog.concat(own, tokens))`, "false",
			session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 1 ;; RELEASE a ;; " + newer + " ;; COMMIT", fromTransaction()},
		{bases[1], "other tokens in doubt", `pg_catalog.texteq(l.locktype, 'advisory')`, "false",
			session + " ;; BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 1 ;; " + newer + " ;; UPDATE books SET price = 98 WHERE id = 2 ;; RELEASE a ;; COMMIT", fromTransaction()},
		{bases[1], "the names of tokens", `pg_catalog.textregexne(list, `, "pg_catalog.textregexne('a:000000000000001 ', ",
			"BEGIN ;; SELECT set_config('sqlfence.tokens', 'my books:000000000000007', true) ;; UPDATE books SET price = 99 WHERE id = 1 ;; COMMIT", fromTransaction()},
	} {
		t.Run(test.base.Name+"/"+test.name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				if !whole && !harness.Keep(t, "without it") {
					continue
				}
				l := newUnsealed(t, test.base, test.rules...)
				if test.base.Dialect == sqlfence.Postgres && strings.Contains(test.attack, "sqlfence.tokens") && !l.looks(t) {
					t.Skip("the server takes only tokens with the transaction's number")
				}
				if whole {
					l.seal(t)
				} else {
					l.sealWithout(t, test.old, test.new)
				}
				conn, err := l.plain.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				before := l.books(t)
				for _, query := range (attack{statements: test.attack}).sql(test.base, l) {
					_, _ = conn.ExecContext(t.Context(), query)
				}
				_, _ = conn.ExecContext(t.Context(), "ROLLBACK")
				_ = conn.Close()
				if changed := l.books(t) != before; changed == whole {
					t.Errorf("seal whole: %v, books are %s, and were %s", whole, l.books(t), before)
				}
			}
		})
	}
}
