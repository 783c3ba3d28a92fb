// Suites runs the drivers' own tests twice, raw and with sqlfence around the driver, nothing registered, and reports
// the differences. The program copies the drivers, at this module's versions, from the module cache into a temporary
// folder, and changes each sql.Open and sql.OpenDB to open through sqlfence.
//
// Run it with make suites; it needs the servers that scripts/driver-suites starts.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	log.SetFlags(log.Ltime)
	only := flag.String("only", "", "run the suite of this driver alone")
	write := flag.String("write", "", "write the result into this page instead of printing it")
	keep := flag.String("keep", "", "keep the output of go test in this folder")
	flag.Parse()
	if err := run(*only, *write, *keep); err != nil {
		log.Fatal(err)
	}
}

func run(only, page, keep string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "sqlfence-suites")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	var done []outcome
	differing := 0
	for _, s := range suites {
		if only != "" && only != s.name {
			continue
		}
		o, err := s.compare(root, tmp, keep)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, name := range o.onlyWrapped() {
			log.Printf("%s: %s fails only wrapped", s.name, name)
			differing++
		}
		done = append(done, o)
	}
	text := report(done)
	if page == "" {
		fmt.Print(text)
	} else if err := writeSection(page, text); err != nil {
		return err
	}
	if differing > 0 {
		return fmt.Errorf("%d tests fail only wrapped", differing)
	}
	return nil
}

// An outcome is how a suite went, raw and wrapped.
type outcome struct {
	suite
	version                   string
	raw, wrapped              results
	rawDuration, wrapDuration time.Duration
}

// compare runs the suite both ways.
func (s suite) compare(root, tmp, keep string) (outcome, error) {
	o := outcome{suite: s}
	source, version, err := locate(s.module)
	if err != nil {
		return o, err
	}
	o.version = version
	for _, wrapped := range []bool{false, true} {
		way := map[bool]string{false: "raw", true: "wrapped"}[wrapped]
		dir := filepath.Join(tmp, strings.ReplaceAll(s.name, "/", "-")+"-"+way)
		if err := copyTree(dir, source); err != nil {
			return o, err
		}
		if wrapped {
			if err := wrap(dir, root, s); err != nil {
				return o, err
			}
		}
		env, remove, err := s.environment()
		if err != nil {
			return o, err
		}
		log.Printf("%s %s %s", s.name, version, way)
		begin := time.Now()
		res, err := s.test(dir, env, wrapped, keep)
		remove()
		if err != nil {
			return o, err
		}
		if wrapped {
			o.wrapped, o.wrapDuration = res, time.Since(begin)
		} else {
			o.raw, o.rawDuration = res, time.Since(begin)
		}
		if err := os.RemoveAll(dir); err != nil {
			return o, err
		}
	}
	return o, nil
}

// onlyWrapped returns the tests that pass raw and fail wrapped, without the tests of leftOut. If a subtest fails, the
// subtest is returned instead of its test.
func (o outcome) onlyWrapped() []string {
	var names []string
	for _, name := range o.raw.names() {
		if o.raw[name] != "pass" || o.wrapped[name] == "pass" || o.left(name) {
			continue
		}
		if o.hasFailingSubtest(name) {
			continue
		}
		names = append(names, name)
	}
	return names
}

func (o outcome) hasFailingSubtest(name string) bool {
	for other, result := range o.raw {
		if strings.HasPrefix(other, name+"/") && result == "pass" && o.wrapped[other] != "pass" {
			return true
		}
	}
	return false
}
