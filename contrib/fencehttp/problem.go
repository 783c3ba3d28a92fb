package fencehttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/refusal"
)

// A problem is a kind of answer, as in RFC 9457.
type problem struct {
	name   string // the last part of its type
	status int
	title  string
	is     error // what the client gets
}

// pages is where the types of problems are explained.
const pages = "https://github.com/sqlfence/sqlfence/blob/main/docs/services.md#"

// problems are the problems of refusals that a client can handle.
var problems = []*problem{
	of(sqlfence.ErrUnknownOutcome, http.StatusBadGateway, "The write may have been applied"),
	of(sqlfence.ErrStale, http.StatusConflict, "The fencing token is stale"),
	of(sqlfence.ErrNotIssued, http.StatusConflict, "The fencing token was not issued here"),
	of(sqlfence.ErrUnknownName, http.StatusConflict, "No fencing token has this name"),
	of(sqlfence.ErrOutOfScope, http.StatusForbidden, "No fencing token of the request covers the row"),
	of(sqlfence.ErrNoFence, http.StatusPreconditionRequired, "The write needs a fencing token"),
	of(sqlfence.ErrNoSerial, http.StatusPreconditionRequired, "The write needs If-Match"),
	changed,
	of(sqlfence.ErrGone, http.StatusPreconditionFailed, "The row is gone"),
	of(sqlfence.ErrLocked, http.StatusLocked, "Another user has the row's lock"),
}

func of(is error, status int, title string) *problem {
	return &problem{refusal.Name(is), status, title, is}
}

// The problems that [Handler] writes; changed is also the problem of a refusal.
var (
	forbidden = &problem{"refused", http.StatusForbidden, "The request's fencing tokens are not taken", ErrRefused}
	malformed = &problem{"malformed", http.StatusBadRequest, "If-Match is not an ETag of this service", nil}
	changed   = of(sqlfence.ErrConflict, http.StatusPreconditionFailed, "The row has changed")
)

// WriteError writes err as the response if err is a fence's refusal, and reports whether it wrote. The response is
// application/problem+json (RFC 9457), without the names of tables and tokens.
//
//	ErrStale, ErrNotIssued, ErrUnknownName   409 Conflict
//	ErrConflict, ErrGone                     412 Precondition Failed
//	ErrNoFence, ErrNoSerial                  428 Precondition Required
//	ErrOutOfScope                            403 Forbidden
//	ErrLocked                                423 Locked
//	ErrUnknownOutcome                        502 Bad Gateway: the write may have been applied
//
// Any different error, such as [sqlfence.ErrUnguardable], is a defect of the service.
func WriteError(w http.ResponseWriter, err error) bool {
	p := problemOf(err)
	if p == nil {
		return false
	}
	write(w, p, "")
	return true
}

func problemOf(err error) *problem {
	name := refusal.Name(err)
	for _, p := range problems {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Kind returns the name of a refusal, such as "stale" or "no-fence"; or "" if [WriteError] would not write err. A
// service with a different protocol can send the name, and [KindError] returns the error of the name.
func Kind(err error) string {
	if p := problemOf(err); p != nil {
		return p.name
	}
	return ""
}

// KindError returns the error of a [Kind], such as [sqlfence.ErrStale]; nil for another name.
func KindError(kind string) error {
	if problemOf(refusal.Named(kind)) == nil {
		return nil
	}
	return refusal.Named(kind)
}

type body struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func write(w http.ResponseWriter, p *problem, detail string) {
	for _, of := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Cache-Control"} {
		w.Header().Del(of) // a header of the handler's own response, as in http.Error
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(body{pages + p.name, p.title, p.status, detail}) // the client has gone
}

// A ResponseError is a refusal in a service's response. errors.Is finds the error that the service passed to
// [WriteError], or [ErrRefused] for tokens that [Handler] rejected.
type ResponseError struct {
	Status int    // the HTTP status
	Title  string // the kind of refusal in words
	Detail string // more about this refusal, or empty

	is error
}

func (e *ResponseError) Error() string {
	text := fmt.Sprintf("fencehttp: the service answered %d: %s", e.Status, e.Title)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

func (e *ResponseError) Unwrap() error { return e.is }

// CheckResponse returns a *[ResponseError] if [WriteError] or [Handler] wrote the response, after reading and closing
// the body. Otherwise it returns nil, and leaves the body unread.
func CheckResponse(r *http.Response) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/problem+json" {
		return nil
	}
	const most = 64 << 10
	read, err := io.ReadAll(io.LimitReader(r.Body, most))
	var b body
	if err == nil {
		err = json.Unmarshal(read, &b)
	}
	if err == nil {
		for _, p := range append(problems[:len(problems):len(problems)], forbidden, malformed) {
			if b.Type == pages+p.name {
				_ = r.Body.Close()
				return &ResponseError{r.StatusCode, p.title, b.Detail, p.is}
			}
		}
	}
	r.Body = restored{io.MultiReader(bytes.NewReader(read), r.Body), r.Body}
	return nil
}

// restored is a body that was read in part.
type restored struct {
	io.Reader
	io.Closer
}
