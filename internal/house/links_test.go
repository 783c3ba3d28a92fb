package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	mdCode    = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]+`")
	notInID   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks follows the links of the pages to other files of the repository: the file is there, and
// so is the heading.
func TestLinks(t *testing.T) {
	inRoot(t)
	followed := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "."):
			return filepath.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, link := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllString(string(text), ""), -1) {
			if fault := followLink(name, link[1]); fault != "" {
				t.Errorf("%s: %s: %s", name, link[1], fault)
			}
			followed++
		}
		return nil
	})
	if err != nil || followed < 100 {
		t.Errorf("%d links were followed: %v", followed, err)
	}
	for _, dead := range []string{"docs/nosuchpage.md", "docs/rules.md#nosuchheading"} {
		if followLink("README.md", dead) == "" {
			t.Errorf("%s isn't found to be dead", dead)
		}
	}
}

// followLink returns what is wrong with a link of a page; empty for nothing, and for one to another host.
func followLink(page, link string) string {
	if strings.Contains(link, "://") {
		return ""
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if _, err := os.Stat(target); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return err.Error()
	}
	for _, heading := range mdHeading.FindAllStringSubmatch(string(text), -1) {
		if headingID(heading[1]) == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

// headingID is the anchor that GitHub gives a heading.
func headingID(heading string) string {
	return strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// TestDecisionsAreListed wants each decision in the index, under the title that its page has.
func TestDecisionsAreListed(t *testing.T) {
	inRoot(t)
	index, err := os.ReadFile("docs/adr/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/adr/[0-9]*.md")
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages[1:] { // the first one is the template
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		if !strings.Contains(string(index), "["+title+"]("+filepath.Base(page)+")") {
			t.Errorf("the index doesn't have %s: %s", page, title)
		}
	}
}
