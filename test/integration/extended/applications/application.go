package main

import (
	"regexp"
	"time"
)

// An application is a program of another project, with the edits that fence it.
type application struct {
	name     string
	module   string
	version  string
	database string
	note     string // a sentence for the report
	edits    []edit
	tables   []string
	migrates bool   // its edits say when its migrations have run; else a missing table tells
	tests    string // the folder of the package whose tests are run
	skip     string // tests that can't run everywhere, for go test -skip
	columns  string // tests, as a regular expression, that compare columns with a list: RowFence adds one

	// requires are the modules that a program of the time before modules needs.
	requires []string

	// start makes what the tests need beside the application, which gets env: a database, or
	// the application itself if the tests are its clients. It returns the tests' environment. stop
	// removes it, and returns the time that the application took. Nil if they need nothing.
	start func(w *workspace, env []string) (tests []string, stop func() (time.Duration, error), err error)
}

// listsColumns reports whether a test compares a table's columns with a list of its own.
func (a *application) listsColumns(test string) bool {
	return a.columns != "" && regexp.MustCompile(a.columns).MatchString(test)
}

// An edit replaces the only place in a file where old stands. New stands for %s with the
// import path of the package that opens the database.
type edit struct {
	file, old, new string
}

var applications = []application{openfga, headscale, miniflux, dex, pocketbase}
