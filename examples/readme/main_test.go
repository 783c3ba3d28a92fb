package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme runs the program of the README, and compares it and its output with the page.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(source), "\npackage main\n")
	if !strings.Contains(string(page), "```go\npackage main\n"+program+"```\n") {
		t.Error("README.md doesn't have examples/readme/main.go")
	}
	binary := filepath.Join(t.TempDir(), "readme")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(binary)
	run.Dir = t.TempDir()
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(page), "```text\n"+string(out)+"```\n") {
		t.Errorf("README.md doesn't have the output (%v)\n%s", err, out)
	}
}
