package main

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/sqlfence/sqlfence/rowlock"
)

//go:embed pages.html
var pages string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"clock": func(t time.Time) string { return t.Local().Format("15:04:05") },
}).Parse(pages))

// A page is what the templates show; each uses a part of it.
type page struct {
	User        string
	Invoice     invoice
	Lock        rowlock.Lock  // the user's own
	Holder      *rowlock.Lock // somebody else's, or nil
	Differences []difference
	Locks       []rowlock.HeldLock
}

// render writes a page, whole or not at all.
func render(w http.ResponseWriter, status int, name string, p page) {
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, name, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Going back must not show who was editing then.
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w)
}
