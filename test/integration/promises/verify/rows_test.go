package verify_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Names whose tokens may run out are found, with or without a registered table. A retired name isn't reported.
func TestTokensThatRunOut(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('pens', 800000000000000), ('retired', 900000000000001), ('books', 7)")
		found := w.news(t, harness.Books(both...))
		wantOne(t, found, slog.LevelWarn, "tokens-run-out")
		if f := found[0]; !strings.Contains(f.Problem, `"pens" at 800000000000000, which is 88.9 %`) || strings.Contains(f.Problem, "retired") || strings.Contains(f.Problem, "books") {
			t.Error(f)
		}
		w.exec(t, "UPDATE fencing_tokens SET token = 900000000000000 WHERE name = 'pens'")
		wantOne(t, w.news(t, harness.Books(both...)), slog.LevelError, "tokens-run-out")
	})
}
