package lease

import (
	"os"
	"strings"
	"testing"
)

// The tables that the documentation shows are the ones that Setup creates.
func TestDocumentedTables(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialects.All() {
		create := d.create().text
		if shown := "//\t" + strings.ReplaceAll(create, "\n", "\n//\t") + "\n//\n"; !strings.Contains(string(doc), shown) {
			t.Errorf("doc.go doesn't show\n%s", shown)
		}
	}
}
