package sealed_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

// An edit lock is taken and released without a token, and nothing else is written with it.
func TestEditLock(t *testing.T) {
	for _, b := range bases[:3] {
		l := newUnsealed(t, b)
		for _, column := range []string{"editedby integer", "editedsince " + times[b.Name], "editedexpiry " + times[b.Name]} {
			l.exec(t, "ALTER TABLE books ADD "+column)
		}
		db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed(), sqlfence.EditLock("editedby", "editedsince", "editedexpiry")))
		err := schema.Seal(t.Context(), db)
		if b.Dialect == sqlfence.MySQL {
			harness.WantError(t, err, sqlfence.ErrInvalid)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.exec(t, "UPDATE books SET editedby = 5, editedsince = now(), editedexpiry = now() + interval '1 hour' WHERE id = 1")
		for _, query := range []string{"UPDATE books SET editedby = NULL, price = 99 WHERE id = 1", "UPDATE books SET editedby = 6, fence_token = 8 WHERE id = 1"} {
			if _, err := l.plain.Exec(query); harness.SQLState(err) != "FT001" {
				t.Errorf("%s: %v", query, err)
			}
		}
		const update = "UPDATE books SET price = 20 WHERE id = 1"
		if _, err := db.ExecContext(holding(t, 7), update); !errors.Is(err, sqlfence.ErrLocked) {
			t.Error(err)
		}
		if _, err := db.ExecContext(sqlfence.WithEditor(holding(t, 7), 5), update); err != nil {
			t.Error(err)
		}
		l.want(t, "1:20@7 2:10@7 3:10@0")
	}
}

var times = map[string]string{"pq": "timestamptz", "pgx": "timestamptz", "mysql": "bigint"}
