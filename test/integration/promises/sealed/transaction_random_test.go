package sealed_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Random transactions, with savepoints and changing tokens, run in a session that has set a token for itself. No row
// may be committed under the session's token.
func TestRandomTransactionsWithASessionsToken(t *testing.T) {
	l := newTransactionLab(t, harness.Bases[0])
	conn, err := l.plain.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(query string) error {
		_, err := conn.ExecContext(t.Context(), query)
		return err
	}
	committed := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		token := func(n uint64) string { return fmt.Sprintf("books:%015d", 10*(seed+1)+n) }
		price := fmt.Sprint(100 + seed)
		update := func() string { return fmt.Sprintf("UPDATE books SET price = %s WHERE id = %d", price, 1+r.IntN(3)) }
		if err := exec("SELECT set_config('sqlfence.tokens', '" + token(1) + "', false)"); err != nil {
			t.Fatal(err)
		}
		script, savepoints := []string{"BEGIN"}, 0
		for range 3 + r.IntN(9) {
			query := update()
			switch r.IntN(9) {
			case 0, 1:
				savepoints++
				query = fmt.Sprint("SAVEPOINT s", savepoints)
			case 2:
				if savepoints > 0 {
					query = fmt.Sprint("RELEASE s", savepoints)
					savepoints--
				}
			case 3:
				if savepoints > 0 {
					query = fmt.Sprint("ROLLBACK TO s", savepoints)
				}
			case 4:
				query = "SELECT set_config('sqlfence.tokens', '" + token(2+r.Uint64N(2)) + "', true)"
			case 5:
				query = "DO $$ BEGIN " + query + "; EXCEPTION WHEN OTHERS THEN NULL; END $$"
			case 6:
				query = []string{"SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED", "RESET sqlfence.tokens",
					"SELECT set_config('sqlfence.tokens', concat('" + token(3) + " ', txid_current()), true)"}[r.IntN(4)]
			}
			script = append(script, query)
		}
		for _, query := range append(script, "COMMIT") {
			if exec(query) != nil {
				_ = exec("ROLLBACK TO s1") // the transaction continues without the refused write
			}
		}
		_, _ = exec("ROLLBACK"), exec("RESET ALL")
		books := l.books(t)
		if strings.Contains(books, fmt.Sprint(price, "@", 10*(seed+1)+1)) {
			t.Fatalf("seed %d: %s: %s", seed, strings.Join(script, "; "), books)
		}
		if strings.Contains(books, ":"+price+"@") {
			committed++
		}
	}
	if committed == 0 {
		t.Error("no transaction has written by its own token")
	}
	t.Logf("%d transactions have written by their own token", committed)
}
