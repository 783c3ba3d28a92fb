package effects_test

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/golden"
)

// An effectSample is a statement of the corpus in rewrite/testdata.
type effectSample struct {
	name  string
	rules []string
	sql   string
}

func effectCorpus(t testing.TB, file string) (samples []effectSample) {
	t.Helper()
	read, err := golden.Read(filepath.Join("..", "..", "..", "..", "rewrite", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range read {
		samples = append(samples, effectSample{s.Name, s.Rules, s.SQL})
	}
	if len(samples) < 100 {
		t.Fatalf("only %d statements in %s", len(samples), file)
	}
	return samples
}

// is reports whether the statement begins with a word.
func (s *effectSample) is(word string) bool {
	return strings.HasPrefix(strings.ToLower(s.sql), word)
}

func (s *effectSample) isEmpty() bool {
	return strings.Trim(noCode.ReplaceAllString(s.sql, ""), " ;\n") == ""
}

var (
	noCode         = regexp.MustCompile(`(?s)'(?:[^']|'')*'|"[^"]*"|--[^\n]*|/\*.*?\*/`)
	postgresInputs = regexp.MustCompile(`\$(\d{1,2})\b`)
	sqliteInputs   = regexp.MustCompile(`\?(\d{0,2})|[:@$](\w+)`)
)

// args are arguments for the statement's placeholders: 1 for the first, 2 for the second, and so on. The numbers are
// keys of rows, too.
func (s *effectSample) args(d sqlfence.Dialect) (args []any) {
	code := noCode.ReplaceAllString(s.sql, " ")
	if d == sqlfence.Postgres {
		count := 0
		for _, m := range postgresInputs.FindAllStringSubmatch(code, -1) {
			n, _ := strconv.Atoi(m[1])
			count = max(count, n)
		}
		for i := range count {
			args = append(args, strconv.Itoa(i+1)) // a text fits a parameter of any type
		}
		return args
	}
	var names []string // by index; empty for a placeholder without a name
	for _, m := range sqliteInputs.FindAllStringSubmatch(code, -1) {
		switch n, _ := strconv.Atoi(m[1]); {
		case m[2] != "" && slices.Contains(names, m[0]):
		case m[2] != "" && m[2][0] > '9':
			names = append(names, m[0])
		case n > len(names):
			names = append(names, make([]string, n-len(names))...)
		case n == 0:
			names = append(names, "")
		}
	}
	for i, name := range names {
		if name != "" {
			args = append(args, sql.Named(name[1:], i+1))
		} else {
			args = append(args, i+1)
		}
	}
	return args
}

// limitsDelete reports whether the statement is a DELETE with LIMIT, which needn't delete all rows of its condition.
func (s *effectSample) limitsDelete() bool {
	return s.is("delete") && strings.Contains(strings.ToLower(s.sql), " limit ")
}

// countsMark reports whether the statement is an upsert of MySQL. Its number of affected rows says whether the row has
// changed, and the guard's assignment of the stored token may be the only change.
func (s *effectSample) countsMark(d sqlfence.Dialect) bool {
	return d == sqlfence.MySQL && strings.Contains(strings.ToLower(s.sql), "on duplicate key")
}
