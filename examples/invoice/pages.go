package main

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/rowlock"
)

//go:embed pages.html
var pages string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"clock": func(t time.Time) string { return t.Local().Format("15:04:05 MST") },
	// The key of an invoice is its number alone: [1].
	"number": func(key string) string { return strings.Trim(key, "[]") },
}).Parse(pages))

// A page holds the data of the templates; each template uses a part.
type page struct {
	User        string
	ID          int64
	Saved       texts             // the invoice as it is saved
	Form        draft             // the invoice as the user wants it
	Faults      map[string]string // errors by field of the form
	Lock        *countdown        // the user's own, or nil
	Holder      *rowlock.Lock     // another user's, or nil
	Differences []difference
	Invoices    []invoice
	Locks       []rowlock.HeldLock
	Deleted     bool
}

// Merged reports whether the form has a text of the user's that isn't in the saved invoice.
func (p page) Merged() bool {
	return slices.ContainsFunc(p.Differences, func(d difference) bool { return !d.Both && !d.Taken })
}

// A countdown is a lock with its remaining time, because the browser's clock may be wrong.
type countdown struct {
	Expiry     time.Time
	Left, Warn int64 // milliseconds; the page warns when Warn are left
}

// countdown warns when a quarter of the time is left.
func (s *service) countdown(lock rowlock.Lock) *countdown {
	return &countdown{lock.Expiry, time.Until(lock.Expiry).Milliseconds(), (s.ttl / 4).Milliseconds()}
}

// render writes a page, whole or not at all.
func render(w http.ResponseWriter, status int, name string, p page) {
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, name, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The browser's Back button must not show an outdated lock holder.
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w)
}
