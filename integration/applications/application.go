package main

import "time"

// An application is somebody else's program, and what has to be changed in it.
type application struct {
	name     string
	module   string
	version  string
	database string
	edits    []edit
	tables   []string
	dialect  string // sqlite for a driver that sqlfence doesn't know
	twice    bool   // it is opened for its migrations, then once more
	tests    string // the folder of the package whose tests are run
	skip     string // tests that can't run everywhere, for go test -skip

	// serve starts the application beside its tests, if they are its clients; nil if they
	// use the database themselves.
	serve func(w *workspace, env []string) (tests []string, stop func() (time.Duration, error), err error)
}

// An edit replaces the only place in a file where old stands. New stands for %s with the
// import path of the package that opens the database.
type edit struct {
	file, old, new string
}

var applications = []application{openfga, headscale, miniflux}
