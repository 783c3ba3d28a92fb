package sqltext

import (
	"regexp"
	"strings"
	"testing"
)

// In the name of a setting PostgreSQL accepts letters, digits, _ and $, and ignores case. Different tables must have
// different settings all the same.
func TestSettingsOfTablesDiffer(t *testing.T) {
	valid := regexp.MustCompile(`^sqlfence\.[a-z_][a-z0-9_$]*$`)
	of := make(map[string]string)
	for _, table := range []string{"books", "Books", "BOOKS", "books$42", "$42ooks", "bücher", "the books", "a.b", "a_2eb", "1", "", "'", `"`, "\x00"} {
		for _, setting := range []string{DeleteSetting(table), MoveSetting(table)} {
			if other, there := of[strings.ToLower(setting)]; there || !valid.MatchString(setting) {
				t.Errorf("%s of %q, and of %q", setting, table, other)
			}
			of[strings.ToLower(setting)] = table
		}
	}
	if got := DeleteSetting("books"); got != "sqlfence.delete_books" {
		t.Errorf("%s isn't that of docs/protocol.md", got)
	}
}
