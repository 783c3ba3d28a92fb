package rowlock_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A statement is a text in a form in which its parts can be found: with numbered placeholders in both dialects, names
// without quotes, one blank between words, and without the text that a guard adds to the verb.
type statement struct {
	text string
	args []any
}

func (d *desk) read(c fakedb.Call) statement {
	text := strings.NewReplacer("`", "", `"`, "", "UPDATE OR ABORT", "UPDATE", "pg_catalog.mul_d_interval(", "+ ",
		"rowlock_serial", d.serial, "rowlock_by", d.by, "rowlock_expiry", d.expiry).Replace(strings.Join(strings.Fields(fakedb.Plain(c.Query)), " "))
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement{text, c.Args}
}

func (s statement) has(parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(s.text, part) })
}

// arg returns the argument at the place of @ in part, if the text contains part.
func (s statement) arg(part string) (value any, ok bool) {
	pattern := `(?:^|\W)` + strings.Replace(regexp.QuoteMeta(part), "@", `\$(\d+)`, 1)
	found := regexp.MustCompile(pattern).FindStringSubmatch(s.text)
	if found == nil {
		return nil, false
	}
	n, _ := strconv.Atoi(found[1])
	return s.args[n-1], true
}

// between returns the part of s from the last place of from to the next place of to.
func (s statement) between(from, to string) statement {
	text := s.text[strings.LastIndex(s.text, from)+len(from):]
	text, _, _ = strings.Cut(text, to)
	return statement{text, s.args}
}

// asksForRowlocks reports whether s looks into the catalogue for the table rowlocks.
func (s statement) asksForRowlocks() bool {
	return s.has("pragma_table_info('rowlocks')") || s.has("to_regclass('rowlocks')") || s.has("table_name = _utf8mb4'rowlocks'")
}
