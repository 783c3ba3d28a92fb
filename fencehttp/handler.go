package fencehttp

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/sqlfence/sqlfence"
)

// Handler returns a handler that calls next with the tokens of the request's [Header] in its context, and with the
// serial of If-Match ([sqlfence.WithSerial]) where the method isn't GET or HEAD. A request without the header has no
// tokens, and its writes are refused by the fence: next answers by [WriteError]. The target is [RequestTarget] if none
// is given.
//
// Tokens that aren't taken are answered with 403, an If-Match that is no [ETag] with 400; next isn't
// called. "If-Match: *" sets no serial. It is safe for concurrent use if next is.
func Handler(next http.Handler, proof Proof, target ...Target) http.Handler {
	of := chosen(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		switch values := r.Header.Values(Header); {
		case len(values) > 1:
			write(w, forbidden, fmt.Sprintf("there are %d headers %s", len(values), Header))
			return
		case len(values) == 1:
			tokens, err := proof.Open(of(r), values[0])
			if err != nil {
				write(w, forbidden, err.Error())
				return
			}
			ctx = sqlfence.WithFence(ctx, tokens...)
		}
		if match := r.Header.Values("If-Match"); len(match) > 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
			serial, given, ok := serialOf(match)
			switch {
			case !ok:
				write(w, malformed, "If-Match has to be one serial in quotes, as in the ETag of the answer")
				return
			case given:
				ctx = sqlfence.WithSerial(ctx, serial)
			}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ETag returns a row's serial as the value of the header ETag, which a client sends back as If-Match: 7 is "7" with
// the quotes.
func ETag(serial int64) string { return strconv.Quote(strconv.FormatInt(serial, 10)) }

// serialOf reads If-Match: one ETag that ETag wrote, or "*", which gives no serial.
func serialOf(match []string) (serial int64, given, ok bool) {
	if len(match) != 1 {
		return 0, false, false
	}
	text := match[0]
	if text == "*" {
		return 0, false, true
	}
	if len(text) < 3 {
		return 0, false, false
	}
	serial, err := strconv.ParseInt(text[1:len(text)-1], 10, 64)
	return serial, true, err == nil && serial >= 0 && ETag(serial) == text
}
