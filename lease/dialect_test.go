package lease

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every statement of every dialect has its pieces written out, and as many arguments as
// it has placeholders.
func TestStatementsAreComplete(t *testing.T) {
	numbered := regexp.MustCompile(`\$\d+`)
	for _, of := range dialects.All() {
		d := of()
		var lock, unlock statement
		if d.session != nil {
			lock, unlock = d.session(7)
		}
		for name, s := range map[string]statement{
			"create": {text: d.create}, "index": {text: d.createIndex}, "indexed": {text: d.hasIndex}, "undo": d.undo("k", "id"), "extend": d.extend("id", time.Second),
			"release": d.release("id", "another", 0, false), "release and notify": d.release("id", "another", 0, true),
			"hold": d.release("id", "another", time.Second, false), "hold and notify": d.release("id", "another", time.Second, true),
			"list": d.list("", ""), "by key": d.list("key", "k"), "by lock id": d.list("lock_id", "id"),
			"ended": d.ended("id"), "released": d.released("another"), "sweep": d.sweep, "lock": lock, "unlock": unlock,
		} {
			places := strings.Count(s.text, "?")
			different := make(map[string]bool)
			for _, place := range numbered.FindAllString(s.text, -1) {
				different[place] = true
			}
			if places+len(different) != len(s.args) || strings.Contains(s.text, "{") {
				t.Errorf("%T, %s: %d arguments for %s", d.Dialect, name, len(s.args), s.text)
			}
		}
	}
}

// The files of package schema create the table that Setup creates.
func TestFilesOfSchemaCreateTheTable(t *testing.T) {
	var files, want []string
	paths, err := filepath.Glob("../schema/*/00002_fencing_leases.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	for _, d := range dialects.All() {
		text := "-- +goose Up\n" + d().create + ";\n"
		if !strings.Contains(text, "KEY fencing_leases_expires_at") { // if the table's CREATE contains no index
			text += "\n" + d().createIndex + ";\n"
		}
		want = append(want, text)
	}
	slices.Sort(files)
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the files have\n%s\nSetup sends\n%s", strings.Join(files, "\n"), strings.Join(want, "\n"))
	}
}
