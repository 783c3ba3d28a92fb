package fencehttp

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
)

// Handler returns a handler that calls next with the tokens of the request's [Header] in the request's context and,
// unless the method is GET or HEAD, with the row version in If-Match ([sqlfence.WithSerial]). A request without Header
// has no tokens, so its writes are refused, and next should answer with [WriteError]. The tokens must be signed for the
// request's target, by default its [RequestTarget].
//
// Handler answers rejected tokens with 403, an If-Match without an ETag of this service with 412, and a malformed
// If-Match with 400, without calling next. "If-Match: *" sets no serial. The handler is safe for concurrent use if next
// is.
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
			serial, problem := serialOf(strings.Join(match, ","))
			switch {
			case problem != nil:
				write(w, problem, "If-Match has to be the ETag of this service's answer")
				return
			case serial != anySerial:
				ctx = sqlfence.WithSerial(ctx, serial)
			}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ETag returns a row's serial as the value of the header ETag, which a client sends back as If-Match: 7 is "7" with
// the quotes.
func ETag(serial int64) string { return strconv.Quote(strconv.FormatInt(serial, 10)) }

// anySerial stands for "If-Match: *".
const anySerial = -1

// entityTags matches If-Match's list of entity tags. Source: https://www.rfc-editor.org/rfc/rfc9110#name-etag
var entityTags = regexp.MustCompile(`^\s*(W/)?"[!#-~\x80-\xff]*"(\s*,\s*(W/)?"[!#-~\x80-\xff]*")*\s*$`)

// serialOf reads If-Match: one ETag that ETag wrote, or "*". A list without an ETag of this service, for example
// because a proxy has made its ETags weak, matches no row: 412. A malformed list, or a list with several ETags of this
// service, is 400.
func serialOf(match string) (serial int64, _ *problem) {
	if match == "*" {
		return anySerial, nil
	}
	text := strings.TrimSpace(match)
	if serial, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64); err == nil && serial >= 0 && ETag(serial) == text {
		return serial, nil
	}
	own := func(tag string) bool {
		serial, problem := serialOf(tag)
		return problem == nil && serial != anySerial
	}
	if !entityTags.MatchString(text) || strings.Contains(text, ",") && slices.ContainsFunc(strings.Split(text, ","), own) {
		return 0, malformed
	}
	return 0, changed
}
