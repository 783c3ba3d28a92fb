package rowlock_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/fakedb"
)

// A statement is one of which the parts can be looked for: with numbered
// placeholders in both dialects, names without quotes, also those of a lockUpdate, one
// blank between words, and without what a guard adds to the verb.
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

// arg returns the argument that stands for @ in part, if part is there.
func (s statement) arg(part string) (value any, ok bool) {
	pattern := `(?:^|\W)` + strings.Replace(regexp.QuoteMeta(part), "@", `\$(\d+)`, 1)
	found := regexp.MustCompile(pattern).FindStringSubmatch(s.text)
	if found == nil {
		return nil, false
	}
	n, _ := strconv.Atoi(found[1])
	return s.args[n-1], true
}

// between is the part of s from the last of one text to the next of another.
func (s statement) between(from, to string) statement {
	text := s.text[strings.LastIndex(s.text, from)+len(from):]
	text, _, _ = strings.Cut(text, to)
	return statement{text, s.args}
}

// asksForRowlocks reports whether s looks into the catalogue for the table rowlocks.
func (s statement) asksForRowlocks() bool {
	return s.has("pragma_table_info('rowlocks')") || s.has("to_regclass('rowlocks')") || s.has("table_name = _utf8mb4'rowlocks'")
}
