package tokens

import (
	"testing"

	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
)

// Verify knows the procedures again.
func TestProcedureHashes(t *testing.T) {
	for _, p := range proceduresPostgres() {
		if got, want := p.Hash(), pg.ProcedureHashes[p.Name]; got != want {
			t.Errorf("the hash of %s is %s, Verify has %s", p.Name, got, want)
		}
	}
}
