package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// FuzzReaders shows that the functions that read an application's SQL, names or errors don't panic on any input.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{
		"SET search_path = shop", "SELECT set_config('search_path', 'shop', false)", "UPDATE pg_settings SET setting = 'shop'", `SET U&"\0073earch_path" = a`,
		"USE shop", "RESET ALL", "SELECT pg_catalog.pg_catalog.set_config ( 'a', b", "CREATE TRIGGER sqlfence_books_v1", "SET sqlfence.tokens = 'books:1'",
		"SELECT token FROM fencing_tokens -- 'x", "INSERT INTO \"fencing_tokens\" VALUES (`a", "_", "'", "x_config", "fencing_leases.fencing_tokens",
	} {
		f.Add(s, "books")
	}
	f.Fuzz(func(t *testing.T, query, name string) {
		_, _, _ = sqltext.ChangesSeal(query), sqltext.OwnsName(name), sqltext.OwnsSetting(query)
		_, _ = sqltext.DeleteSetting(name), sqltext.MoveSetting(name)
		for _, d := range sqltext.All() {
			_, _ = d.MayChangeSchema(query, false), d.MayChangeSchema(query, true)
			_, _ = d.Thrown(errors.New(query))
			if sqltext.IsThrown(d, errors.New(query), "sqlfence:mark:") && !strings.Contains(query, "sqlfence:mark:") {
				t.Errorf("%q is taken for a raise", query)
			}
			if got := sqltext.Place(d, "", query); got != query {
				t.Errorf("without a schema %q becomes %q", query, got)
			}
			sqltext.Place(d, name, query)
		}
	})
}
