package settings_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// unkept are settings that switch the ledger's triggers off for a client that may set them, each with what this takes.
var unkept = map[string]string{
	"session_replication_role=replica": "it switches triggers off, and takes a superuser",
}

// Whatever settings a client's session has, no token of the ledger falls, no name is lost, and a deleted name gets no
// token again that it had.
func TestLedgerIsKeptUnderEachSetting(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, setting := range settings[b.Dialect] {
			t.Run(setting, func(t *testing.T) {
				dsn := b.DSN(t)
				plain := b.Raw(t, dsn)
				store := harness.NewStore(t, plain)
				if err := store.Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, token := range []sqlfence.Token{{Name: "books", Value: 7}, {Name: "gone", Value: 5}} {
					if err := store.Adopt(t.Context(), token); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := store.Delete(t.Context(), "gone"); err != nil {
					t.Fatal(err)
				}
				bare := sql.OpenDB(hooked{plain.Driver(), dsn, set(b.Dialect, setting)})
				defer bare.Close()
				if err := bare.Ping(); err != nil {
					t.Skipf("the driver alone: %v", err)
				}
				for _, query := range []string{
					"INSERT INTO fencing_tokens (name, token) VALUES ('gone', 5)",
					"UPDATE fencing_tokens SET token = 6 WHERE name = 'books'",
					"DELETE FROM fencing_tokens WHERE name = 'books'",
					"REPLACE INTO fencing_tokens (name, token) VALUES ('books', 1)",
				} {
					if _, err := bare.Exec(query); err == nil && unkept[setting] == "" {
						t.Errorf("done: %s", query)
					}
				}
			})
		}
	})
}
