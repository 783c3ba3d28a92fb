package negative_test

import (
	"strings"
	"testing"
)

func TestRulesCanFail(t *testing.T) {
	t.Parallel() // mostly builds
	needed(t)

	t.Run("no comparing of serials", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, "return w.Plan.Versioned", "return false", 1)
		}
		wantFailing(t, "serials", replaced(t, "rewrite/internal/render/serial.go", without), map[string][]string{
			"TestSerialConflict":        all,
			"TestSerialUnderLoad":       all,
			"TestSerialOddStatements":   all,
			"TestSerialColumnNames":     all,
			"TestSerialUpsertOfSeveral": postgres,
			"TestSerialWriteThatWaits":  postgres,
		})
	})

	t.Run("no look at locks", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `w.write("CASE WHEN ", editlock.NoHolder`, `w.write("CASE WHEN ", by, " IS NOT NULL OR ", editlock.NoHolder`, 1)
		}
		wantFailing(t, "serials", replaced(t, "rewrite/internal/render/editlock.go", without), map[string][]string{
			"TestEditLockRefusesOthers":   all,
			"TestEditLockStatements":      all,
			"TestEditLockThatNeverLapses": all,
			"TestEditLockWriteThatWaits":  servers,
		})
	})

	t.Run("no counting", func(t *testing.T) {
		without := func(source string) string {
			return strings.Replace(source, `w.writeAssigned(", ", w.rules.Quoted.Serial)`, "return", 1)
		}
		wantFailing(t, "serials", replaced(t, "rewrite/internal/render/serial.go", without), map[string][]string{
			"TestSerialCounts":    all,
			"TestSerialUnderLoad": all,
		})
	})

	t.Run("no look at the rows reached", func(t *testing.T) {
		without := func(source string) string { return strings.Replace(source, "case n > 0:", "case n >= 0:", 1) }
		wantFailing(t, "serials", replaced(t, "internal/core/response.go", without), map[string][]string{
			"TestSerialGone":                     all,
			"TestSerialWhereATriggerSkipsTheRow": unlike,
		})
	})
}
