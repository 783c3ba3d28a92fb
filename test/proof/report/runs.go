// Package report keeps what the runs of the proof have found, and writes docs/data/proof.md of it.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/judge"
)

// A Run is a storm over one fence and one database.
type Run struct {
	Date     string
	Kind     string // storm, control, fence, checks
	Fence    string
	What     string `json:",omitempty"`
	Database string
	Server   string // its version, and what is before it
	Seed     uint64
	Seconds  float64
	Rounds   int
	Counts   judge.Counts
	Faults   map[string]int
	Planted  map[string]bool `json:",omitempty"` // violations that were put into its history, and whether the judge has found them
	Broken   map[string]int  `json:",omitempty"` // violations by promise
	First    string          `json:",omitempty"` // the first of them
	Checks   []Check         `json:",omitempty"` // of a run of checks
}

// A Check is one requirement of a fence, and the observed violation if the fence breaks the requirement.
type Check struct {
	Name string
	More bool   `json:",omitempty"` // more than it has to promise
	Seen string `json:",omitempty"` // empty where it holds

	Without bool `json:",omitempty"` // the check hasn't come to its question
}

// Kinds of runs.
const (
	Storm   = "storm"   // of sqlfence
	Control = "control" // of a fence that has to be caught
	Fence   = "fence"   // of another
	Checks  = "checks"  // of any of them
)

// Add counts what was found in a round.
func (r *Run) Add(v judge.Verdict, faults map[string]int, took time.Duration) {
	if r.Faults == nil {
		r.Faults, r.Broken = make(map[string]int), make(map[string]int)
	}
	r.Rounds++
	r.Seconds += took.Seconds()
	r.Counts.Add(v.Counts)
	for kind, n := range faults {
		r.Faults[kind] += n
	}
	for _, violation := range v.Violations {
		r.Broken[violation.Promise]++
		if r.First == "" {
			r.First = violation.String()
		}
	}
}

// Verdict returns the run's judgement of its fence.
func (r *Run) Verdict() string {
	switch {
	case len(r.Broken) > 0:
		return "broken"
	case !r.Counts.Contended():
		return "unknown"
	}
	return "held"
}

// fileOf returns the path of the runs' file in the docs folder.
func fileOf(docs string) string { return filepath.Join(docs, "data", "proof", "runs.jsonl") }

// Save adds runs to those before.
func Save(docs string, runs ...Run) (err error) {
	if err := os.MkdirAll(filepath.Dir(fileOf(docs)), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(fileOf(docs), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, r := range runs {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Load returns the runs, the oldest first.
func Load(docs string) (runs []Run, err error) {
	f, err := os.Open(fileOf(docs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Run
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", fileOf(docs), err)
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}
