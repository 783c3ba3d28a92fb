package adopting_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../../../docs/adopting.md"

// onPage wants a text in a block of docs/adopting.md, however its lines are broken.
func onPage(t *testing.T, text string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(words(string(content)), words(text)) {
		t.Errorf("the page doesn't have\n%s", text)
	}
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// Each block of Go and SQL on the page is code that the tests run: it stands, but for
// blanks, in a file of this folder.
func TestPage(t *testing.T) {
	var sources strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.WriteString(words(string(text)) + "\n")
	}
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:go|sql)\n(.*?)```").FindAllStringSubmatch(string(content), -1)
	if len(blocks) < 5 {
		t.Errorf("the page has %d blocks", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(sources.String(), words(block[1])) {
			t.Errorf("nothing here runs\n%s", block[1])
		}
	}
}
