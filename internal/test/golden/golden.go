// Package golden reads the statements of the golden files in rewrite/testdata, for the tests of package rewrite and
// for tests that run the statements on real databases.
//
// A file is a list of samples, each followed by a blank line:
//
//	## hazard: what is special about it {rules rules}
//	the statement, on one or more lines
//	=> rules: the verdict
//	the statement with its guard
//
// The rules are names of the tests; the default is row. A statement with invisible bytes is written as a Go string
// after "go ".
package golden

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A Sample is a statement, with the rules that it is planned with.
type Sample struct {
	Name  string // the hazard, a colon, and what is special about it
	Rules []string
	SQL   string
}

// Read returns the samples of a file, in its order.
func Read(file string) ([]Sample, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var samples []Sample
	for _, block := range strings.Split("\n"+string(content), "\n## ")[1:] {
		head, body, _ := strings.Cut(block, "\n")
		text, _, _ := strings.Cut("\n"+body, "\n=> ")
		s := Sample{Rules: []string{"row"}, SQL: strings.Trim(text, "\n")}
		name, rules, ok := strings.Cut(strings.TrimSuffix(head, "}"), " {")
		if s.Name = name; ok {
			s.Rules = strings.Fields(rules)
		}
		if literal, ok := strings.CutPrefix(s.SQL, "go "); ok {
			if s.SQL, err = strconv.Unquote(literal); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, s.Name, err)
			}
		}
		samples = append(samples, s)
	}
	return samples, nil
}
