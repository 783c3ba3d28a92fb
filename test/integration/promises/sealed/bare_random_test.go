package sealed_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A bare driver sends random writes to sealed tables under various rules. No write may land that presents no token, a
// stale token or, depending on the rules, a token that was never issued or was used before, or that keeps the serial. A
// valid write earlier in the same transaction must not change this.
func TestRandomBareWrites(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		seed := harness.Seed(t)
		l := newUnsealed(t, b)
		l.exec(t, "ALTER TABLE books ADD COLUMN version bigint NOT NULL DEFAULT 1")
		l.exec(t, "UPDATE books SET fence_token = 7")
		l.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books/1', 7), ('books/2', 7), ('books/3', 7), ('books/9', 7)")
		fence := l.rules
		conn, err := l.plain.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const want = "1:10@7 2:10@7 3:10@7"
		sent, refused := 0, 0
		combinations := 16
		if b.Dialect == sqlfence.Postgres { // 16 of them with FromTransaction and the session's tokens
			combinations = 32
		}
		for combination := range combinations {
			a := &bareWriter{Rand: rand.New(rand.NewPCG(seed, uint64(combination))), postgres: b.Dialect == sqlfence.Postgres}
			l.rules = fence[:len(fence):len(fence)]
			for bit, rule := range []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id"), sqlfence.Serial("version"), sqlfence.SingleUse()} {
				if combination&(1<<bit) != 0 {
					l.rules = append(l.rules, rule)
				}
			}
			if combination&16 != 0 {
				l.rules = append(l.rules, sqlfence.Sealed(sqlfence.FromTransaction()))
				const all = "books:000000000000007 books/1:000000000000007 books/2:000000000000007 books/3:000000000000007 books/9:000000000000007"
				if _, err := conn.ExecContext(t.Context(), "SELECT set_config('sqlfence.tokens', '"+all+"', false)"); err != nil {
					t.Fatal(err)
				}
			}
			a.ledger, a.serial, a.once = combination&1 != 0, combination&4 != 0, combination&8 != 0
			l.db = l.open(t)
			l.seal(t)
			for range harness.Rounds(t, 40) {
				statements := []string{a.statement()}
				if a.IntN(3) == 0 {
					statements = []string{"BEGIN", a.proven(), statements[0], "COMMIT"}
				}
				for _, query := range statements {
					if _, err := conn.ExecContext(t.Context(), query); err != nil && strings.Contains(err.Error(), "sqlfence: ") {
						refused++
					}
				}
				sent++
				_, _ = conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
				if got := l.books(t); got != want {
					t.Fatalf("seed %d, combination %04b: %s lands: %s", seed, combination, strings.Join(statements, "; "), got)
				}
			}
		}
		if refused < sent*2/3 {
			t.Errorf("of %d statements the seal has refused %d only", sent, refused)
		}
	})
}

// A bareWriter writes statements on books that a seal must refuse. The books and the ledger have the token 7.
type bareWriter struct {
	*rand.Rand
	postgres, ledger, serial, once bool
}

func (w *bareWriter) of(texts ...string) string { return texts[w.IntN(len(texts))] }

// mark returns a mark without a proof, or a mark that a seal refuses for an existing or a new row.
func (w *bareWriter) mark(isNew bool) string {
	bad := []string{"0", "7", "8", "9000000000000000", "-900000000000001", "-9223372036854775807"}
	if !isNew || w.ledger {
		bad = append(bad, "-1", "-6", fmt.Sprint(-1-w.IntN(6)))
	}
	if w.ledger {
		bad = append(bad, "-8", "-900000000000000")
	}
	if w.once && !isNew {
		bad = append(bad, "-7")
	}
	return w.of(bad...)
}

// set writes an assignment that the rules don't accept.
func (w *bareWriter) set() string {
	price := fmt.Sprint("price = ", 11+w.IntN(80))
	switch n := w.IntN(4); {
	case n == 0:
		return price
	case n == 1 && w.serial:
		return price + w.of("", ", version = 1", ", version = 0", ", version = version - 1") + ", fence_token = -7"
	}
	return price + ", version = version + 1, fence_token = " + w.mark(false)
}

func (w *bareWriter) where() string {
	return w.of("id = 1", "id > 0", "id IN (1, 3)", "price = 10", "true", "id = 2 OR author IS NULL")
}

// proof returns a condition with which a DELETE presents a token. The token may be stale or invalid.
func (w *bareWriter) proof(token string) string {
	if w.postgres {
		return "set_config('sqlfence.delete_books', '" + token + "', true) IS NOT NULL"
	}
	return "LENGTH(@sqlfence_delete := CONCAT('books:', NOW(6), ':', " + token + ")) > 0"
}

func (w *bareWriter) statement() string {
	row := fmt.Sprintf("(9, %d, %s)", w.IntN(99), w.mark(true))
	insert := "INSERT INTO books (id, price, fence_token) VALUES "
	switch w.IntN(8) {
	case 0:
		return "DELETE FROM books WHERE " + w.where()
	case 1:
		token := fmt.Sprint(1 + w.IntN(6))
		if w.ledger {
			token = w.of(token, "8")
		}
		return "DELETE FROM books WHERE " + w.of("id = 1", "id > 0") + " AND " + w.proof(token)
	case 2:
		return w.of("INSERT INTO books (id) VALUES (9)", insert+row, "INSERT INTO books (id, price, fence_token) SELECT id + 8, price, fence_token FROM books WHERE id = 1")
	case 3:
		if w.postgres {
			return "INSERT INTO books (id, fence_token) VALUES (1, -7) ON CONFLICT (id) DO UPDATE SET " + w.of(w.set(), "price = 50, version = books.version + 1, fence_token = EXCLUDED.fence_token", "price = 50")
		}
		return "INSERT INTO books (id, fence_token) VALUES (1, -7) ON DUPLICATE KEY UPDATE " + w.of(w.set(), "price = 50, version = version + 1, fence_token = VALUES(fence_token)", "price = 50")
	case 4:
		if w.postgres {
			return "WITH gone AS (DELETE FROM books WHERE id = 2 RETURNING id), made AS (" + insert + row + " RETURNING id) UPDATE books SET " + w.set() + " WHERE id = 1"
		}
		return "REPLACE INTO books (id, price, fence_token) VALUES (1, 50, " + w.of("-7", "-8", "7") + ")"
	case 5:
		if w.postgres {
			return "UPDATE books AS b SET " + w.set() + " FROM books AS o WHERE o.id = b.id AND b." + w.of("id = 1", "id > 0")
		}
		return "UPDATE books SET " + w.set() + " ORDER BY id DESC LIMIT 1"
	}
	return "UPDATE books SET " + w.set() + " WHERE " + w.where()
}

// proven returns a write that presents the newest token and meets no row.
func (w *bareWriter) proven() string {
	return w.of("UPDATE books SET price = 50, version = version + 1, fence_token = -7 WHERE id = 77", "DELETE FROM books WHERE id = 77 AND "+w.proof("7"))
}
