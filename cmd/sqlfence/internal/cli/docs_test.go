package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// docs/cli.md has every command, and every flag; and each command has help and an example.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	commands := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		if cmd.HasSubCommands() {
			return
		}
		commands++
		if !strings.Contains(page, "| `"+cmd.CommandPath()) {
			t.Errorf("docs/cli.md has no %s", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.UsageString(), "\n") {
			if n := utf8.RuneCountInString(line); n > screenColumns {
				t.Errorf("the help of %s has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s: no description, or no example", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, "`--"+f.Name) && !strings.Contains(page, " --"+f.Name) {
				t.Errorf("docs/cli.md has no --%s of %s", f.Name, cmd.CommandPath())
			}
		})
	}
	root := (&app{}).root()
	walk(root)
	if commands < 15 {
		t.Errorf("only %d commands were looked at", commands)
	}
	for name := range rules {
		if !strings.Contains(page, "`"+name) {
			t.Errorf("docs/cli.md has no rule %s", name)
		}
	}
}

// A password of a letter is hidden where it stands for one, and nowhere else.
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

// What a terminal would act on is quoted in a token that is printed for a program, and only that.
func TestQuoted(t *testing.T) {
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
func TestRedactor(t *testing.T) {
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
