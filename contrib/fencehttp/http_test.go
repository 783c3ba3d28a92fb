package fencehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencehttp"
)

var token = sqlfence.Token{Name: "books", Value: 42}

func newSigner(t testing.TB) *fencehttp.Signer {
	t.Helper()
	s, err := fencehttp.NewSigner([][]byte{[]byte(strings.Repeat("s", 32))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve starts a service with the handler and returns a client of it.
func serve(t *testing.T, proof fencehttp.Proof, h http.HandlerFunc) (client *http.Client, url string) {
	t.Helper()
	server := httptest.NewServer(fencehttp.Handler(h, proof))
	t.Cleanup(server.Close)
	return &http.Client{Transport: fencehttp.Transport(server.Client().Transport, proof)}, server.URL
}

func request(t *testing.T, method, url string, tokens ...sqlfence.Token) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(sqlfence.WithFence(t.Context(), tokens...), method, url, strings.NewReader("30"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// do sends a request, and returns what CheckResponse makes of the answer, or its body.
func do(t *testing.T, c *http.Client, r *http.Request) (status int, body string, refusal error) {
	t.Helper()
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if refusal = fencehttp.CheckResponse(answer); refusal != nil {
		return answer.StatusCode, "", refusal
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), nil
}

func TestTokensArrive(t *testing.T) {
	for _, proof := range []fencehttp.Proof{newSigner(t), fencehttp.Unsigned()} {
		client, url := serve(t, proof, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, sqlfence.FencesFrom(r.Context()), string(body))
		})
		for _, path := range []string{"", "/", "/books/1", "/b%20ücher/?q=a+b&c=%2F", "//x/../y", "/redirected"} {
			if _, body, refusal := do(t, client, request(t, "PUT", url+path, token)); body != "[books:000000000000042]30" {
				t.Errorf("%T: %q: %q, %v", proof, path, body, refusal)
			}
		}
		r := request(t, "PUT", url)
		r.Header.Set(fencehttp.Header, "books:000000000000001")
		if _, body, refusal := do(t, client, r); body != "[]30" || r.Header.Get(fencehttp.Header) == "" {
			t.Errorf("%T: without a token: %q, %v", proof, body, refusal)
		}
	}
}

// A redirect is a new request with a new signature.
func TestRedirectIsSignedAgain(t *testing.T) {
	client, url := serve(t, newSigner(t), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, sqlfence.FencesFrom(r.Context()))
	})
	if _, body, refusal := do(t, client, request(t, "PUT", url+"/from", token)); body != "[books:000000000000042]" {
		t.Error(body, refusal)
	}
}

func TestHandlerRefuses(t *testing.T) {
	signer := newSigner(t)
	_, url := serve(t, signer, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	target := func(r *http.Request) string { return fencehttp.RequestTarget(r) }
	signed := func(r *http.Request) string {
		value, err := signer.Seal(target(r), token)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	stranger, err := fencehttp.NewSigner([][]byte{[]byte(strings.Repeat("x", 32))})
	if err != nil {
		t.Fatal(err)
	}
	strange, err := stranger.Seal(target(request(t, "PUT", url+"/books")), token)
	if err != nil {
		t.Fatal(err)
	}
	for what, headers := range map[string][]string{
		"another secret's": {strange},
		"expired":          {expired(t, target(request(t, "PUT", url+"/books")))},
		"unsigned":         {"books:000000000000042"},
		"empty":            {""},
		"forged":           {"1.AAAA.AAAA.AAAA"},
		"another's":        {signed(request(t, "PUT", url+"/other"))},
		"two":              {signed(request(t, "PUT", url+"/books")), signed(request(t, "PUT", url+"/books"))},
	} {
		r := request(t, "PUT", url+"/books")
		r.Header[fencehttp.Header] = headers
		if status, body, err := do(t, http.DefaultClient, r); status != 403 || !errors.Is(err, fencehttp.ErrRefused) {
			t.Errorf("%s: %d %q %v", what, status, body, err)
		}
	}
}

// expired returns a value of newSigner's secret that was valid for a millisecond.
func expired(t *testing.T, target string) string {
	t.Helper()
	brief, err := fencehttp.NewSigner([][]byte{[]byte(strings.Repeat("s", 32))}, fencehttp.Lifetime(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	value, err := brief.Seal(target, token)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); {
		runtime.Gosched()
	}
	return value
}

func TestReplayIsRefused(t *testing.T) {
	signer := newSigner(t)
	called := 0
	_, url := serve(t, signer, func(http.ResponseWriter, *http.Request) { called++ })
	r := request(t, "PUT", url+"/books")
	value, err := signer.Seal(fencehttp.RequestTarget(r), token)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 403} {
		r := request(t, "PUT", url+"/books")
		r.Header.Set(fencehttp.Header, value)
		if status, _, _ := do(t, http.DefaultClient, r); status != want {
			t.Errorf("attempt %d: %d", i, status)
		}
	}
	if called != 1 {
		t.Error(called, "calls")
	}
}

// If-Match accepts only values that ETag writes. test/integration/extended/fencehttp tests the writes.
func TestIfMatch(t *testing.T) {
	client, url := serve(t, newSigner(t), func(w http.ResponseWriter, r *http.Request) {})
	for _, tt := range []struct {
		method, match string
		want          int
	}{
		{"PUT", `"7"`, 200},
		{"PUT", "*", 200},
		{"GET", "nonsense", 200},
		{"PUT", `W/"7"`, 412},
		{"PUT", `"07"`, 412},
		{"PUT", `"-1"`, 412},
		{"PUT", `"abc", W/"7"`, 412},
		{"PUT", `"abc", "7"`, 400},
		{"PUT", `7`, 400},
		{"PUT", `"`, 400},
		{"PUT", `"7", "8"`, 400},
		{"DELETE", ``, 400},
	} {
		r := request(t, tt.method, url)
		r.Header.Set("If-Match", tt.match)
		if status, body, _ := do(t, client, r); status != tt.want {
			t.Errorf("%s %q: %d %q", tt.method, tt.match, status, body)
		}
	}
	if tag := fencehttp.ETag(7); tag != `"7"` {
		t.Error(tag)
	}
}

// For each refusal the client gets the service's error.
func TestRefusalsArrive(t *testing.T) {
	var err error
	client, url := serve(t, newSigner(t), func(w http.ResponseWriter, _ *http.Request) {
		if !fencehttp.WriteError(w, err) {
			http.Error(w, "fault", http.StatusInternalServerError)
		}
	})
	for _, tt := range []struct {
		is   error
		want int
	}{
		{sqlfence.ErrStale, 409}, {sqlfence.ErrNotIssued, 409}, {sqlfence.ErrUnknownName, 409},
		{sqlfence.ErrConflict, 412}, {sqlfence.ErrGone, 412}, {sqlfence.ErrNoFence, 428}, {sqlfence.ErrNoSerial, 428},
		{sqlfence.ErrOutOfScope, 403}, {sqlfence.ErrLocked, 423}, {sqlfence.ErrUnknownOutcome, 502},
	} {
		err = fmt.Errorf("saving: %w", tt.is)
		status, _, refusal := do(t, client, request(t, "PUT", url, token))
		var typed *fencehttp.ResponseError
		if status != tt.want || !errors.Is(refusal, tt.is) || !errors.As(refusal, &typed) || typed.Status != status {
			t.Errorf("%v: %d %v", tt.is, status, refusal)
		}
	}
	if kind := fencehttp.Kind(sqlfence.ErrStale); kind != "stale" || fencehttp.KindError(kind) != sqlfence.ErrStale ||
		fencehttp.Kind(sqlfence.ErrUnguardable) != "" || fencehttp.KindError("") != nil {
		t.Error("kinds")
	}
	err = errors.Join(sqlfence.ErrStale, sqlfence.ErrUnknownOutcome)
	if status, _, _ := do(t, client, request(t, "PUT", url, token)); status != 502 {
		t.Error("a write that may have been applied is answered", status)
	}
	err = sqlfence.ErrUnguardable
	if status, body, refusal := do(t, client, request(t, "PUT", url, token)); status != 500 || body != "fault\n" || refusal != nil {
		t.Error(status, body, refusal)
	}
}

// A problem of another type isn't a refusal, and the response keeps its body.
func TestOtherProblems(t *testing.T) {
	const other = `{"type":"about:blank","title":"x"}`
	client, url := serve(t, newSigner(t), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		fmt.Fprint(w, other)
	})
	if _, body, refusal := do(t, client, request(t, "PUT", url)); body != other || refusal != nil {
		t.Error(body, refusal)
	}
}

// A RoundTripper closes the body also with an error.
func TestInvalidTokenIsNotSent(t *testing.T) {
	client, url := serve(t, newSigner(t), func(http.ResponseWriter, *http.Request) { t.Error("sent") })
	r := request(t, "PUT", url, sqlfence.Token{Name: "books", Value: -1})
	closed := false
	r.Body = closing{r.Body, func() { closed = true }}
	if _, err := client.Do(r); !errors.Is(err, sqlfence.ErrInvalid) || !closed {
		t.Error(err, closed)
	}
}

type closing struct {
	io.ReadCloser
	then func()
}

func (c closing) Close() error { c.then(); return c.ReadCloser.Close() }

// A request without a method is a GET, a header of the program's own isn't sent, and http.Client reaches the base.
func TestTransportIsTransparent(t *testing.T) {
	base := &idle{RoundTripper: http.DefaultTransport}
	signer := newSigner(t)
	got := make(chan http.Header, 2)
	server := httptest.NewServer(fencehttp.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header
	}), signer))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: fencehttp.Transport(base, signer)}
	for _, ctx := range []context.Context{t.Context(), sqlfence.WithFence(t.Context(), token)} {
		r := request(t, http.MethodGet, server.URL)
		r.Method = ""
		r.Header[fencehttp.Header] = []string{"", "forged"}
		if status, body, err := do(t, client, r.WithContext(ctx)); status != http.StatusOK || err != nil {
			t.Fatal(status, body, err)
		}
		if sent, want := (<-got).Values(fencehttp.Header), len(sqlfence.FencesFrom(ctx)); len(sent) != want {
			t.Errorf("%q was sent, want %d", sent, want)
		}
	}
	if client.CloseIdleConnections(); !base.closed {
		t.Error("the base's idle connections aren't closed")
	}
}

// idle records whether its idle connections were closed.
type idle struct {
	http.RoundTripper
	closed bool
}

func (i *idle) CloseIdleConnections() { i.closed = true }

// A refusal's answer has none of the headers of the answer that the handler was about to give.
func TestRefusalDropsHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("ETag", fencehttp.ETag(8))
	w.Header().Set("Content-Length", "3")
	fencehttp.WriteError(w, sqlfence.ErrConflict)
	if h := w.Header(); h.Get("ETag") != "" || h.Get("Content-Length") != "" {
		t.Error(h)
	}
}

func Example() {
	signer, err := fencehttp.NewSigner([][]byte{[]byte("a secret of at least 32 bytes of randomness")})
	if err != nil {
		panic(err)
	}
	write := func(ctx context.Context) error { // stands for db.ExecContext(ctx, "UPDATE …")
		if t, ok := sqlfence.FenceFrom(ctx, "books"); !ok || t.Value < 7 {
			return sqlfence.ErrStale
		}
		return nil
	}
	service := httptest.NewServer(fencehttp.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := write(r.Context()); err != nil && !fencehttp.WriteError(w, err) {
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}), signer))
	defer service.Close()

	client := &http.Client{Transport: fencehttp.Transport(nil, signer)}
	for _, value := range []int64{7, 6} {
		ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: value})
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL+"/books/1", nil)
		if err != nil {
			panic(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			panic(err)
		}
		fmt.Println(answer.StatusCode, errors.Is(fencehttp.CheckResponse(answer), sqlfence.ErrStale))
		_ = answer.Body.Close()
	}
	// Output:
	// 200 false
	// 409 true
}
