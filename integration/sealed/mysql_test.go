package sealed_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

// What would leave a hole in a seal, as MySQL's triggers don't see it, is refused.
func TestObstacles(t *testing.T) {
	for change, want := range map[string]string{
		"ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE CASCADE":                      "by a cascade",
		"ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON UPDATE SET NULL":                     "by a cascade",
		"ALTER TABLE books MODIFY fence_token bigint unsigned NOT NULL DEFAULT 0":                                   "unsigned, want bigint",
		"ALTER TABLE books MODIFY fence_token int NOT NULL DEFAULT 0":                                               "want bigint",
		"ALTER TABLE books ENGINE = MyISAM":                                                                         "want InnoDB",
		"ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE RESTRICT ON UPDATE NO ACTION": "",
	} {
		l := newUnsealed(t, harness.MySQL)
		l.exec(t, change)
		err := schema.Seal(t.Context(), l.db)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// A table in another database than the connection's.
func TestAnotherDatabase(t *testing.T) {
	l := newUnsealed(t, harness.MySQL)
	name := "other_" + l.unique
	l.exec(t, "CREATE DATABASE "+name)
	defer l.exec(t, "DROP DATABASE "+name)
	l.exec(t, "CREATE TABLE "+name+".books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)")
	db := l.Fenced(t, l.dsn, sqlfence.WithTable(name+".books", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := l.plain.Exec("INSERT INTO " + name + ".books (id) VALUES (1)"); err == nil {
		t.Error("no error")
	}
	for _, query := range []string{"INSERT INTO %.books (id) VALUES (1)", "UPDATE %.books SET price = 1", "DELETE FROM %.books"} {
		if _, err := db.ExecContext(holding(t, 7), strings.ReplaceAll(query, "%", name)); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
