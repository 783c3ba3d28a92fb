// Package release_test releases a copy of the repository, and then uses the released versions without the workspace, as
// users do.
package release_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/sqlfence/sqlfence/internal/test/need"
)

const (
	root    = "github.com/sqlfence/sqlfence"
	version = "v0.1.0"
)

// The modules that scripts/release prepares can be installed and required by version, from a module proxy.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all that users install, with a module cache of its own")
	}
	tree := copyOf(t, "../../../..")
	tags := strings.Fields(run(t, tree, nil, "scripts/release", version))
	proxy := t.TempDir()
	modules := serve(t, proxy, tree, tags)
	env := outside(t, proxy)

	t.Run("the command is installed", func(t *testing.T) {
		bin := t.TempDir()
		run(t, bin, append(env, "GOBIN="+bin), "go", "install", root+"/cmd/sqlfence@"+version)
		if out := run(t, bin, nil, filepath.Join(bin, "sqlfence"), "--version"); !strings.Contains(out, version) {
			t.Errorf("its version is %q", out)
		}
	})
	t.Run("a program uses the root and tokens", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), "module example.com/books\n\ngo 1.26.0\n\nrequire (\n\t"+root+" "+version+"\n\t"+sqlite(t, tree)+"\n)\n")
		write(t, filepath.Join(dir, "main.go"), program)
		if out := run(t, dir, env, "go", "run", "."); out != "refused\n" {
			t.Errorf("it prints %q", out)
		}
	})
	for _, m := range modules {
		t.Run(m, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/needs\n\ngo 1.26.0\n\nrequire "+m+" "+version+"\n")
			if out := run(t, dir, env, "go", "list", m+"/..."); !strings.HasPrefix(out, m) {
				t.Errorf("it has the packages %q", out)
			}
			if out := run(t, dir, env, "go", "list", "-m", root); out != root+" "+version+"\n" {
				t.Errorf("it requires %q", out)
			}
		})
	}
}

// scripts/release changes nothing if the changelog has no section for the version, or if the version isn't valid.
func TestReleaseIsRefused(t *testing.T) {
	tree := copyOf(t, "../../../..")
	for _, args := range [][]string{{"v0.0.7"}, {"0.1.0"}, {"v2.0.0"}, {"v0.1"}, {}, {version, version}} {
		before := read(t, filepath.Join(tree, "cmd/sqlfence/go.mod"))
		cmd := exec.Command(filepath.Join(tree, "scripts/release"), args...)
		if out, err := cmd.Output(); err == nil || len(out) > 0 {
			t.Errorf("release %q: %v, it prints %q", args, err, out)
		}
		if read(t, filepath.Join(tree, "cmd/sqlfence/go.mod")) != before {
			t.Errorf("release %q has changed a module", args)
		}
	}
}

// program checks that sqlfence refuses a stale token.
const program = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
	_ "modernc.org/sqlite"
)

func main() {
	ctx := context.Background()
	db, err := sqlfence.Open("sqlite", "file:books.db", sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	check(err)
	defer db.Close()
	_, err = db.ExecContext(ctx, "CREATE TABLE books (id integer PRIMARY KEY, price bigint, fence_token bigint NOT NULL DEFAULT 0)")
	check(err)
	store, err := tokens.New(db)
	check(err)
	check(store.Setup(ctx))
	first, err := store.Issue(ctx, "books")
	check(err)
	second, err := store.Issue(ctx, "books")
	check(err)
	_, err = db.ExecContext(sqlfence.WithFence(ctx, second), "INSERT INTO books (id, price) VALUES (?, ?)", 1, 10)
	check(err)
	_, err = db.ExecContext(sqlfence.WithFence(ctx, first), "UPDATE books SET price = ? WHERE id = ?", 20, 1)
	if !errors.Is(err, sqlfence.ErrStale) {
		log.Fatalf("a stale write: %v", err)
	}
	fmt.Println("refused")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`

// copyOf copies the working files of a repository that Git tracks.
func copyOf(t *testing.T, repository string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(repository, ".git")); err != nil {
		need.Missing(t, "git", "this isn't a clone of the repository")
	}
	to := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(run(t, repository, nil, "git", "ls-files", "-z"), "\x00"), "\x00") {
		from := filepath.Join(repository, name)
		info, err := os.Lstat(from)
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(read(t, from)), info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// serve writes the modules of the tags into the folder of a module proxy, and returns the paths of the nested modules.
func serve(t *testing.T, proxy, tree string, tags []string) (nested []string) {
	t.Helper()
	if len(tags) < 3 || tags[0] != version {
		t.Fatalf("the tags are %q", tags)
	}
	for _, tag := range tags {
		folder := strings.TrimSuffix(strings.TrimSuffix(tag, version), "/")
		m := module.Version{Path: path.Join(root, folder), Version: version}
		if folder != "" {
			nested = append(nested, m.Path)
		}
		at := filepath.Join(proxy, m.Path, "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(at, "list"), version+"\n")
		write(t, filepath.Join(at, version+".info"), fmt.Sprintf(`{"Version":%q}`, version))
		write(t, filepath.Join(at, version+".mod"), read(t, filepath.Join(tree, folder, "go.mod")))
		var archive bytes.Buffer
		if err := modzip.CreateFromDir(io.Writer(&archive), m, filepath.Join(tree, folder)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(at, version+".zip"), archive.String())
	}
	return nested
}

// outside returns a user's environment: no workspace, and the released modules from the proxy. Other modules come from
// this machine's module cache, or from a network proxy if the cache lacks them.
func outside(t *testing.T, proxy string) []string {
	t.Helper()
	from := strings.Fields(run(t, ".", nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	if len(from) != 2 {
		t.Fatalf("go env says %q", from)
	}
	return []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "CGO_ENABLED=0", "GOSUMDB=off", "GONOSUMDB=*", "GONOSUMCHECK=1",
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(from[0], "cache", "download") + "," + strings.TrimSuffix(from[1], ",direct"),
		"GOMODCACHE=" + t.TempDir(), // an empty module cache, without another build of this version
	}
}

// sqlite returns the repository's requirement of the SQLite driver.
func sqlite(t *testing.T, tree string) string {
	t.Helper()
	for line := range strings.Lines(read(t, filepath.Join(tree, "conformance/go.mod"))) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "modernc.org/sqlite ") {
			return line
		}
	}
	t.Fatal("conformance requires no SQLite")
	return ""
}

// run returns the output of a program.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	if !filepath.IsAbs(name) && strings.Contains(name, "/") {
		name = filepath.Join(dir, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, failure.String())
	}
	return string(out)
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
