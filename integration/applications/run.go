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
	"strings"
	"time"
)

// A result is what one run of an application's tests came to.
type result struct {
	passed, failed map[string]bool
	cpu            time.Duration // of the process that uses the database
	events         map[string]int
	refusals       map[string]int // by reason, statement and error
}

// build compiles the tests.
func (w *workspace) build() error {
	return w.command(os.Stderr, "go", "test", "-c", "-vet=off", "-o", filepath.Join(w.dir, "application.test"), "./"+w.app.tests).Run()
}

// run runs the tests in a mode.
func (w *workspace) run(mode string) (*result, error) {
	dir, err := os.MkdirTemp("", "application")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "events")
	env := []string{"FENCED_MODE=" + mode, "FENCED_LOG=" + log, "FENCED_DIALECT=" + w.app.dialect, "FENCED_TABLES=" + strings.Join(w.app.tables, ","), "TMPDIR=" + dir}
	if w.app.twice {
		env = append(env, "FENCED_TWICE=yes")
	}
	stop := func() (time.Duration, error) { return 0, nil }
	if w.app.serve != nil {
		more, stopped, err := w.app.serve(w, append(env, "DIR="+dir))
		if err != nil {
			return nil, err
		}
		env, stop = more, stopped
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
	r := &result{cpu: c.ProcessState.UserTime() + c.ProcessState.SystemTime()}
	served, err := stop()
	if err != nil {
		return nil, err
	}
	if w.app.serve != nil {
		r.cpu = served
	}
	r.readTests(out.String())
	if err := os.WriteFile(w.dir+"."+mode+".log", out.Bytes(), 0o644); err != nil {
		return nil, err
	}
	return r, r.readEvents(log)
}

var verdict = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): (\S+)`)

func (r *result) readTests(out string) {
	r.passed, r.failed = map[string]bool{}, map[string]bool{}
	for _, m := range verdict.FindAllStringSubmatch(out, -1) {
		if m[1] == "PASS" {
			r.passed[m[2]] = true
		} else {
			r.failed[m[2]] = true
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
		if strings.HasSuffix(kind, "refused") {
			kind += " " + texts[1]
		}
		r.events[kind]++
		if len(texts) > 1 && (len(texts) < 2 || texts[1] != "stale") {
			r.refusals[strings.Join(texts, " | ")]++
		}
	}
	return lines.Err()
}
