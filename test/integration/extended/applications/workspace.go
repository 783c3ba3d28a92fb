package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fencedPath is where an application gets the package that opens its database.
const fencedPath = "internal/fenced"

// A workspace is a changed copy of an application in a temporary folder.
type workspace struct {
	app      *application
	checkout string // sqlfence's
	dir      string // the copy
	changed  int    // lines
}

// make copies an application of the module proxy, or from source if that isn't empty, and
// changes it.
func (w *workspace) make(source string) error {
	if source == "" {
		var err error
		if source, err = download(w.app.module + "@" + w.app.version); err != nil {
			return err
		}
	}
	if err := os.CopyFS(w.dir, os.DirFS(source)); err != nil {
		return err
	}
	if err := makeWritable(w.dir); err != nil {
		return err
	}
	for _, e := range w.app.edits {
		if err := w.apply(e); err != nil {
			return err
		}
	}
	if err := os.CopyFS(filepath.Join(w.dir, fencedPath), os.DirFS(filepath.Join(w.checkout, "test/integration/extended/applications/fenced"))); err != nil {
		return err
	}
	return w.require()
}

// download fetches a module through the Go module proxy.
func download(module string) (dir string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var got struct{ Dir, Error string }
	if errJSON := json.Unmarshal(out, &got); errJSON != nil {
		return "", errors.Join(err, errJSON)
	}
	if got.Error != "" {
		return "", fmt.Errorf("%s; -source names a folder that has it", got.Error)
	}
	return got.Dir, err
}

// makeWritable makes copied files of the module cache writable.
func makeWritable(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()|0o200)
	})
}

func (w *workspace) apply(e edit) error {
	path := filepath.Join(w.dir, e.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		return fmt.Errorf("%s: %q stands there %d times", e.file, e.old, n)
	}
	with := strings.Replace(e.new, "%s", w.app.module+"/"+fencedPath, 1)
	w.changed += max(1, strings.Count(with, "\n")-strings.Count(e.old, "\n"))
	return os.WriteFile(path, []byte(strings.Replace(string(text), e.old, with, 1)), 0o644)
}

// require adds sqlfence to the application's go.mod.
func (w *workspace) require() error {
	if len(w.app.requires) > 0 {
		if err := w.command(os.Stderr, "go", "mod", "init", w.app.module).Run(); err != nil {
			return err
		}
	}
	args := []string{"mod", "edit", "-require=github.com/sqlfence/sqlfence@v0.0.0", "-replace=github.com/sqlfence/sqlfence=" + w.checkout}
	for _, module := range w.app.requires {
		args = append(args, "-require="+module)
	}
	if err := w.command(os.Stderr, "go", args...).Run(); err != nil {
		return err
	}
	return w.command(os.Stderr, "go", "mod", "download", "github.com/ngrok/sqlmw").Run()
}

func (w *workspace) command(out io.Writer, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = w.dir, out, out
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	return c
}
