package fencehttp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

var (
	books   = sqlfence.Token{Name: "books", Value: 42}
	strange = sqlfence.Token{Name: "Bücher/a b%:1\n", Value: sqlfence.MaxToken}
)

func secret(c byte) []byte { return []byte(strings.Repeat(string(c), MinSecret)) }

// clock is a Signer's source of the time.
type clock struct{ now time.Time }

func newSigner(t *testing.T, c *clock, secrets ...[]byte) *Signer {
	t.Helper()
	s, err := NewSigner(secrets, func(s *Signer) { s.now = func() time.Time { return c.now } })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seal(t *testing.T, p Proof, target string, tokens ...sqlfence.Token) string {
	t.Helper()
	value, err := p.Seal(target, tokens...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestProofs(t *testing.T) {
	signer := newSigner(t, &clock{time.Now()}, secret('a'))
	for _, p := range []Proof{signer, Unsigned()} {
		value := seal(t, p, "x", books, strange)
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%T: %q can't be in a header", p, value)
		}
		tokens, err := p.Open("x", value)
		if err != nil || len(tokens) != 2 || tokens[0] != books || tokens[1] != strange {
			t.Errorf("%T: %v, %v", p, tokens, err)
		}
		if value, err := p.Seal("x", sqlfence.Token{Name: "books"}); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("%T: a token of 0: %q, %v", p, value, err)
		}
		long := sqlfence.Token{Name: strings.Repeat("b", 500), Value: 1}
		if _, err := p.Seal("x", long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long,
			long); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("%T: a header of more than 8 KiB: %v", p, err)
		}
		for _, value := range []string{"", "books", "books:42", "books:000000000000042 ", "books:%30", "%", "%0", "1.a.b.c"} {
			if tokens, err := p.Open("x", value); !errors.Is(err, ErrRefused) {
				t.Errorf("%T: %q: %v, %v", p, value, tokens, err)
			}
		}
	}
}

func TestSignerRefuses(t *testing.T) {
	c := &clock{time.UnixMilli(1_800_000_000_000)}
	server := newSigner(t, c, secret('a'))
	value := seal(t, server, "PUT shop /books/1", books)
	refused := func(what string, s *Signer, target, value string) {
		t.Helper()
		if tokens, err := s.Open(target, value); !errors.Is(err, ErrRefused) || tokens != nil {
			t.Errorf("%s: %v, %v", what, tokens, err)
		}
	}
	refused("another request", server, "PUT shop /books/2", value)
	refused("another method", server, "DELETE shop /books/1", value)
	refused("another secret", newSigner(t, c, secret('b')), "PUT shop /books/1", value)
	refused("unsigned", server, "PUT shop /books/1", "books:000000000000042")
	for i := range len(value) { // forged: each character
		for _, by := range "A.0" {
			forged := value[:i] + string(by) + value[i+1:]
			if forged != value {
				refused("forged", server, "PUT shop /books/1", forged)
			}
		}
	}
	begun := c.now
	c.now = begun.Add(DefaultLifetime)
	refused("expired", server, "PUT shop /books/1", value)
	c.now = begun.Add(-DefaultLifetime - time.Millisecond)
	refused("valid for longer than twice the server's lifetime", server, "PUT shop /books/1", value)
	c.now = begun.Add(-DefaultLifetime)
	ahead := newSigner(t, c, secret('a'))
	if _, err := ahead.Open("PUT shop /books/1", value); err != nil {
		t.Error("the client's clock is ahead:", err)
	}
	refused("replayed, with the client's clock ahead", ahead, "PUT shop /books/1", value)
	c.now = begun.Add(DefaultLifetime - time.Millisecond)
	if _, err := server.Open("PUT shop /books/1", value); err != nil {
		t.Error("at the end of its time:", err)
	}
	refused("replayed", server, "PUT shop /books/1", value)
	// The signer forgets values only after they have expired, so a replay is still refused.
	for range 3 {
		c.now = c.now.Add(DefaultLifetime)
		refused("replayed later", server, "PUT shop /books/1", value)
		if _, err := server.Open("x", seal(t, server, "x", books)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecretsAreChanged(t *testing.T) {
	c := &clock{time.Now()}
	before, both, after := newSigner(t, c, secret('a')), newSigner(t, c, secret('b'), secret('a')), newSigner(t, c, secret('b'))
	for _, tt := range []struct {
		by, to *Signer
		ok     bool
	}{{before, both, true}, {both, after, true}, {after, both, true}, {both, before, false}, {before, after, false}} {
		if _, err := tt.to.Open("x", seal(t, tt.by, "x", books)); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestOnce(t *testing.T) {
	failure := errors.New("the store is away")
	var nonces []string
	s, err := NewSigner([][]byte{secret('a')}, Lifetime(time.Hour), Once(func(nonce string, until time.Time) (bool, error) {
		nonces = append(nonces, nonce)
		if len(nonces) == 2 {
			return false, failure
		}
		return true, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open("x", seal(t, s, "x", books)); err != nil {
		t.Error(err)
	}
	if _, err := s.Open("x", seal(t, s, "x", books)); !errors.Is(err, ErrRefused) || !errors.Is(err, failure) ||
		strings.Contains(err.Error(), failure.Error()) {
		t.Error(err)
	}
	if _, err := s.Open("y", seal(t, s, "x", books)); !errors.Is(err, ErrRefused) || len(nonces) != 2 {
		t.Error("a wrong signature was noted:", err, nonces)
	}
	if len(nonces[0]) != 22 || nonces[0] == nonces[1] {
		t.Error(nonces)
	}
}

func TestInvalidSigners(t *testing.T) {
	for what, secrets := range map[string][][]byte{"none": nil, "short": {secret('a'), secret('b')[1:]}} {
		if _, err := NewSigner(secrets); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Error(what, err)
		}
	}
	for _, d := range []time.Duration{0, -1, 25 * time.Hour} {
		if _, err := NewSigner([][]byte{secret('a')}, Lifetime(d)); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Error(d, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("books:000000000000042 a%20b:000000000000001")
	f.Add("1.AAAA.AAAA.AAAA")
	signer, err := NewSigner([][]byte{secret('a')})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if tokens, err := signer.Open("x", value); err == nil {
			t.Fatalf("%q is taken for %v", value, tokens)
		}
		tokens, err := Unsigned().Open("x", value)
		if err != nil {
			return
		}
		if again, err := Unsigned().Seal("x", tokens...); err != nil || again != value {
			t.Fatalf("%q gives %v, which is written %q, %v", value, tokens, again, err)
		}
	})
}
