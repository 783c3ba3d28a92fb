package effects_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// compareEffects describes how a statement with a fresh token, or one that passes, differs from the plain statement.
// The stored tokens of written rows aren't compared.
func compareEffects(plain, got effect, rules string, v guard.Verdict) string {
	switch {
	case plain.err != nil && got.err == nil:
		return fmt.Sprintf("no error; the bare driver says %v", plain.err)
	case plain.err == nil && got.err != nil:
		return fmt.Sprintf("error %v; the bare driver has none", got.err)
	case v == guard.Pass && plain.err != nil && plain.err.Error() != got.err.Error():
		return fmt.Sprintf("error %v; the bare driver says %v", got.err, plain.err)
	case plain.result != got.result:
		return fmt.Sprintf("result\n%s\nof the bare driver\n%s", got.result, plain.result)
	case !slices.Equal(contents(plain.after), contents(got.after)):
		return "the content differs from what the bare driver leaves:\n" + plain.difference()
	}
	if v == guard.Pass || strings.HasSuffix(rules, "ledger") {
		if got.err == nil && !slices.Equal(plain.after, got.after) {
			return "marks have changed"
		}
		return ""
	}
	before := contents(got.before)
	for _, r := range got.after {
		if r.isOf(rules) && r.mark != fmt.Sprint(freshToken) && !slices.Contains(before, r.content) {
			return "a written row has the mark " + r.mark + ": " + r.content
		}
	}
	return ""
}

// judgeStale describes what a statement with a stale token did wrong. A row fence doesn't check new rows, and the
// ledger refuses these, too.
func judgeStale(plain, got effect, rules string) string {
	ledger := rules != "row" && rules != "pair"
	lost := func(e effect) bool { return lacks(e.before, e.after, rules) }
	found := func(e effect) bool { return lacks(e.after, e.before, rules) }
	switch {
	case lost(got):
		return "a stale statement changed or deleted rows"
	case ledger && found(got):
		return "a stale statement added rows"
	case got.err != nil && !slices.Equal(got.before, got.after):
		return "a refused statement left something behind"
	case errors.Is(got.err, sqlfence.ErrStale):
		return ""
	case plain.err != nil && got.err == nil:
		return "no error; the bare driver says " + plain.err.Error()
	case plain.err == nil && got.err != nil:
		return "another error than ErrStale: " + got.err.Error()
	case plain.err == nil && lost(plain), plain.err == nil && ledger && found(plain):
		return "no ErrStale, though the plain statement reaches rows"
	}
	return ""
}

var idOfRow = regexp.MustCompile(`(?:"id": |\bid=)(\d+)`)

// raiseUntouched returns statements that store a newer token in each book that the fresh statement didn't write. If the
// statement is run again it must not fail because of those.
func (e effect) raiseUntouched() (statements []string) {
	for _, r := range e.after {
		if id := idOfRow.FindStringSubmatch(r.content); id != nil && r.isOf("row") && r.mark == oldMark {
			statements = append(statements, "UPDATE books SET fence_token = 99 WHERE id = "+id[1])
		}
	}
	return statements
}

// isOf reports whether the row is of a table that the rules guard.
func (r effectRow) isOf(rules string) bool {
	return strings.HasPrefix(r.content, "books: ") ||
		strings.HasPrefix(rules, "pair") && strings.HasPrefix(r.content, "orders: ")
}

func contents(rows []effectRow) (all []string) {
	for _, r := range rows {
		all = append(all, r.content)
	}
	slices.Sort(all)
	return all
}

// lacks reports whether b lacks rows of guarded tables that a has.
func lacks(a, b []effectRow, rules string) bool {
	left := make(map[effectRow]int)
	for _, r := range b {
		left[r]++
	}
	return slices.ContainsFunc(a, func(r effectRow) bool {
		left[r]--
		return r.isOf(rules) && left[r] < 0
	})
}
