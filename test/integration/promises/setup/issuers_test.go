package setup_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A role with the privileges of docs/privileges.md takes tokens, and is recorded. The role can't call RecordIssuers: no
// GRANT on the ledger permits this.
func TestARoleIsRecorded(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.SQLite {
			t.Skip("no roles in SQLite")
		}
		r := newRole(t, b, parts[slices.IndexFunc(parts, func(p part) bool { return p.name == "lease holder" })])
		owner, store := harness.NewStore(t, r.owner), harness.NewStore(t, r.db)
		if err := store.RecordIssuers(t.Context()); err == nil || errors.Is(err, sqlfence.ErrNotSetUp) {
			t.Errorf("by the role: %v", err)
		}
		if err := owner.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := store.RecordIssuers(t.Context()); (err == nil) != (b.Dialect == sqlfence.Postgres) { // MySQL hides triggers
			t.Errorf("by the role, again: %v", err)
		}
		r.works(t)
		found := 0
		for issued, err := range store.ListIssued(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(issued.By, "@") && !issued.At.IsZero() {
				found++
			}
		}
		if found == 0 {
			t.Error("no token is recorded")
		}
	})
}
