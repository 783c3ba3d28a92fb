package cli

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

var update = flag.Bool("update", false, "write docs/data/cli.md")

// own returns the commands that aren't cobra's, in the order of the reference.
func own(root *cobra.Command) (all []*cobra.Command) {
	for _, c := range root.Commands() {
		switch {
		case c.Name() == "completion":
		case c.HasSubCommands():
			all = append(all, own(c)...)
		default:
			all = append(all, c)
		}
	}
	return all
}

// Each command has help, an example and its JSON, in lines that a terminal of 80 columns shows.
func TestHelpFitsATerminal(t *testing.T) {
	root := (&app{}).root()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Long + "\n" + cmd.UsageString()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > screenColumns {
				t.Errorf("the help of %s has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	commands := own(root)
	for _, cmd := range commands {
		if cmd.Short == "" || cmd.Example == "" || !strings.Contains(cmd.Long, "With --json: ") {
			t.Errorf("%s: no description, no example, or no JSON", cmd.CommandPath())
		}
	}
	if len(commands) != len(jsonHelp) {
		t.Errorf("%d commands, and the JSON of %d", len(commands), len(jsonHelp))
	}
}

// inGo has the rule in Go for each rule of --table.
var inGo = map[string]string{
	"row-fence":               "RowFence",
	"ledger":                  "Ledger",
	"resource":                "Resource",
	"key":                     "Key",
	"claim":                   "Claim",
	"claimof":                 "ClaimOf",
	"sealed":                  "Sealed",
	"single-use":              "SingleUse",
	"optional":                "Optional",
	"exempt":                  "Exempt",
	"serial":                  "Serial",
	"sealed-from-transaction": "Sealed(FromTransaction())",
	"unfenced-inserts":        "UnfencedInserts",
	"required-serial":         "Serial, with Required()",
	"edit-lock":               "EditLock",
	"observe":                 "InMode(Observe)",
}

// The reference is the program's own help.
func TestReferenceIsTheHelp(t *testing.T) {
	const name = "../../../../docs/data/cli.md"
	root := (&app{}).root()
	var b strings.Builder
	fmt.Fprintf(&b, `# The command line: reference

This page is the help of the program, written by
%s in cmd/sqlfence. [The command line](../cli.md) has the
tasks.

%s
`, "`go test ./internal/cli -run TestReferenceIsTheHelp -update`", referenceText(root.Long))
	fmt.Fprintf(&b, "\nFlags of every command:\n\n```text\n%s```\n\n## Registered tables\n\n", root.PersistentFlags().FlagUsagesWrapped(screenColumns))
	_, files, _ := strings.Cut(strings.ReplaceAll(tableHelp, "\n", " "), "and observe. ")
	b.WriteString("`--table NAME=RULE,RULE…` registers a table, as [`WithTable`](../rules.md) does. The option can be\nrepeated. " + folded(files, 110, "") + "\n")
	b.WriteString("\n| rule | in Go |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		spelled := regexp.MustCompile(`\b` + name + `(:[A-Z]+)*[,.\s]`).FindString(tableHelp)
		if n := strings.Count(spelled, ":"); spelled == "" || n != rules[name].arguments {
			t.Errorf("the help has %q for %s", spelled, name)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", spelled[:max(0, len(spelled)-1)], inGo[name])
	}
	for _, cmd := range own(root) {
		long, _, tables := strings.Cut(cmd.Long, "\n\n"+folded(strings.ReplaceAll(tableHelp, "\n", " "), screenColumns, ""))
		if tables {
			_, json, _ := strings.Cut(cmd.Long, "\n\nWith --json: ")
			long += "\n\nTables are registered [as above](#registered-tables).\n\nWith --json: " + json
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n", cmd.CommandPath(), cmd.UseLine())
		if flags := cmd.LocalFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s", flags.FlagUsagesWrapped(screenColumns))
		}
		fmt.Fprintf(&b, "```\n\n%s\n\n```sh\n%s\n```\n", referenceText(long), regexp.MustCompile("(?m)^  ").ReplaceAllString(cmd.Example, ""))
	}
	is, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	switch want := b.String(); {
	case string(is) == want:
	case *update:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date; -update writes it", name)
	}
}

// referenceText returns a help as Markdown: lists of two columns as text, and JSON as code.
func referenceText(help string) string {
	paragraphs := strings.Split(help, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") {
			paragraphs[i] = "```text\n" + p + "\n```"
		} else if json, ok := strings.CutPrefix(p, "With --json: "); ok {
			paragraphs[i] = "With `--json`:\n\n```text\n" + folded(strings.ReplaceAll(json, "\n", " "), screenColumns, "") + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// docs/cli.md names commands and flags that exist.
func TestCommandsOfThePageExist(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	root, found := (&app{}).root(), 0
	for _, m := range regexp.MustCompile(`(?m)(?:^|[$&|`+"`"+`] ?)sqlfence ([a-z-]+(?: [a-z]+)?)([^`+"`\n|&]*)").FindAllStringSubmatch(string(page), -1) {
		cmd, _, err := root.Find(strings.Fields(m[1]))
		if err != nil || cmd == root {
			t.Errorf("there is no sqlfence %s: %v", m[1], err)
			continue
		}
		found++
		flags, _, _ := strings.Cut(m[2], " -- ")
		for _, f := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(flags, -1) {
			if cmd.Flag(f[1]) == nil && root.PersistentFlags().Lookup(f[1]) == nil {
				t.Errorf("sqlfence %s has no --%s", m[1], f[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d commands were found", found)
	}
}

// A password of one letter is hidden only in the places of a password.
func TestRedactorOfAShortPassword(t *testing.T) {
	for _, dsn := range []string{"postgres://ada:a@h/db", "mysql://ada:a@h/db", "postgres://ada@h/db?password=a&x=y", "postgres://ada@h/db?password=a"} {
		s, err := database.Parse(dsn, false)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r := database.NewRedactor(&out)
		r.Hide(s.Secrets)
		const text = "a table of Ada's can't be reached"
		if _, err := r.Write([]byte(text + ": " + dsn)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, text) || strings.Contains(got, ":a@") || strings.Contains(got, "password=a") || !strings.Contains(got, "xxxxx") {
			t.Errorf("%s: it says %s", dsn, got)
		}
	}
	var out bytes.Buffer
	r := database.NewRedactor(&out)
	r.Hide([]string{""})
	if _, err := r.Write([]byte("a: \"\"")); err != nil || out.String() != "a: \"\"" {
		t.Errorf("no password: %s, %v", out.String(), err)
	}
}

// A token that is printed for a program is quoted if it contains characters that control a terminal. Otherwise it
// isn't.
func TestQuotedTokenControlsNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"books:000000000000001":    "books:000000000000001",
		"bücher 1:000000000000001": "bücher 1:000000000000001",
		"a\x1b[2J:000000000000001": `"a\x1b[2J:000000000000001"`,
		"a\n:000000000000001":      `"a\n:000000000000001"`,
		"a\u009b:000000000000001":  `"a\u009b:000000000000001"`,
		"a\u202e:000000000000001":  `"a\u202e:000000000000001"`,
	} {
		if got := quoted(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// No password gets through a Redactor, in whatever form an error has it.
func TestRedactorLetsNoPasswordThrough(t *testing.T) {
	for _, dsn := range []string{
		"postgres://ada:p%40ss%2Fword@h/db",
		"mysql://ada:p%40ss%2Fword@h/db",
		"postgres://ada@h/db?password=p%40ss%2Fword",
		"postgres://ada@h/db?sslpassword=p%40ss%2Fword",
	} {
		s, err := database.Parse(dsn, false)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r := database.NewRedactor(&out)
		r.Hide(s.Secrets)
		if _, err := r.Write([]byte("can't reach " + dsn + " with p@ss/word or p%40ss%2Fword, nor p@ss%2Fword")); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "word@") || strings.Contains(got, "ss/") || strings.Contains(got, "ss%2F") || !strings.Contains(got, "xxxxx") {
			t.Errorf("%s: it says %s", dsn, got)
		}
	}
}
