package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

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
