package house

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The words that comments, texts and pages do without, each with the pattern to write instead.
var plainWords = []struct {
	words  *regexp.Regexp
	parts  []string // each of the words contains one of these
	better string
}{
	{wordsLike(`nobody`), []string{"nobody"}, `name the actor: "no other user", "no client"`},
	{wordsLike(`somebody|anybody|everybody`), []string{"somebody", "anybody", "everybody"}, `name the actor: "another user", "every client"`},
	{wordsLike(`whoever|whomever`), []string{"ever"}, `name the actor: "the holder of the newest token"`},
	{wordsLike(`whose|whom`), []string{"whose", "whom"}, `"a table with a column that …", or a sentence of its own`},
	{wordsLike(`likewise`), []string{"likewise"}, `repeat the noun: "the same of the rows"`},
	{wordsLike(`(?:by|of|to)\s+(?://\s+)?which`), []string{"by which", "of which", "to which", "\nwhich", "// which"}, `"a condition that proves …", or a sentence of its own: "Of these only …"`},
}

// keptTexts contain such a word and stay, because users may compare them.
var keptTexts = []string{`means nobody"`, `"nobody holds %s\n"`}

// notYetPlain are files and folders that may still have such words.
var notYetPlain = []string{
	"CHANGELOG.md", "docs/adr", "test",
}

func wordsLike(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`)
}

// TestPlainWords reads the product's files of Go, in all modules, and the pages for users.
func TestPlainWords(t *testing.T) {
	inRoot(t)
	read := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case slices.Contains(notYetPlain, filepath.ToSlash(name)):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case isProse(name):
			read++
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, fault := range wordsIn(string(text)) {
				t.Errorf("%s:%s", name, fault)
			}
		}
		return nil
	})
	if err != nil || read < 200 {
		t.Errorf("read %d files: %v", read, err)
	}
}

func isProse(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// wordsIn returns, for each listed word in a text, its line and the better pattern.
func wordsIn(text string) (faults []string) {
	for _, kept := range keptTexts {
		text = strings.ReplaceAll(text, kept, "")
	}
	lower := strings.ToLower(text)
	for _, w := range plainWords {
		if !slices.ContainsFunc(w.parts, func(part string) bool { return strings.Contains(lower, part) }) {
			continue // a search for a part is much faster than one for the expression
		}
		for _, at := range w.words.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[0]], "\n")
			faults = append(faults, fmt.Sprintf("%d: %q; write %s", line, text[at[0]:at[1]], w.better))
		}
	}
	return faults
}

// TestPlainWordsAreFound shows that each kind of word is found, also across the lines of a comment.
func TestPlainWordsAreFound(t *testing.T) {
	inRoot(t)
	for _, text := range []string{
		"// Nobody waits.", "somebody else's", "whoever comes", "a table whose rows", "// likewise",
		"// the time by\n\t// which it ends", "of\nwhich",
	} {
		if len(wordsIn("plain\n"+text)) != 1 {
			t.Errorf("%q is found %d times, not once", text, len(wordsIn(text)))
		}
	}
	for _, text := range []string{"WithNobody", "the user ID is 0, which means nobody\"", "the table in which it is"} {
		if faults := wordsIn(text); faults != nil {
			t.Errorf("%q is refused: %v", text, faults)
		}
	}
}
