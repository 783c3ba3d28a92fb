package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module is a Go module with three folders of tests.
var module = map[string]string{
	"go.mod": "module example.com/linked\n\ngo 1.26\n",
	"passes/a_test.go": `package passes_test

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) { m.Run() }

func TestFolder(t *testing.T) {
	if _, err := os.Stat("a_test.go"); err != nil {
		t.Error(err)
	}
}

func TestOther(*testing.T) {}

func Example() {
	fmt.Println("shown")
	// Output: shown
}
`,
	"fails/a_test.go": `package fails_test

import "testing"

func TestMain(m *testing.M) { m.Run() } // it returns

func TestThatFails(t *testing.T) { t.Error("it fails") }
`,
	"example/a_test.go": `package example_test

import "fmt"

func Example() {
	fmt.Println("shown")
	// Output: hidden
}
`,
}

// The linked program runs the tests of the folder in its arguments, with this folder as working directory. It fails if
// one of the tests fails.
func TestLinkedProgramFailsWithItsFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range module {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	program := filepath.Join(dir, "program")
	if err := link(program, false, []string{"passes", "fails", "example"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder, args string
		ok           bool
		has, lacks   string // in the program's output
	}{
		{"passes", "-test.v", true, "--- PASS: Test/TestFolder", "FAIL"},
		{"passes", "-test.v", true, "--- PASS: Example", "FAIL"},
		{"passes", "-test.v -test.run=^TestOther$", true, "Test/TestOther", "TestFolder"},
		{"fails", "-test.v", false, "--- FAIL: Test/TestThatFails", ""},
		{"example", "-test.v", false, "--- FAIL: Example", ""},
		{"passes", "-test.run=TestNone", false, "no test", ""},
		{"nowhere", "", false, "SQLFENCE_FOLDER", ""},
	} {
		run := exec.Command(program, strings.Fields(c.args)...)
		run.Env = append(os.Environ(), "SQLFENCE_FOLDER="+c.folder)
		if c.folder != "nowhere" {
			run.Dir = filepath.Join(dir, c.folder)
		}
		out, err := run.CombinedOutput()
		if (err == nil) != c.ok || !strings.Contains(string(out), c.has) || c.lacks != "" && strings.Contains(string(out), c.lacks) {
			t.Errorf("%s %s: %v, want ok %v, with %q and without %q:\n%s", c.folder, c.args, err, c.ok, c.has, c.lacks, out)
		}
	}
}

// Tests that the linked program couldn't run are refused, because they would be lost silently.
func TestTestsThatWouldBeLostAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a fuzz test":      "package a_test\n\nimport \"testing\"\n\nfunc FuzzA(f *testing.F) {}\n",
		"a wrong test":     "package a_test\n\nfunc TestA() {}\n",
		"an internal test": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"no test file":     "",
	} {
		dir := filepath.Join(t.TempDir(), "a")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readFolders([]string{dir}, false); err == nil {
			t.Errorf("%s is linked", name)
		}
	}
}
