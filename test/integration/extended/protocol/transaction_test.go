package protocol_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// sealedFromTransaction creates the books and seals them with FromTransaction, so that the seal accepts a token that is
// set for the transaction.
func sealedFromTransaction(t *testing.T) *library {
	t.Helper()
	l := open(t, harness.Bases[1])
	l.adopt(t)
	db := l.Fenced(t, l.dsn, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed(sqlfence.FromTransaction())))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return l
}

// psql sends the page's transaction. It succeeds, and is refused with an older token.
func TestClientInATransaction(t *testing.T) {
	c := clients[0]
	need.Program(t, c.program)
	l := sealedFromTransaction(t)
	text := block(t, "postgres transaction")
	if out, err := c.send(t, l.dsn, strings.ReplaceAll(text, "042'", "041'")); err == nil || !strings.Contains(out, "FT002") {
		t.Errorf("with an older token: %s, %v", out, err)
	}
	l.want(t, "1:10@41")
	if out, err := c.send(t, l.dsn, text); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	l.want(t, "1:30@42")
}

const wantOfTransactions = `set and removed
with an older one: stale
with a higher one: not issued
in the next transaction: no token
in autocommit: no token
behind a savepoint: done
`

// The page's Python function sets the token for a transaction whose statements don't mention it.
func TestPythonInATransaction(t *testing.T) {
	p := programs[0]
	p.need(t)
	l := sealedFromTransaction(t)
	harness.MustExec(t, l.plain, "INSERT INTO books (id, title, price, fence_token) VALUES (2, 'two', 20, -42)")
	frame, err := os.ReadFile(filepath.Join("testdata", "transaction.py"))
	if err != nil {
		t.Fatal(err)
	}
	page := block(t, "python") + "\n\n" + block(t, "python transaction")
	file := filepath.Join(t.TempDir(), "transaction.py")
	if err := os.WriteFile(file, []byte(strings.Replace(string(frame), "# {page}", page, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, file, p.address(t, l.dsn)).CombinedOutput()
	if err != nil || string(out) != wantOfTransactions {
		t.Errorf("%v, it printed\n%s\nwant\n%s", err, out, wantOfTransactions)
	}
	l.want(t, "1:31@42")
}
