package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// The status of a busy database looks as on its page.
func TestStatusScreen(t *testing.T) {
	var o overview
	o.Server.Version, o.Server.Known = "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc", true
	o.Ledger = ledgerOverview{"public.fencing_tokens", "wrong", 12, tokenRow{Name: "books", Value: 4711}, 0, 1}
	o.Leases.Live = []leaseRow{{Key: "books", Holder: "web-1/4711/dq2m", ExpiresAt: "2026-03-01T12:00:30.000Z"}}
	o.Leases.Ended = 3
	o.Tables = []string{"books", "pens", "shop.orders"}
	o.Settings = map[string]string{"idle_in_transaction_session_timeout": "0", "lock_timeout": "0"}
	o.Findings = []finding{{"fault", "wrong-ledger", "", "The function sqlfence_newest_v2 is missing: no guarded write lands.", "Run sqlfence init --apply.", "SELECT 1"}}
	want := `server   PostgreSQL 15.18 (Debian 15.18-0+deb12u1)
ledger   public.fencing_tokens, not protected as it should be; names 12, near
         their limit 0, retired 1; highest token 4711, of books
leases   live 1, ended 3
         books, held by web-1/4711/dq2m until 2026-03-01T12:00:30.000Z
tables   books, pens, shop.orders
settings idle_in_transaction_session_timeout 0, lock_timeout 0
found    faults 1, warnings 0, notes 0; sqlfence verify lists them
fault: the database (wrong-ledger): The function sqlfence_newest_v2 is missing:
  no guarded write lands. Run sqlfence init --apply.
  SELECT 1
`
	if got := o.screen(screenColumns); got != want {
		t.Errorf("the screen is\n%swant\n%s", got, want)
	}
	if page, err := os.ReadFile("../../../../docs/cli.md"); err != nil || !strings.Contains(string(page), want) {
		t.Errorf("docs/cli.md has another screen, %v", err)
	}
}

// The status fits one screen with any amount of content, and the screen always shows defects.
func TestStatusFitsOneScreen(t *testing.T) {
	var o overview
	o.Ledger = ledgerOverview{strings.Repeat("x", 40), "right", 1e6, tokenRow{Name: strings.Repeat("n", 60), Value: 1e14}, 7, 9}
	for i := range 200 {
		o.Leases.Live = append(o.Leases.Live, leaseRow{Key: fmt.Sprint("job/", i), Holder: "h", ExpiresAt: "2026-03-01T12:00:30.000Z"})
		o.Tables = append(o.Tables, fmt.Sprint("table_", i))
		o.Findings = append(o.Findings, finding{"warning", "setting", "", strings.Repeat("word ", 30), strings.Repeat("word ", 20), ""})
	}
	screen := o.screen(screenColumns)
	if n := strings.Count(screen, "\n"); n > screenLines {
		t.Errorf("%d lines", n)
	}
	for _, line := range strings.Split(screen, "\n") {
		if n := utf8.RuneCountInString(line); n > screenColumns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"live 200", "and 197 more", "and 190 more", "warnings 200", "warning: the database (setting)"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen lacks %q:\n%s", want, screen)
		}
	}
}
