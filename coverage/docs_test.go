package coverage_test

import (
	"os"
	"strings"
	"testing"
)

// The report in docs/coverage.md is the one that the Example prints. The page leaves out what Check returns.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, output, ok := strings.Cut(string(source), "\t// Output:\n")
	if !ok {
		t.Fatal("the Example has no output")
	}
	output, _, ok = strings.Cut(output, "\n\t//\n\t// coverage: ")
	if !ok {
		t.Fatal("the output doesn't end with the result of Check")
	}
	var want strings.Builder
	for line := range strings.Lines(output) {
		want.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "\t//"), " "))
	}
	if !strings.Contains(string(page), "```\n"+want.String()+"\n```") {
		t.Errorf("docs/coverage.md lacks\n%s", &want)
	}
}
