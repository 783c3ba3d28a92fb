package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// results say how each test and subtest ended: "pass", "fail" or "skip". A test that the program's end cut short has
// "fail".
type results map[string]string

func (r results) names() []string { return slices.Sorted(maps.Keys(r)) }

func (r results) count(result string) (n int) {
	for _, got := range r {
		if got == result {
			n++
		}
	}
	return n
}

// test runs the suite in a folder. Some tests end the program after waiting too long; the suite then runs again.
func (s suite) test(dir string, env []string, wrapped bool, keep string) (res results, err error) {
	for range 4 {
		var whole bool
		if res, whole, err = s.testOnce(dir, env, wrapped, keep); err != nil || whole {
			return res, err
		}
		log.Printf("%s: the tests were cut short", s.name)
	}
	return res, nil
}

func (s suite) testOnce(dir string, env []string, wrapped bool, keep string) (res results, whole bool, err error) {
	// -trimpath lets what was compiled in one folder serve in the next.
	args := []string{"test", "-json", "-count=1", "-timeout=15m", "-mod=mod", "-trimpath", "-vet=off"}
	if s.short {
		args = append(args, "-short")
	}
	skipped := s.skipped
	if wrapped {
		skipped = slices.Concat(skipped, s.leftOut)
	}
	var patterns []string
	for _, l := range skipped {
		patterns = append(patterns, "^"+strings.ReplaceAll(l.test, "/", "$/^")+"$")
	}
	if patterns != nil {
		args = append(args, "-skip="+strings.Join(patterns, "|"))
	}
	cmd := exec.Command("go", append(args, s.packages...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS="), env...)
	kept := io.Discard
	if keep != "" {
		f, err := os.Create(filepath.Join(keep, filepath.Base(dir)+".json"))
		if err != nil {
			return nil, false, err
		}
		defer f.Close()
		kept = f
	}
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false, err
	}
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	res, whole, err = read(io.TeeReader(out, kept))
	if err != nil {
		return nil, false, err
	}
	if failed := cmd.Wait(); len(res) == 0 { // tests that fail make it fail, too
		return nil, false, fmt.Errorf("%v\n%s", failed, problems.String())
	}
	return res, whole, nil
}

// read reads the output of go test -json. It is whole if each test has ended,
// and none by a panic, after which others are never begun.
func read(r io.Reader) (res results, whole bool, err error) {
	res = make(results)
	running, panicked := make(map[string]bool), false
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e struct{ Action, Package, Test, Output string }
		parsed := json.Unmarshal(line, &e) == nil
		panicked = panicked || strings.HasPrefix(e.Output, "panic: ")
		if parsed && e.Test != "" {
			name := e.Package + " " + e.Test
			switch e.Action {
			case "run":
				res[name] = "fail"
				running[name] = true
			case "pass", "fail", "skip":
				res[name] = e.Action
				delete(running, name)
			}
		}
		if err == io.EOF {
			return res, !panicked && len(running) == 0, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}
