package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"
)

// changes are the changes of a plan that the test of plans finds, the gravest first, with their names on the page.
var changes = []change{
	{"opened", "opened", "a refused or guarded statement passes without a guard"},
	{"guarded", "newly guarded", "a refused statement gets a guard"},
	{"guard", "other guard", "the guard has another text, or the caller checks something else"},
	{"closed", "closed", "a statement is refused, or guarded without need"},
	{"refusal", "other refusal", "a refusal has another reason or place"},
	{"endless", "endless", "planning doesn't end, or no rewriter can be made"},
	{"none", "none", "no plan changes"},
}

type change struct{ name, title, what string }

const pageFile = "docs/data/sabotage.md"

const pageHead = `# Disabled keywords and conditions of the reader: the run

` + "`make sabotage`" + ` writes this page. Its [program](../../test/integration/extended/sabotage) disables each keyword (it equals no
token) and each condition (it is false) of the code that reads a statement and decides about its guard, one at a time.

1. It plans the golden samples. A wrong plan counts as caught by ` + "`TestGolden` of `rewrite`" + `.
2. For the other sites it plans the samples under all rules, and 36,000 mutated samples, and compares the plans with
   those of the intact reader. For a keyword it plans the statements with the keyword, and one in 20 of the others.
3. It runs the tests of both packages, and the tests of ` + "`rewrite`" + ` with these names, until one fails:
   %s.

`

// writePage writes the page of the sites that have run.
func writePage(sites []site, skipped int, done map[string]result) error {
	revision, err := exec.Command("git", "log", "-1", "--format=%cs", "HEAD").Output()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, "`"+strings.ReplaceAll(suites[2].run, "|", "`, `")+"`")
	compared, tested := 0, 0
	catchers := make(map[string]int)
	for _, s := range sites {
		was := done[s.key()]
		if was.Caught != "" {
			catchers[was.Caught]++
			continue
		}
		if was.Change != "" {
			compared++
		}
		if was.Tested {
			tested++
		}
	}
	var catches []string
	caught := 0
	for _, name := range sorted(catchers) {
		caught += catchers[name]
		catches = append(catches, fmt.Sprintf("%s %d", name, catchers[name]))
	}
	b.WriteString(wrap(fmt.Sprintf("Revision of %s: %d sites; %d places can't be disabled. Tests caught %d sites (%s). Of "+
		"the other %d sites, the plans of %d were compared, and %d passed all tests; the tests of the rest weren't run.",
		strings.TrimSpace(string(revision)), len(sites), skipped, caught, strings.Join(catches, ", "), len(sites)-caught,
		compared, tested)) + "\n")
	writeSites(&b, sites, done)
	b.WriteString("\n| change of a plan, if no test caught the site | tests pass | tests not run |\n|---|---|---|\n")
	for _, c := range changes {
		all := survivors(sites, done, c.name)
		passed := len(slices.DeleteFunc(slices.Clone(all), func(s site) bool { return !done[s.key()].Tested }))
		fmt.Fprintf(&b, "| %s: %s | %d | %d |\n", c.title, c.what, passed, len(all)-passed)
	}
	b.WriteString("\n## Sites that no test caught and that change a guard\n\n")
	var sentences []string
	for _, c := range changes[1:3] {
		var list []string
		file := ""
		for _, s := range survivors(sites, done, c.name) {
			if s.path() != file {
				file = s.path()
				list = append(list, file)
			}
			if line := fmt.Sprint(" ", s.Line); !strings.HasSuffix(list[len(list)-1], line) {
				list[len(list)-1] += line
			}
		}
		if len(list) > 0 {
			sentences = append(sentences, strings.ToUpper(c.title[:1])+c.title[1:]+" by the lines "+strings.Join(list, ", ")+".")
		}
	}
	if len(sentences) > 0 {
		b.WriteString(wrap(strings.Join(sentences, " ")) + "\n")
	}
	b.WriteString("| opened by | plans | tests | first statement |\n|---|---|---|---|\n")
	opened := survivors(sites, done, "opened")
	for i := 0; i < len(opened); i++ {
		s := opened[i]
		was, tests, names := done[s.key()], "not run", code(s.Text, 60)
		if was.Tested {
			tests = "pass"
		}
		// Sites of a line with the same effect share a row.
		for ; i+1 < len(opened) && opened[i+1].place() == s.place() && done[opened[i+1].key()].First == was.First; i++ {
			names += ", " + code(opened[i+1].Text, 60)
		}
		fmt.Fprintf(&b, "| %s %s | %d | %s | %s |\n", s.place(), names, was.Plans, tests, code(was.First, 120))
	}
	return os.WriteFile(pageFile, []byte(b.String()), 0o644)
}

// wrap breaks a paragraph into lines of at most 120 characters.
func wrap(paragraph string) string {
	var b strings.Builder
	length := 0
	for word := range strings.SplitSeq(paragraph, " ") {
		n := utf8.RuneCountInString(word) + 1
		switch {
		case length == 0:
		case length+n > 121:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteByte(' ')
		}
		b.WriteString(word)
		length += n
	}
	return b.String() + "\n"
}

func (s site) path() string { return s.Package + "/" + s.File }

func (s site) place() string { return fmt.Sprint(s.path(), ":", s.Line) }

// writeSites writes the table with the number of sites of each package and kind.
func writeSites(b *strings.Builder, sites []site, done map[string]result) {
	b.WriteString("| package | kind | sites | caught | passed all tests |\n|---|---|---|---|---|\n")
	counts := make(map[string][3]int)
	for _, s := range sites {
		row := fmt.Sprintf("%s | %s", s.Package, s.Kind)
		n := counts[row]
		n[0]++
		if was := done[s.key()]; was.Caught != "" {
			n[1]++
		} else if was.Tested {
			n[2]++
		}
		counts[row] = n
	}
	for _, row := range slices.Sorted(maps.Keys(counts)) {
		n := counts[row]
		fmt.Fprintf(b, "| %s | %d | %d | %d |\n", row, n[0], n[1], n[2])
	}
}

// survivors returns the sites that no test caught and whose worst change is this change.
func survivors(sites []site, done map[string]result, change string) []site {
	return slices.DeleteFunc(slices.Clone(sites), func(s site) bool {
		was := done[s.key()]
		return was.Caught != "" || was.Change != change
	})
}

// code returns a text as code in a cell of a table, at most so many characters long.
func code(s string, most int) string {
	s = strings.NewReplacer("`", "'", "|", "¦", "\n", " ").Replace(strings.ToValidUTF8(s, "?"))
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return "`" + s + "`"
}
