package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A result is what one run of an application's tests came to.
type result struct {
	passed, failed map[string]bool
	cpu            time.Duration // user time of the process that uses the database, without what fenced spends
	events         map[string]int
	refusals       map[string]int // by reason, statement and error
}

// build compiles the tests.
func (w *workspace) build() error {
	return w.command(os.Stderr, "go", "test", "-c", "-vet=off", "-o", filepath.Join(w.dir, "application.test"), "./"+w.app.tests).Run()
}

// run runs the tests in a mode. A quiet run records no events, and its time is measured.
func (w *workspace) run(mode string, quiet bool) (*result, error) {
	dir, err := os.MkdirTemp("", "application")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "events")
	env := []string{"FENCED_MODE=" + mode, "FENCED_LOG=" + log, "FENCED_TABLES=" + strings.Join(w.app.tables, ","), "TMPDIR=" + dir}
	if quiet {
		env = append(env, "FENCED_QUIET=yes")
	}
	if w.app.migrates {
		env = append(env, "FENCED_MIGRATES=yes")
	}
	stop := func() (time.Duration, error) { return 0, nil }
	if w.app.start != nil {
		var err error
		if env, stop, err = w.app.start(w, env); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	args := []string{"-test.v", "-test.timeout=5m"}
	if w.app.skip != "" {
		args = append(args, "-test.skip="+w.app.skip)
	}
	c := w.command(&out, filepath.Join(w.dir, "application.test"), args...)
	c.Dir = filepath.Join(w.dir, w.app.tests)
	c.Env = append(c.Env, env...)
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	r := &result{cpu: c.ProcessState.UserTime()}
	served, err := stop()
	if err != nil {
		return nil, err
	}
	if served > 0 {
		r.cpu = served
	}
	r.readTests(out.String())
	if err := os.WriteFile(w.dir+"."+mode+".log", out.Bytes(), 0o644); err != nil {
		return nil, err
	}
	return r, r.readEvents(log)
}

var verdict = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): (\S+)`)

// passing is what follows an address or a time in the name of a test.
var passing = regexp.MustCompile(`0x[0-9a-f]{6}.*|time\.Date\(.*`)

func (r *result) readTests(out string) {
	r.passed, r.failed = map[string]bool{}, map[string]bool{}
	for _, m := range verdict.FindAllStringSubmatch(out, -1) {
		name := passing.ReplaceAllString(m[2], "")
		if m[1] == "PASS" {
			r.passed[name] = true
		} else {
			r.failed[name] = true
		}
	}
}

func (r *result) readEvents(path string) error {
	r.events, r.refusals = map[string]int{}, map[string]int{}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var texts []string
		if err := json.Unmarshal(lines.Bytes(), &texts); err != nil {
			return err
		}
		kind := texts[0]
		if kind == "spent" {
			spent, err := strconv.ParseInt(texts[1], 10, 64)
			if err != nil {
				return err
			}
			r.cpu -= time.Duration(spent)
			continue
		}
		if strings.HasSuffix(kind, "refused") {
			kind += " " + texts[1]
		}
		r.events[kind]++
		if len(texts) > 1 && texts[1] != "stale" {
			r.refusals[strings.Join(texts, " | ")]++
		}
	}
	return lines.Err()
}
