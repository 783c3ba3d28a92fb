package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the pages")

// The save that the conflict page proposes keeps both the other user's saved change and the user's change.
func TestDefaultSaveKeepsTheOthersChange(t *testing.T) {
	url, db := newServer(t)
	browser := newBrowser(t)
	ada, bob := newPerson(t, browser, url, "ada"), newPerson(t, browser, url, "bob")

	ada.open("/invoices/1")
	ada.click("edit", 200)
	ada.fill("total", "160")
	lapse(t, db)
	bob.open("/invoices/1")
	bob.click("edit", 200)
	bob.fill("customer", "Babbage")
	bob.click("save", 200)

	ada.click("save", 409)
	ada.want("#differs-customer .merged", "theirs")
	ada.want("#differs-total .merged", "yours")
	ada.want("#holds", "The form holds their changes and yours. Look at it and save.")
	ada.click("save", 200)
	ada.want("#customer", "Babbage")
	ada.want("#total", "160")

	t.Log("where both changed a field, the save that the page proposes keeps the other's, too")
	ada.click("edit", 200)
	ada.fill("total", "170")
	lapse(t, db)
	bob.open("/invoices/1")
	bob.click("edit", 200)
	bob.fill("total", "180")
	bob.click("save", 200)
	ada.click("save", 409)
	ada.want("#differs-total .merged", "theirs; you decide")
	ada.want("#both-total .typed", "170")
	ada.want("#holds", "The form holds the saved invoice. Look at it and save.")
	ada.wantField("total", "180")
	ada.press("mine-total") // takes ada's own total
	ada.wantField("total", "170")
	ada.fill("total", "180")
	ada.click("save", 200)
	ada.want("#total", "180")

	t.Log("while somebody else is editing, what was typed waits for another try")
	ada.click("edit", 200)
	ada.fill("total", "190")
	lapse(t, db)
	bob.open("/invoices/1")
	bob.click("edit", 200)
	ada.click("save", 409)
	ada.wantHolder("bob")
	bob.fill("notes", "from bob")
	bob.click("save", 200)
	ada.click("try", 409)
	ada.wantField("total", "190")
	ada.wantField("notes", "from bob")
	ada.click("save", 200)
	ada.want("#total", "190")
	ada.want("#notes", "from bob")
}

func TestBadTotalKeepsTheForm(t *testing.T) {
	url, _ := newServer(t)
	ada := newPerson(t, newBrowser(t), url, "ada")
	ada.open("/invoices/1")
	ada.click("edit", 200)
	ada.fill("customer", "Babbage")
	ada.fill("total", "dear")
	ada.fill("notes", "a long story")
	ada.click("save", 400)
	ada.want("#fault-total", "The total is a whole number, such as 120.")
	ada.wantField("customer", "Babbage")
	ada.wantField("total", "dear")
	ada.wantField("notes", "a long story")
	ada.fill("total", "120")
	ada.click("save", 200)
	ada.want("#customer", "Babbage")
	ada.want("#total", "120")
	ada.want("#notes", "a long story")
}

func TestWarnsBeforeTheLockLapses(t *testing.T) {
	url, db := newServer(t)
	ada := newPerson(t, newBrowser(t), url, "ada")
	ada.open("/invoices/1")
	ada.click("edit", 200)
	ada.want("#lapsing:not([hidden])", "")
	for _, passed := range []struct {
		time    time.Duration
		warning string
	}{{ttl * 7 / 8, "Your lock lapses at"}, {ttl / 4, "Your lock has lapsed"}} {
		// The page's clock is put forward.
		if _, err := chromedp.Run(ada.ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`{ const now = performance.now.bind(performance); performance.now = () => now() + %d }`, passed.time.Milliseconds()))); err != nil {
			t.Fatal(err)
		}
		shown := fmt.Sprintf(`(e => !e.hidden && e.innerText.startsWith(%q))(document.getElementById("lapsing"))`, passed.warning)
		if _, err := chromedp.Run(ada.ctx, chromedp.Poll[bool](shown, chromedp.WithPollingTimeout(patience))); err != nil {
			t.Fatalf("the page never says %q: %v", passed.warning, err)
		}
	}
	lapse(t, db)
	ada.fill("total", "120")
	ada.click("save", 200)
	ada.want("#total", "120")
}

func TestInvoicesThatDontExist(t *testing.T) {
	url, db := newServer(t)
	ada := newPerson(t, newBrowser(t), url, "ada")
	ada.open("/invoices/99")
	ada.want("#gone", "There never was an invoice 99")
	ada.open("/invoices/2")
	ada.click("edit", 200)
	ada.fill("notes", "a long story")
	lapse(t, db)
	if _, err := db.ExecContext(t.Context(), "DELETE FROM invoice WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	ada.click("save", 404)
	ada.want("#gone", "Invoice 2 has been deleted")
	if text := ada.text("#typed"); !strings.Contains(text, "a long story") {
		t.Errorf("what was typed is lost; the page says %q", text)
	}
	ada.open("/invoices/2")
	ada.want("#gone", "Invoice 2 has been deleted")
}

// Every page fits a phone, and is dark if the reader prefers dark pages.
func TestPagesOnPhonesAndInTheDark(t *testing.T) {
	url, db := newServer(t)
	browser := newBrowser(t)
	ada, bob := newPerson(t, browser, url, "ada"), newPerson(t, browser, url, "bob")
	ada.look("list")
	ada.open("/invoices/1")
	ada.look("show")
	ada.click("edit", 200)
	ada.look("edit")
	ada.fill("total", "dear")
	ada.click("save", 400)
	ada.look("fault")
	ada.fill("total", "160")
	ada.fill("customer", strings.Repeat("Analytical", 8))
	ada.fill("notes", "Averylongword"+strings.Repeat("withoutanend", 10))
	bob.open("/invoices/1")
	bob.look("locked")
	lapse(t, db)
	bob.open("/invoices/1")
	bob.click("edit", 200)
	ada.click("save", 409)
	ada.look("compare-locked")
	bob.fill("total", "150")
	bob.fill("notes", "from bob")
	bob.click("save", 200)
	ada.click("try", 409)
	ada.look("compare")
	ada.open("/invoices/99")
	ada.look("gone")
}

// look checks a person's page on a phone and on a desk, in light and dark colours, and takes the pictures for
// -screenshots.
func (p *person) look(name string) {
	p.t.Helper()
	for _, screen := range []struct {
		name          string
		width, height int64
		options       []chromedp.EmulateViewportOption
	}{
		{"narrow", 360, 640, []chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait}},
		{"wide", 1280, 800, nil},
	} {
		for scheme, dark := range map[string]bool{"light": false, "dark": true} {
			if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(screen.width, screen.height, screen.options...)); err != nil {
				p.t.Fatal(err)
			}
			if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
				p.t.Fatal(err)
			}
			if !p.holds(fmt.Sprintf("innerWidth == %d && document.documentElement.scrollWidth <= innerWidth", screen.width)) {
				p.t.Errorf("%s: the page is wider than a %s screen", name, screen.name)
			}
			// The background's red value shows its brightness, because the background has hardly any colour.
			if !p.holds(fmt.Sprintf(`(parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) < 100) == %v`, dark)) {
				p.t.Errorf("%s: the page isn't %s", name, scheme)
			}
			if !p.holds(`[...document.querySelectorAll("button, input:not([type=hidden])")].every(e => e.offsetHeight == 0 || e.offsetHeight >= 40)`) {
				p.t.Errorf("%s: too small to be pressed by a finger", name)
			}
			p.picture(name + "-" + screen.name + "-" + scheme)
		}
	}
}

func (p *person) holds(script string) bool {
	p.t.Helper()
	holds, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return holds
}

func (p *person) picture(name string) {
	p.t.Helper()
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
