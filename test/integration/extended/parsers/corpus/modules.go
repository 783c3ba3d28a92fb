package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A module is a line of the list: path@version, and the databases that it supports.
type module struct {
	path, version string
	scopes        []scope
}

// A scope holds the databases that the files under a folder are for.
type scope struct {
	under     string // empty for all of the module
	databases set
}

// supports returns the databases of the innermost folders that a file is in.
func (m module) supports(file string) (found set) {
	depth := -1
	for _, s := range m.scopes {
		switch n := len(s.under); {
		case n < depth || !strings.HasPrefix(file, s.under):
		case n > depth:
			depth, found = n, s.databases
		default:
			found = found.or(s.databases)
		}
	}
	return found
}

// readModules reads a list: a module a line, # begins a comment. A database that is for
// the files under a folder only is written sqlite=folder/.
func readModules(file string) (modules []module, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		m := module{}
		var versioned bool
		m.path, m.version, versioned = strings.Cut(fields[0], "@")
		for _, field := range fields[1:] {
			name, under, _ := strings.Cut(field, "=")
			found, ok := listedAs(name)
			if !ok {
				return nil, fmt.Errorf("%s:%d: unknown database %q", file, n+1, name)
			}
			m.scopes = append(m.scopes, scope{under, found})
		}
		if !versioned || len(m.scopes) == 0 {
			return nil, fmt.Errorf("%s:%d: want path@version and its databases", file, n+1)
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// A source has the modules' files.
type source struct {
	cache     string // for downloads
	checkouts string // folders that are there already; empty for none
}

// dir returns the folder with the module's files, which it downloads if need be.
func (s source) dir(m module) (string, error) {
	if s.checkouts != "" {
		dir := filepath.Join(s.checkouts, filepath.FromSlash(m.path)+"@"+m.version)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	cache, err := filepath.Abs(s.cache)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "mod", "download", "-json", m.path+"@"+m.version)
	cmd.Dir = cache // in no module
	cmd.Env = append(os.Environ(), "GOMODCACHE="+cache, "GOWORK=off", "GOFLAGS=-modcacherw")
	text, failed := cmd.Output()
	var answer struct{ Dir, Error string }
	switch err := json.Unmarshal(text, &answer); {
	case err == nil && answer.Error != "":
		return "", errors.New(answer.Error)
	case failed != nil:
		return "", failed
	case err != nil:
		return "", err
	}
	return answer.Dir, nil
}
