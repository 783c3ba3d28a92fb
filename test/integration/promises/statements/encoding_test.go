package statements_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// encodings are encodings in which a character's second byte may be ASCII, above all a backslash.
var encodings = []string{"GBK", "BIG5", "SJIS", "GB18030", "UHC", "JOHAB", "SHIFT_JIS_2004"}

// sneaked are pieces of SQL that mean something else if, in the server's encoding, a character swallows the next byte.
var sneaked = []string{
	"é", "万", "列", "ｱ", "表", "ソ", "ŝ", "\\", "'", "''", "\"", "$", "$$", "$a$", "E'", "e'", "U&'", "U&\"", "`",
	" ", "\n", "--", "/*", "*/", ";", ",", "a", "0", "[", "]", "SELECT ", "AS ",
	"; UPDATE books SET price = 666; ", "UPDATE books SET price = 666", "DELETE FROM books", "UPDATE books SET price = 666 --",
}

func sneak(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("SELECT " + []string{"", "'", "E'", "\"", "$é$", "U&'"}[r.IntN(6)])
	for range 2 + r.IntN(9) {
		b.WriteString(sneaked[r.IntN(len(sneaked))])
	}
	return b.String()
}

// sneakers were composed by hand. Without a check each would write to the books in one of the encodings.
var sneakers = []string{
	`SELECT E'万\'; UPDATE books SET price = 666; --'`,
	`SELECT E'é\'; UPDATE books SET price = 666; --'`,
	`SELECT E'表\'; UPDATE books SET price = 666; --'`,
}

// Under Bypass a statement changes client_encoding without showing it. No write gets through: a text with another
// meaning in some encoding is refused in any encoding.
func TestHiddenEncoding(t *testing.T) {
	seed := uint64(20261122)
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite reads UTF-8")
		}
		sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		sh.Reset(t, 5)
		before := sh.State(t, true)
		bare, fenced := 0, 0
		for _, encoding := range encodings {
			r := rand.New(rand.NewPCG(seed, 0))
			texts := sneakers
			for range 400 {
				texts = append(texts[:len(texts):len(texts)], sneak(r))
			}
			for _, text := range texts {
				for _, db := range []*sql.DB{sh.Plain, sh.DB} {
					hide(t, db, encoding, text)
					after := sh.State(t, true)
					if after == before {
						continue
					}
					if db == sh.DB {
						fenced++
						t.Errorf("%s: %q has changed the books to %s", encoding, text, after)
					} else {
						bare++
					}
					sh.Reset(t, 5)
				}
			}
		}
		if bare == 0 && b.Name == "pq" {
			t.Error("no text reads otherwise in any encoding: the test shows nothing")
		}
		t.Logf("%d texts changed the books on the bare driver", bare)
	})
}

// hide sends a text on a connection whose encoding was changed in a way that no text shows.
func hide(t *testing.T, db *sql.DB, encoding, text string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	bypass := sqlfence.Bypass(t.Context(), "a setting that its text doesn't show")
	if _, err := conn.ExecContext(bypass, fmt.Sprintf("SELECT set_config('client' || '_encoding', '%s', false)", encoding)); err != nil {
		t.Fatalf("%s: %v", encoding, err)
	}
	_, _ = conn.ExecContext(t.Context(), text) // most aren't SQL
	if _, err := conn.ExecContext(bypass, "SELECT set_config('client' || '_encoding', 'UTF8', false)"); err != nil {
		t.Fatalf("%s: %v", encoding, err)
	}
}
