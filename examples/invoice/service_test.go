package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// A client speaks to the service as a browser would that one person uses.
type client struct {
	t    *testing.T
	url  string
	http *http.Client
}

func newClient(t *testing.T, url, user string) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, url, &http.Client{Jar: jar}}
	c.post("/login", "user="+user, 200)
	return c
}

func (c *client) post(path, form string, want int) string {
	c.t.Helper()
	return c.do(http.MethodPost, path, form, want, nil)
}

func (c *client) do(method, path, form string, want int, header http.Header) string {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(form))
	if err != nil {
		c.t.Fatal(err)
	}
	for name := range header {
		r.Header.Set(name, header.Get(name))
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if response.StatusCode != want {
		c.t.Errorf("%s %s %s: %d %s, want %d", method, path, form, response.StatusCode, body, want)
	}
	return string(body)
}

func form(serial, total int) string {
	return url.Values{"serial": {fmt.Sprint(serial)}, "total": {fmt.Sprint(total)}, "customer": {"x"}, "notes": {"a\r\nb"}}.Encode()
}

func TestTwoPeople(t *testing.T) {
	url, db := newServer(t)
	ada, bob := newClient(t, url, "ada"), newClient(t, url, "bob")
	ada.post("/invoices/1/edit", "", 200)
	if body := bob.post("/invoices/1/edit", "", 423); !strings.Contains(body, "<b>ada</b> has been editing") {
		t.Errorf("bob reads %s", body)
	}
	if body := bob.post("/invoices/1/save", form(1, 20), 409); !strings.Contains(body, "<b>ada</b> has been editing") || strings.Contains(body, `id="form"`) {
		t.Errorf("bob reads %s", body)
	}
	ada.post("/invoices/1/save", form(1, 30), 200)
	if body := bob.post("/invoices/1/save", form(1, 20), 409); !strings.Contains(body, `<td class="yours">20<td class="theirs">30`) {
		t.Errorf("bob reads %s", body)
	}
	bob.post("/invoices/1/save", form(2, 40), 200)
	var total int
	if err := db.QueryRow("SELECT total FROM invoice WHERE id = 1 AND serial = 3 AND editedby IS NULL").Scan(&total); err != nil || total != 40 {
		t.Errorf("total %d, %v", total, err)
	}
	if _, err := db.Exec("DELETE FROM invoice WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	bob.post("/invoices/1/save", form(3, 50), 404)
	bob.post("/invoices/1/edit", "", 404)
}

func TestRefusals(t *testing.T) {
	url, _ := newServer(t)
	ada := newClient(t, url, "ada")
	ada.post("/login", "user=", 400)
	ada.post("/login", "user=a%3Cb", 400)
	ada.post("/invoices/one/edit", "", 404)
	ada.post("/invoices/1/save", "serial=1&total=dear", 400)
	ada.do(http.MethodGet, "/invoices/1/edit", "", 405, nil)
	// Another site can't press the buttons.
	ada.do(http.MethodPost, "/invoices/1/edit", "", 403, http.Header{"Sec-Fetch-Site": {"cross-site"}})
	if body := newStranger(t, url).post("/invoices/1/edit", "", 200); !strings.Contains(body, "Who are you?") {
		t.Errorf("a stranger reads %s", body)
	}
}

func newStranger(t *testing.T, url string) *client { return &client{t, url, http.DefaultClient} }
