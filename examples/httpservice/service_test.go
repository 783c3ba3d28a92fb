package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

// A caller speaks to the service as any HTTP client would.
type caller struct {
	t   *testing.T
	url string
}

func newCaller(t *testing.T) *caller {
	db, err := openDB(sqlite.Driver, sqlite.DSN(filepath.Join(t.TempDir(), "books.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := newService(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	verified.Nothing(t, db)
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	return &caller{t, server.URL}
}

func (c *caller) do(method, path, token, body string) (status int, answer string, header http.Header) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Fencing-Token", token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// setPrice checks the response's status, and returns the body.
func (c *caller) setPrice(token, body string, want int) string {
	c.t.Helper()
	got, answer, _ := c.do("PUT", "/books/1/price", token, body)
	if got != want {
		c.t.Errorf("PUT %s with token %q: got %d %s, want %d", body, token, got, answer, want)
	}
	return answer
}

func (c *caller) wantPrice(want int64) {
	c.t.Helper()
	status, answer, _ := c.do("GET", "/books/1", "", "")
	var b book
	if err := json.Unmarshal([]byte(answer), &b); err != nil || status != http.StatusOK || b.Price != want {
		c.t.Errorf("GET: %d %s (%v), want the price %d", status, answer, err, want)
	}
}

func (c *caller) takeToken() string {
	c.t.Helper()
	status, answer, header := c.do("POST", "/tokens/books", "", "")
	var body struct{ Token sqlfence.Token }
	if err := json.Unmarshal([]byte(answer), &body); err != nil || status != http.StatusCreated {
		c.t.Fatalf("POST /tokens/books: %d %s (%v)", status, answer, err)
	}
	if header.Get("Fencing-Token") != body.Token.String() {
		c.t.Errorf("the header says %q, the body %v", header.Get("Fencing-Token"), body.Token)
	}
	return body.Token.String()
}

func TestPausedHolder(t *testing.T) {
	c := newCaller(t)
	a := c.takeToken()
	if want := "books:000000000000001"; a != want {
		t.Errorf("first token %q, want %q", a, want)
	}
	c.setPrice(a, `{"price": 20}`, http.StatusNoContent)
	c.setPrice(a, `{"price": 21}`, http.StatusNoContent) // a holder may write many times

	b := c.takeToken()
	c.setPrice(b, `{"price": 30}`, http.StatusNoContent)
	if answer := c.setPrice(a, `{"price": 22}`, http.StatusConflict); !strings.Contains(answer, "stale") {
		t.Errorf("the conflict says %q", answer)
	}
	c.wantPrice(30)
	c.setPrice(b, `{"price": 31}`, http.StatusNoContent)
	c.wantPrice(31)
}

func TestRefusals(t *testing.T) {
	c := newCaller(t)
	token := c.takeToken()
	const body = `{"price": 30}`

	c.setPrice("", body, http.StatusPreconditionRequired)
	c.setPrice("shelves:000000000000001", body, http.StatusPreconditionRequired)
	for _, malformed := range []string{"books", "books:1", "books:00000000000000x", ":000000000000001", "books:000000000000000", "books:999999999999999"} {
		c.setPrice(malformed, body, http.StatusBadRequest)
	}
	for _, malformed := range []string{"", "{}", "30", `{"price": "dear"}`} {
		c.setPrice(token, malformed, http.StatusBadRequest)
	}
	c.wantPrice(10)

	for _, test := range []struct {
		method, path string
		want         int
	}{
		{"PUT", "/books/2/price", http.StatusNotFound},
		{"PUT", "/books/one/price", http.StatusBadRequest},
		{"GET", "/books/2", http.StatusNotFound},
		{"POST", "/tokens/shelves", http.StatusNotFound},
	} {
		if got, answer, _ := c.do(test.method, test.path, token, body); got != test.want {
			t.Errorf("%s %s: got %d %s, want %d", test.method, test.path, got, answer, test.want)
		}
	}
}

// A made-up token is refused, and later holders can still write.
func TestTokenThatNobodyIssued(t *testing.T) {
	c := newCaller(t)
	const highest = "books:000900000000000"
	c.setPrice(highest, `{"price": 40}`, http.StatusForbidden) // no token has been issued at all
	a := c.takeToken()
	for _, madeUp := range []string{highest, "books:900000000000000", "books:000000000000002"} {
		c.setPrice(madeUp, `{"price": 40}`, http.StatusForbidden)
	}
	c.wantPrice(10)
	c.setPrice(a, `{"price": 20}`, http.StatusNoContent)
	b := c.takeToken()
	c.setPrice(b, `{"price": 30}`, http.StatusNoContent)
	c.wantPrice(30)
}

// The response to an internal error doesn't contain the error's text.
func TestInternalError(t *testing.T) {
	db, err := openDB(sqlite.Driver, sqlite.DSN(filepath.Join(t.TempDir(), "books.db")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	server := httptest.NewServer(s.handler())
	defer server.Close()
	c := &caller{t, server.URL}
	if answer := c.setPrice("books:000000000000001", `{"price": 30}`, http.StatusInternalServerError); strings.Contains(answer, "sql") {
		t.Errorf("the answer gives away %q", answer)
	}
}
