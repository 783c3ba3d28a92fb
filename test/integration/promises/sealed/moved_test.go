package sealed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// newMoves seals a table books with a unique column, and creates a table from which statements may take keys. Rows 1
// and 3 have the stored token 7, or with claims the generation 7. Row 2 is missing.
func newMoves(t *testing.T, b harness.Base, parted bool, key string, rules ...sqlfence.Rule) *lab {
	t.Helper()
	dsn := b.DSN(t)
	l := &lab{Base: b, dsn: dsn, plain: b.Raw(t, dsn)}
	keys := "id integer PRIMARY KEY, isbn varchar(9) UNIQUE"
	if parted {
		keys = "id integer, isbn varchar(9)"
	}
	create := "CREATE TABLE books (" + keys + ", price integer NOT NULL DEFAULT 10, mark bigint NOT NULL DEFAULT 0)"
	if parted {
		create += ` PARTITION BY LIST (id); CREATE TABLE books_2 PARTITION OF books FOR VALUES IN (2);
			CREATE TABLE books_0 PARTITION OF books DEFAULT`
	}
	l.exec(t, create)
	l.exec(t, "CREATE TABLE news (id integer, isbn varchar(9))")
	l.exec(t, "INSERT INTO news VALUES (2, 'i1')")
	l.exec(t, "INSERT INTO books (id, isbn, mark) VALUES (1, 'i1', 7), (3, 'i3', 7)")
	l.exec(t, "CREATE TABLE fencing_tokens (name varchar(200) PRIMARY KEY, token bigint NOT NULL)")
	l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/1', 7), ('books/2', 7)")
	l.db = b.Fenced(t, dsn, sqlfence.WithTable("books", append(rules, sqlfence.Key(key))...))
	l.seal(t)
	return l
}

var (
	rowFence = []sqlfence.Rule{sqlfence.RowFence("mark")}
	claim    = []sqlfence.Rule{sqlfence.Claim("mark")}
	ledger   = []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Ledger()}
)

// moves are statements that give row 1 the key 2. {proof} stands for the assignment of a token, with a comma before it.
func moves(l *lab, t *testing.T, parted bool) []string {
	if l.Dialect == sqlfence.MySQL {
		return []string{
			"UPDATE books SET id = 2, price = 99{proof} WHERE id = 1",
			"UPDATE books JOIN news ON news.isbn = books.isbn SET books.id = news.id, price = 99{proof}",
			"UPDATE books SET id = id + 1, price = 99{proof} WHERE isbn = 'i1' ORDER BY id LIMIT 1",
			"INSERT INTO books (id, isbn, mark) VALUES (2, 'i1', {new mark}) ON DUPLICATE KEY UPDATE id = VALUES(id), price = 99{proof}",
		}
	}
	all := []string{
		"UPDATE books SET id = 2, price = 99{proof} WHERE id = 1",
		"UPDATE books AS b SET id = news.id, price = 99{proof} FROM news WHERE news.isbn = b.isbn",
		"WITH w AS (UPDATE books SET id = id + 1, price = 99{proof} WHERE isbn = 'i1' RETURNING id) SELECT count(*) FROM w",
	}
	if !parted {
		all = append(all, "INSERT INTO books AS b (id, isbn, mark) VALUES (2, 'i1', {new mark}) ON CONFLICT (isbn) DO UPDATE SET id = excluded.id, price = 99{proof}")
	}
	merge := "MERGE INTO books USING news ON news.isbn = books.isbn WHEN MATCHED THEN UPDATE SET id = news.id, price = 99{proof}"
	if _, err := l.plain.ExecContext(t.Context(), "EXPLAIN MERGE INTO news USING books ON false WHEN MATCHED THEN DELETE"); err == nil {
		all = append(all, merge)
	}
	return all
}

func (l *lab) keys(t *testing.T) string {
	t.Helper()
	rows, err := l.plain.QueryContext(t.Context(), "SELECT id, price, mark FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price, mark int
		if err := rows.Scan(&id, &price, &mark); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d:%d:%d", id, price, mark))
	}
	return strings.Join(all, " ")
}

// An UPDATE that changes a row's key by its transaction's tokens needs the tokens of both keys. Neither may be older
// than the stored token.
func TestMovedKeyNeedsTheTokensOfBothKeys(t *testing.T) {
	const before, after = "1:10:7 3:10:7", "2:99:%d 3:10:7"
	for _, b := range harness.Chosen(postgres) {
		for name, rules := range map[string][]sqlfence.Rule{"row fence": rowFence, "claim": claim, "ledger": ledger} {
			for _, parted := range []bool{false, true} {
				t.Run(fmt.Sprint(b.Name, " ", name, " ", parted), func(t *testing.T) {
					for i := range moves(newMoves(t, b, parted, "id", fromTransactionBy(rules)...), t, parted) {
						l := newMoves(t, b, parted, "id", fromTransactionBy(rules)...)
						move := strings.NewReplacer("{proof}", "", "{new mark}", map[bool]string{true: "0", false: "-7"}[name == "claim"]).Replace(moves(l, t, parted)[i])
						try := func(tokens string) error {
							return l.send(t, "BEGIN", "SELECT set_config('sqlfence.tokens', concat('"+tokens+" ', txid_current()), true)", move, "COMMIT")
						}
						for _, tokens := range []string{
							"books/2:000000000000007", "books/2:000000000000008", "books/1:000000000000007", "books/1:000000000000008",
							"books/1:000000000000006 books/2:000000000000008", "books/1:000000000000008 books/2:000000000000006",
							"books/3:000000000000007 books/2:000000000000007", "books:000000000000009",
						} {
							if err := try(tokens); !strings.HasPrefix(harness.SQLState(err), "FT00") {
								t.Errorf("%s under %s: %v", move, tokens, err)
							}
							if got := l.keys(t); got != before {
								t.Fatalf("%s under %s left %s", move, tokens, got)
							}
						}
						err := try("books/1:000000000000007 books/2:000000000000007")
						switch got := l.keys(t); {
						case name == "ledger":
							if got != before || harness.SQLState(err) != "FT001" {
								t.Errorf("%s under both tokens left %s: %v", move, got, err)
							}
						case err != nil || got != fmt.Sprintf(after, 7):
							t.Errorf("%s under both tokens left %s: %v", move, got, err)
						}
					}
				})
			}
		}
	}
}

func fromTransactionBy(rules []sqlfence.Rule) []sqlfence.Rule {
	return append([]sqlfence.Rule{sqlfence.Sealed(sqlfence.FromTransaction())}, rules...)
}

// A statement presents a single token, so it can't change a row's key. A write that keeps the key succeeds.
func TestMovedKeyIsRefusedByOneProof(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		for name, rules := range map[string][]sqlfence.Rule{"row fence": rowFence, "claim": claim, "ledger": ledger} {
			sealings := []sqlfence.Rule{sqlfence.Sealed()}
			if b.Dialect == sqlfence.Postgres {
				sealings = append(sealings, sqlfence.Sealed(sqlfence.FromTransaction()))
			}
			for _, sealing := range sealings {
				l := newMoves(t, b, false, "id", append([]sqlfence.Rule{sealing}, rules...)...)
				before := l.keys(t)
				for _, move := range moves(l, t, false) {
					for _, mark := range []string{"-7", "-8"} {
						text := strings.NewReplacer("{proof}", ", mark = "+mark, "{new mark}", map[bool]string{true: "0", false: mark}[name == "claim"]).Replace(move)
						if _, err := l.plain.ExecContext(t.Context(), text); err == nil {
							t.Errorf("%s, %s: no error", name, text)
						}
						if got := l.keys(t); got != before {
							t.Fatalf("%s: %s left %s", name, text, got)
						}
					}
				}
				l.exec(t, "UPDATE books SET id = 1, price = 11, mark = -7 WHERE id = 1")
				if got := l.keys(t); got != strings.Replace(before, ":10:", ":11:", 1) {
					t.Errorf("%s: a write of the same key left %s", name, got)
				}
			}
		}
	})
}

// A generated key changes with other columns. A trigger sees the new key, or the table can't be sealed.
func TestGeneratedKeyMovesNoRow(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		for _, rules := range [][]sqlfence.Rule{rowFence, claim} {
			dsn := b.DSN(t)
			l := &lab{Base: b, dsn: dsn, plain: b.Raw(t, dsn)}
			l.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 1, mark bigint NOT NULL "+
				"DEFAULT 0, code varchar(20) GENERATED ALWAYS AS (CASE WHEN price = 1 THEN 'a' ELSE 'b' END) STORED)")
			l.exec(t, "INSERT INTO books (id, mark) VALUES (1, 7)")
			l.exec(t, "CREATE TABLE fencing_tokens (name varchar(200) PRIMARY KEY, token bigint NOT NULL)")
			rules = append([]sqlfence.Rule{sqlfence.Key("code"), sqlfence.Sealed()}, rules...)
			l.db = b.Fenced(t, dsn, sqlfence.WithTable("books", rules...))
			if b.Dialect == sqlfence.Postgres {
				if err := schema.Seal(t.Context(), l.db); err == nil || !strings.Contains(err.Error(), "is generated") {
					t.Errorf("Seal: %v", err)
				}
				continue
			}
			l.seal(t)
			if _, err := l.plain.ExecContext(t.Context(), "UPDATE books SET price = 2, mark = -7"); err == nil {
				t.Error("a proof of one key gave the row another one")
			}
			l.exec(t, "UPDATE books SET price = 1, mark = -7 WHERE id = 1")
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/a", Value: 7})
			if _, err := l.db.ExecContext(ctx, "UPDATE books SET price = 1 WHERE id = 1"); err != nil {
				t.Error(err)
			}
		}
	})
}

// A row whose key becomes NULL also leaves its token's scope.
func TestKeyThatBecomesNullIsMoved(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		for name, rules := range map[string][]sqlfence.Rule{"row fence": rowFence, "claim": claim, "ledger": ledger} {
			rules = append([]sqlfence.Rule{sqlfence.Sealed()}, rules...)
			l := newMoves(t, b, false, "isbn", rules...)
			l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/i1', 7)")
			for _, key := range []string{"NULL", "'i9'", "'i1'"} {
				_, err := l.plain.ExecContext(t.Context(), "UPDATE books SET isbn = "+key+", mark = -7 WHERE id = 1")
				if (err == nil) != (key == "'i1'") {
					t.Errorf("%s: isbn = %s: %v", name, key, err)
				}
			}
		}
	})
}
