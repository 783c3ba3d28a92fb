package negative_test

import (
	"strings"
	"testing"
)

// Each part that only MySQL's guards have is needed on MySQL.
func TestMySQLCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	for _, c := range []struct{ name, file, old, new, test string }{
		{"new rows' keys as they are sent", "internal/dialect/mysql/guard.go", "ReadsNewRow: fact.Yes", "ReadsNewRow: fact.No",
			"TestKeysThatTheServerChanges"},
		{"a mark whatever the key", "rewrite/internal/render/rowfence.go", "w.byKeyOf(token, token+1, w.storedToken, func() { w.throw(guard.OutOfScope, token, w.shownKey()) })", "w.storedToken(token)",
			"TestKeysThatTheServerChanges"},
		{"rows before they are joined", "rewrite/internal/rules/joined.go", "EXISTS (SELECT 1 FROM DUAL WHERE ", "(",
			"TestJoinedDeleteLeavesOtherRowsAlone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			without := func(source string) string { return strings.ReplaceAll(source, c.old, c.new) }
			wantFailing(t, "mysql", replaced(t, c.file, without), map[string][]string{c.test: {"prepared"}})
		})
	}
}
