package harness

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var updateCompatibility = flag.Bool("update-compatibility", false, "write what the tests found into docs/data/compatibility.md")

// InCompatibility fails the test if a section of docs/data/compatibility.md differs from the test's results. Two
// comments with the section's name enclose the section. The caller must have run all tests of the section: with
// PostgreSQL and MariaDB, and without -run.
func InCompatibility(t *testing.T, section, found string) {
	t.Helper()
	const file = "../../../../docs/data/compatibility.md" // from a folder of promises or extended
	_, text, _ := cutSection(t, file, section)
	if text == found {
		return
	}
	if !*updateCompatibility {
		t.Errorf("%s differs in %q from what was found; run this test with -update-compatibility\nfound:\n%s", file, section, found)
		return
	}
	WriteSection(t, file, section, found)
}

// WriteSection replaces a section of a page, which stands between two comments that carry its name.
func WriteSection(t *testing.T, file, section, found string) {
	t.Helper()
	head, _, tail := cutSection(t, file, section)
	if err := os.WriteFile(file, []byte(head+found+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cutSection returns a page's text before a section, in the section, and after the section.
func cutSection(t *testing.T, file, section string) (head, text, tail string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin "+section+" -->\n", "<!-- end "+section+" -->"
	head, rest, ok := strings.Cut(string(page), begin)
	text, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section %q", file, section)
	}
	return head + begin, text, end + tail
}

// ModuleVersion returns the version of a module that this module is built with.
func ModuleVersion(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		t.Fatalf("version of %s: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}
