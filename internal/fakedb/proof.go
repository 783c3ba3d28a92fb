package fakedb

import (
	"errors"
	"regexp"
)

// Version is what a server says of itself that names its schema.
const Version = "PostgreSQL 15.4 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 9.5.0, 64-bit"

// Facts is what a server says of itself that sqlfence takes for one of the database it stands for.
func Facts(question string) (string, error) {
	if names.MatchString(question) {
		return `{"version": "` + Version + `", "function": "public"}`, nil
	}
	return "8.4.0 ......", nil
}

var (
	// names: PostgreSQL's question names the schema of all that it calls.
	names = regexp.MustCompile(`\bpg_catalog\.`)

	// halves are those of the mark that a server has to raise.
	halves = regexp.MustCompile(`'(sqlfence:[A-Za-z0-9]+)'.{1,20}'([A-Za-z0-9]*:server:)'`)
)

// Proof returns the error of a database that raises the errors of guards, for a test's driver
// without a database; nil if the statement asks for something else. facts may be nil.
func Proof(query string, facts func(question string) (string, error)) error {
	m := halves.FindStringSubmatch(query)
	if m == nil {
		return nil
	}
	if facts == nil {
		facts = Facts
	}
	said, err := facts(query)
	if err != nil {
		return err
	}
	return errors.New("raised: " + m[1] + m[2] + said)
}
