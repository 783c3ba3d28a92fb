package fakedb

import (
	"errors"
	"regexp"
)

// Version is the version string of a PostgreSQL server.
const Version = "PostgreSQL 15.4 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 9.5.0, 64-bit"

// Capabilities returns the facts of a supported server of the dialect of question.
func Capabilities(question string) (string, error) {
	if names.MatchString(question) {
		return `{"version": "` + Version + `", "function": "public"}`, nil
	}
	return "8.4.0 ......", nil
}

var (
	// names matches PostgreSQL's query, which qualifies all functions.
	names = regexp.MustCompile(`\bpg_catalog\.`)

	// halves matches the two halves of the text that a server must throw.
	halves = regexp.MustCompile(`'(sqlfence:[A-Za-z0-9]+)'.{1,20}'([A-Za-z0-9]*:server:)'`)
)

// ProbeError returns the error of a database that throws the errors of guards, for a test's driver without a database;
// nil if query isn't sqlfence's probe. facts may be nil.
func ProbeError(query string, facts func(question string) (string, error)) error {
	m := halves.FindStringSubmatch(query)
	if m == nil {
		return nil
	}
	if facts == nil {
		facts = Capabilities
	}
	said, err := facts(query)
	if err != nil {
		return err
	}
	return errors.New("raised: " + m[1] + m[2] + said)
}
