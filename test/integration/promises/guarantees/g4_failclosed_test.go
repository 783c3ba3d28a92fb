package guarantees_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// unguardable are statements that write to the books, or may write to them, and that sqlfence can't guard.
var unguardable = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"TRUNCATE books",
		"TRUNCATE pens, books",
		"DROP TABLE books",
		"ALTER TABLE books DROP COLUMN fence_token",
		"COPY books FROM STDIN",
		"COPY (DELETE FROM books RETURNING id) TO STDOUT",
		"DO $$ BEGIN UPDATE books SET price = 30; END $$",
		"PREPARE p AS UPDATE books SET price = 30",
		"CREATE RULE r AS ON INSERT TO pens DO ALSO UPDATE books SET price = 30",
	},
	sqlfence.SQLite: {
		"DROP TABLE books",
		"ALTER TABLE books RENAME TO old",
		"REPLACE INTO books (id, price) SELECT 1, 30",
		"INSERT OR REPLACE INTO books (rowid, price) VALUES (1, 30)",
		"UPDATE OR REPLACE books SET price = 30",
		"CREATE TRIGGER r AFTER INSERT ON pens BEGIN UPDATE books SET price = 30; END",
	},
	sqlfence.MySQL: {
		"TRUNCATE books",
		"DROP TABLE books",
		"RENAME TABLE books TO old",
		"ALTER TABLE books DROP COLUMN fence_token",
		"LOAD DATA LOCAL INFILE 'x' INTO TABLE books",
		"REPLACE INTO books (id, price) VALUES (1, 30)",
		"PREPARE p FROM 'UPDATE books SET price = 30'",
		"EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 30')",
		"CALL f('UPDATE books SET price = 30')",
		"BEGIN NOT ATOMIC UPDATE books SET price = 30; END",
		"/*!50000 UPDATE */ books SET price = 30",
		"/*M! UPDATE */ books SET price = 30",
		"CREATE TRIGGER r AFTER INSERT ON pens FOR EACH ROW UPDATE books SET price = 30",
		"UPDATE books SET `fence_token` = 1",
		"INSERT INTO books SET id = 7, fence_token = 1",
		"SET STATEMENT sql_mode = '' FOR UPDATE books SET price = 30",
	},
	0: { // any
		"UPDATE books SET price = 30; COMMIT",
		"UPDATE books SET price = 30, fence_token = 1",
		"UPDATE books SET (price, fence_token) = (30, 1)",
		`UPDATE books SET "fence_token" = 1`,
		"INSERT INTO books (id, fence_token) VALUES (7, 1)",
		"INSERT INTO books VALUES (7, 'i7', 30, 0, 1)",
		"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET fence_token = 1",
		"UPDATE books SET price = 30 WHERE id = 1) OR (true",
		"UPDATE books SET price = 30 WHERE 'unfinished",
	},
}

// A statement that can't be guarded is refused before it reaches the database, with or without a token in the context,
// and the error says why.
func TestG4FailClosed(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t)
		sh.Reset(t, 1)
		unchanged := sh.Unchanged(t)
		db, count := b.Counted(t, sh.Source, harness.Books(sqlfence.RowFence("fence_token")))
		for _, query := range append(unguardable[b.Dialect], unguardable[0]...) {
			ctx := harness.Holding(t, 5)
			_, execErr := db.ExecContext(ctx, query)
			rows, queryErr := db.QueryContext(ctx, query)
			if queryErr == nil {
				_ = rows.Close()
			}
			stmt, prepareErr := db.PrepareContext(ctx, query)
			if prepareErr == nil {
				_ = stmt.Close()
			}
			for how, err := range map[string]error{"exec": execErr, "query": queryErr, "prepare": prepareErr} {
				var e *sqlfence.UnguardableError
				switch {
				case !errors.As(err, &e) || !errors.Is(err, sqlfence.ErrUnguardable):
					t.Errorf("%s of %s: %v, want ErrUnguardable", how, query, err)
				case e.Reason == "":
					t.Errorf("%s of %s: no reason", how, query)
				}
			}
		}
		if got := count.Texts(); len(got) != 0 {
			t.Errorf("reached the database: %q", got)
		}
		unchanged()
	})
}
