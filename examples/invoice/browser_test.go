package main

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
	"github.com/sqlfence/sqlfence/internal/test/need"
)

const (
	// patience is how long a browser may take for a step that usually takes no time.
	patience = 5 * time.Minute

	// ttl is how long locks last: longer than any test. See lapse.
	ttl = time.Hour
)

// newServer serves the invoices of a fresh database, and returns the URL.
func newServer(t *testing.T) (string, *sql.DB) {
	t.Helper()
	db, err := openDB(sqlite.DSN(filepath.Join(t.TempDir(), "invoices.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := newService(t.Context(), db, ttl)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	return server.URL, db
}

// newBrowser starts a headless Chromium. Without one the test is skipped or
// fails: see [need.Missing].
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	path := need.Program(t, "chromium")
	// The browser is closed at the end rather than killed, so that it leaves no files.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	t.Cleanup(cancel)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"),
		// With its sandbox Chromium refuses to run as root, as in a container. It loads only this test's pages.
		chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(patience),
	)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("closing the browser: %v", err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// A person has a separate browser session, with separate cookies and pages.
type person struct {
	t   *testing.T
	url string
	ctx context.Context
}

func newPerson(t *testing.T, browser context.Context, url, name string) *person {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &person{t, url, ctx}
	p.open("/")
	p.fill("user", name)
	p.click("login", 200)
	if you := p.text("#you"); you != name {
		t.Fatalf("logged in as %q, want %q", you, name)
	}
	return p
}

func (p *person) open(path string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(p.url+path)); err != nil {
		p.t.Fatalf("open %s: %v", path, err)
	}
}

// click presses a button and waits for the page that it leads to.
func (p *person) click(id string, status int64) {
	p.t.Helper()
	response, err := chromedp.RunResponse(p.ctx, chromedp.Click(chromedp.ID(id), chromedp.NodeEnabled))
	if err != nil {
		p.t.Fatalf("click on %s: %v", id, err)
	}
	if response == nil || response.Status != status {
		p.t.Fatalf("click on %s: %+v, want status %d", id, response, status)
	}
}

func (p *person) fill(field, value string) {
	p.t.Helper()
	// A script empties the field, because Clear fails for an empty textarea.
	selector := "[name=" + field + "]"
	if err := chromedp.Do(p.ctx,
		chromedp.Evaluate[chromedp.Void](`document.querySelector("`+selector+`").value = ""`),
		chromedp.SendKeys(chromedp.CSS(selector), value)); err != nil {
		p.t.Fatalf("fill %s: %v", field, err)
	}
}

// text returns the visible text of the first matching element, or "" without a match.
func (p *person) text(selector string) string {
	p.t.Helper()
	const script = `(s => { const e = document.querySelector(s); return e ? e.innerText : "" })`
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script+`("`+selector+`")`))
	if err != nil {
		p.t.Fatalf("read %s: %v", selector, err)
	}
	return strings.TrimSpace(text)
}

func (p *person) disabled(id string) bool {
	p.t.Helper()
	disabled, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.getElementById("`+id+`").disabled`))
	if err != nil {
		p.t.Fatalf("look at %s: %v", id, err)
	}
	return disabled
}

// want compares an element's visible text.
func (p *person) want(selector, want string) {
	p.t.Helper()
	if got := p.text(selector); got != want {
		p.t.Errorf("%s reads %q, want %q", selector, got, want)
	}
}

func (p *person) wantHolder(name string) {
	p.t.Helper()
	if got := p.text("#holder"); !strings.HasPrefix(got, name+" has been editing this invoice since ") {
		p.t.Errorf("the page says %q, want that %s is editing", got, name)
	}
}

// wantField compares the value of a form's field.
func (p *person) wantField(field, want string) {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.querySelector("#form [name=`+field+`]").value`))
	if err != nil {
		p.t.Fatalf("read field %s: %v", field, err)
	}
	if got != want {
		p.t.Errorf("the form has %q as %s, want %q", got, field, want)
	}
}

// press presses a button that doesn't leave the page.
func (p *person) press(id string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Click(chromedp.ID(id), chromedp.NodeEnabled)); err != nil {
		p.t.Fatalf("press %s: %v", id, err)
	}
}

// lapse ends the terms of all locks.
func lapse(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, query := range []string{"UPDATE invoice SET editedexpiry = 1 WHERE editedexpiry IS NOT NULL", "UPDATE rowlocks SET expiry = 1"} {
		if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "time passes"), query); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoPeopleInABrowser(t *testing.T) {
	url, db := newServer(t)
	browser := newBrowser(t)
	ada, bob := newPerson(t, browser, url, "ada"), newPerson(t, browser, url, "bob")

	seeWhoEdits(ada, bob)
	saveReleases(ada, bob)
	takeOverLapsed(ada, bob, db)
	showDifferences(ada, bob, db)
	saveSettled(ada)
	leaveNoLock(ada, bob)
}

// seeWhoEdits: the second sees who is editing before starting.
func seeWhoEdits(ada, bob *person) {
	bob.open("/invoices/1") // before ada begins
	ada.open("/invoices/1")
	ada.click("edit", 200)
	bob.click("edit", 423)
	bob.wantHolder("ada")
	if !bob.disabled("edit") {
		bob.t.Error("bob can still press Edit")
	}
	bob.open("/")
	if locks := bob.text("#locks"); !strings.HasPrefix(locks, "ada has been editing invoice 1 since ") {
		bob.t.Errorf("the list of locks says %q", locks)
	}
}

// saveReleases: saving releases the lock.
func saveReleases(ada, bob *person) {
	ada.fill("total", "120")
	ada.click("keep", 200)
	bob.open("/invoices/1")
	bob.wantHolder("ada")
	bob.want("#total", "120")
	ada.fill("total", "130")
	ada.click("save", 200)
	ada.want("#total", "130")
	bob.open("/invoices/1")
	bob.want("#holder", "")
	bob.want("#total", "130")
}

// takeOverLapsed: a second user takes over a lapsed lock, and the first user's save reports the takeover.
func takeOverLapsed(ada, bob *person, db *sql.DB) {
	ada.click("edit", 200)
	ada.fill("total", "140")
	ada.fill("notes", "from ada")
	lapse(ada.t, db)
	bob.open("/invoices/1")
	bob.want("#holder", "")
	bob.click("edit", 200)
	ada.click("save", 409)
	ada.wantHolder("bob")
	ada.want("#differs-total .yours", "140")
	ada.want("#differs-total .theirs", "130")
	ada.want("#form", "")
}

// showDifferences: a save of an old version shows what changed, field by field.
func showDifferences(ada, bob *person, db *sql.DB) {
	bob.fill("customer", "Babbage & <Sons>")
	bob.fill("total", "150")
	bob.click("save", 200)
	ada.open("/invoices/1")
	ada.want("#customer", "Babbage & <Sons>")
	ada.click("edit", 200)
	ada.fill("total", "160")
	lapse(ada.t, db)
	bob.open("/invoices/1")
	bob.click("edit", 200)
	bob.fill("notes", "from bob")
	bob.click("save", 200)
	ada.click("save", 409)
	ada.want("#holder", "")
	ada.want("#differs-total .yours", "160")
	ada.want("#differs-total .theirs", "150")
	ada.want("#differs-notes .yours", "")
	ada.want("#differs-notes .theirs", "from bob")
	ada.want("#differs-customer", "")  // both have the same customer
	ada.wantField("total", "160")      // ada's change
	ada.wantField("notes", "from bob") // and bob's
	bob.open("/invoices/1")
	bob.want("#total", "150") // nothing was overwritten
	bob.wantHolder("ada")     // who settles it
}

// saveSettled: the settled differences are saved after the other user's version.
func saveSettled(ada *person) {
	ada.fill("notes", "from both")
	ada.click("save", 200)
	ada.want("#total", "160")
	ada.want("#notes", "from both")
}

// leaveNoLock: a user who cancels or logs out leaves no lock.
func leaveNoLock(ada, bob *person) {
	ada.click("edit", 200)
	ada.click("cancel", 200)
	bob.open("/invoices/1")
	bob.want("#holder", "")
	ada.click("edit", 200)
	ada.click("logout", 200)
	bob.open("/invoices/1")
	bob.want("#holder", "")
	bob.want("#total", "160")
}
