package migrations_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each block of Go and SQL on the page must be code that the tests run. The block must stand, apart from indentation,
// in a file of this folder or in an SQL file that the tests run.
func TestPage(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"*_test.go", "testdata/books/*.sql", "../../../../../schema/*/*.sql"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.WriteString(unindented(string(text)))
		}
	}
	page, err := os.ReadFile("../../../../../docs/migrations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:go|sql)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 6 {
		t.Errorf("the page has %d blocks", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(sources.String(), unindented(block[1])) {
			t.Errorf("nothing here runs\n%s", block[1])
		}
	}
}

// unindented returns a text without the blanks around its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "`")
}
