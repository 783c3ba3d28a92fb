package fencehttp

import (
	"cmp"
	"net/http"

	"github.com/sqlfence/sqlfence"
)

// Header is the header with a request's tokens. A request has at most one.
const Header = "Fencing-Tokens"

// A Target returns the text that a request's tokens are signed for, equal on both sides.
type Target func(*http.Request) string

// RequestTarget is the [Target] by default: the method, the host, and the path with its query. If a proxy changes any
// of the three, pass a different Target on both sides.
func RequestTarget(r *http.Request) string {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	return cmp.Or(r.Method, http.MethodGet) + " " + host + " " + r.URL.RequestURI()
}

// Transport returns a RoundTripper that sends the tokens of a request's context ([sqlfence.WithFence]) in its
// [Header]; a request without tokens is sent unchanged, without the header. A nil base is http.DefaultTransport. For an
// invalid token the error is [sqlfence.ErrInvalid], and nothing is sent. Every host that gets a request with the
// context gets all of its tokens, so don't use this client for untrusted hosts.
//
// Each attempt of the client gets a new signature, even after a redirect. Transport is safe for concurrent use if base
// is.
func Transport(base http.RoundTripper, proof Proof, target ...Target) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base, proof, chosen(target)}
}

type transport struct {
	base   http.RoundTripper
	signer Proof
	target Target
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	tokens := sqlfence.FencesFrom(r.Context())
	if len(tokens) == 0 && len(r.Header.Values(Header)) == 0 {
		return t.base.RoundTrip(r)
	}
	sent := r.Clone(r.Context()) // a RoundTripper changes no request
	sent.Header.Del(Header)
	if len(tokens) > 0 {
		value, err := t.signer.Seal(t.target(r), tokens...)
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // as a RoundTripper has to, also with an error
			}
			return nil, err
		}
		sent.Header.Set(Header, value)
	}
	return t.base.RoundTrip(sent)
}

// CloseIdleConnections closes the idle connections of the base, because http.Client calls this method.
func (t *transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func chosen(target []Target) Target {
	if len(target) > 0 && target[0] != nil {
		return target[0]
	}
	return RequestTarget
}
