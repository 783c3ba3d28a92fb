package adopting_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pageText returns a page of docs, or the section of the page under a second-level heading.
func pageText(t *testing.T, page, heading string) string {
	t.Helper()
	content, err := os.ReadFile("../../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	if heading == "" {
		return string(content)
	}
	_, section, found := strings.Cut(string(content), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %s", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// onPage fails the test unless docs/adopting.md contains a text. Line breaks and blanks don't matter.
func onPage(t *testing.T, text string) {
	t.Helper()
	inText(t, pageText(t, "adopting.md", ""), text)
}

func inText(t *testing.T, page, text string) {
	t.Helper()
	if !strings.Contains(words(page), words(text)) {
		t.Errorf("the page doesn't have\n%s", text)
	}
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// The tests of this folder execute each block of Go and SQL on the pages: apart from blanks, each block must be part of
// a file of this folder.
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
	for _, part := range []struct {
		page, heading string
		blocks        int
	}{
		{"adopting.md", "", 8},
		{"tokens.md", "## One token for two databases", 1},
	} {
		text := pageText(t, part.page, part.heading)
		blocks := regexp.MustCompile("(?s)```(?:go|sql)\n(.*?)```").FindAllStringSubmatch(text, -1)
		if len(blocks) < part.blocks {
			t.Errorf("%s has %d blocks", part.page, len(blocks))
		}
		for _, block := range blocks {
			if !strings.Contains(sources.String(), words(block[1])) {
				t.Errorf("%s: no test executes\n%s", part.page, block[1])
			}
		}
	}
}
