package rules

import (
	"regexp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// conditional is a comment that servers from some version on execute, with words in it that can't end it elsewhere.
var conditional = regexp.MustCompile(`^(/\*[Mm]?!(?:\d{5})?)(\s[\w\s,.=()@*]*)(\*/)`)

// readsAnyway reports whether a text passes as a server reads it that executes the comment at an offset, and as one
// that doesn't.
func (r *Registration) readsAnyway(query string, offset int) bool {
	const most = 4
	found := conditional.FindStringSubmatch(query[offset:])
	if found == nil || strings.Count(query[offset:], "!") > most {
		return false
	}
	blank := func(s string) string { return strings.Repeat(" ", len(s)) }
	before, behind := query[:offset], query[offset+len(found[0]):]
	for _, code := range [...]string{found[2], blank(found[2])} {
		plan := r.Read(before+blank(found[1])+code+blank(found[3])+behind, 0)
		if plan.Verdict != guard.Pass || len(plan.Settings) > 0 {
			return false
		}
	}
	return true
}
