package serials_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The statements of this file try to write at an old version, not to count a write, or to reach no row without an
// error.

func TestSerialOddStatements(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		sh.Exec(t, "CREATE TABLE notes (book integer, price integer, serial bigint)")
		sh.Exec(t, "INSERT INTO notes VALUES (1, 50, 7), (1, 60, 7), (1, 70, 99)")
		schema := "main"
		if s.Dialect == sqlfence.Postgres {
			if err := sh.Plain.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
				t.Fatal(err)
			}
		}
		const changed, same = "1:50#8 2:10#1 3:10#1", "1:10#7 2:10#1 3:10#1"
		for _, tt := range []struct {
			dialect sqlfence.Dialect // 0 for both
			query   string
			want    string // at serial 7; at serial 6 nothing may change
		}{
			{0, "UPDATE books SET price = 50 FROM notes WHERE notes.book = books.id", changed}, // three notes
			{0, "UPDATE books SET price = 50 FROM notes AS n WHERE n.book = books.id AND n.serial = 7", changed},
			{0, "UPDATE books AS b SET price = 50 FROM books AS c WHERE b.id = c.id AND c.id = 1", changed},
			{0, "UPDATE " + schema + ".books SET price = 50 WHERE id = 1", changed},
			{0, "UPDATE \"books\" AS \"b\" SET price = 50 WHERE \"b\".id = 1", changed},
			{0, "UPDATE BOOKS SET (price, isbn) = (50, 'x') WHERE id = 1", changed},
			{0, "UPDATE books SET price = (SELECT max(serial) - 49 FROM notes) WHERE id = 1", changed},
			{0, "WITH n AS (SELECT 50 AS price) UPDATE books SET price = (SELECT price FROM n) WHERE id = 1", changed},
			{0, "UPDATE books SET price = 50 WHERE id = 1 -- and no more", changed},
			{0, "UPDATE books SET price = 50 WHERE id = 1; ", changed},
			{0, "; UPDATE books SET price = 50 WHERE id = 1", changed},
			{sqlfence.Postgres, "UPDATE books SET price = 50 WHERE id = 1; -- and no more", changed},
			{0, "UPDATE books SET price = CASE WHEN serial = 7 THEN 50 ELSE 60 END WHERE id = 1", changed},
			{0, "DELETE FROM books AS b WHERE b.id = 1 AND price IN (SELECT 10 FROM notes AS n WHERE n.serial = 7)", "2:10#1 3:10#1"},
			{sqlfence.SQLite, "UPDATE OR ROLLBACK books SET price = 50 WHERE id = 1", changed},
			{sqlfence.SQLite, "UPDATE [books] SET `price` = 50 WHERE rowid = 1", changed},
			{sqlfence.Postgres, "UPDATE books * SET price = 50 WHERE id = 1", changed},
			{sqlfence.Postgres, "UPDATE U&\"b\\006foks\" SET price = 50 WHERE id = 1", changed},
			{sqlfence.Postgres, "DELETE FROM books USING notes AS n WHERE n.book = books.id", "2:10#1 3:10#1"},
		} {
			version(t, sh, 7)
			if tt.dialect != 0 && tt.dialect != s.Dialect || !sh.Runs(t, tt.query) {
				continue
			}
			_, err := sh.DB.ExecContext(harness.WithSerial(t, 6), tt.query)
			harness.WantConflict(t, err, 6, 7)
			sh.WantVersions(t, same)
			if _, err := sh.DB.ExecContext(harness.WithSerial(t, 7), tt.query); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, tt.want)
			sh.Exec(t, "DELETE FROM books WHERE id = 1")
			_, err = sh.DB.ExecContext(harness.WithSerial(t, 8), tt.query)
			harness.WantError(t, err, sqlfence.ErrGone)
			sh.WantVersions(t, "2:10#1 3:10#1")
			if t.Failed() {
				t.Fatalf("by %s", tt.query)
			}
		}
	})
}

// If a trigger skips the row, the write returns an error.
func TestSerialWhereATriggerSkipsTheRow(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Dialect == sqlfence.MySQL {
			t.Skip("a trigger of its can only fail")
		}
		sh := serialShop(t, s)
		if s.Dialect == sqlfence.SQLite {
			sh.Exec(t, "CREATE TRIGGER skip BEFORE UPDATE ON books BEGIN SELECT RAISE(IGNORE); END")
			sh.Exec(t, "CREATE TRIGGER skip_delete BEFORE DELETE ON books WHEN old.price = 11 BEGIN SELECT RAISE(IGNORE); END")
		} else {
			sh.Exec(t, "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
			sh.Exec(t, "CREATE TRIGGER skip BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION skip()")
			sh.Exec(t, "CREATE TRIGGER skip_delete BEFORE DELETE ON books FOR EACH ROW WHEN (old.price = 11) EXECUTE FUNCTION skip()")
		}
		sh.Reset(t, 0)
		sh.Exec(t, "INSERT INTO books (id, price, serial) VALUES (9, 11, 7)")
		for _, w := range versionedWrites {
			w.Args = append(append([]any(nil), w.Args[:len(w.Args)-1]...), 9)
			for _, f := range harness.Forms {
				_, err := f.Run(harness.WithSerial(t, 7), sh.DB, w.As(s.Dialect))
				harness.WantError(t, err, sqlfence.ErrGone)
			}
		}
		sh.WantVersions(t, "1:10#null 2:10#null 3:10#null 9:11#7")
	})
}

// If one row of an upsert of several isn't at the version, or doesn't exist, the upsert writes no row.
func TestSerialUpsertOfSeveral(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		version(t, sh, 7)
		upsert := func(serial int64, first, second int) error {
			_, err := sh.DB.ExecContext(harness.WithSerial(t, serial), "INSERT INTO books AS b (id, price) VALUES ($1, 30), ($2, 30) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
				first, second)
			return err
		}
		harness.WantConflict(t, upsert(7, 1, 2), 7, 1)
		harness.WantConflict(t, upsert(1, 1, 2), 1, 7)
		harness.WantError(t, upsert(7, 1, 99), sqlfence.ErrGone)
		harness.WantError(t, upsert(1, 99, 2), sqlfence.ErrGone)
		sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
		if err := upsert(1, 3, 2); err != nil {
			t.Error(err)
		}
		sh.WantVersions(t, "1:10#7 2:30#2 3:30#2")
		// A condition of the statement itself excludes the row, so no row is written.
		_, err := sh.DB.ExecContext(harness.WithSerial(t, 7), "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 30 WHERE books.price > 99")
		harness.WantError(t, err, sqlfence.ErrGone)
	})
}

// Each arm of a MERGE is treated like the statement that it stands for.
func TestSerialMerge(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		if harness.Lacks(t, sh.Plain, "MERGE INTO") {
			t.Skip("the server has no MERGE")
		}
		version(t, sh, 7)
		const merge = `MERGE INTO books b USING (VALUES (1), (2), (3), (9)) n (id) ON b.id = n.id
			WHEN MATCHED AND n.id = 1 THEN UPDATE SET price = 30
			WHEN MATCHED AND n.id = 2 THEN UPDATE SET serial = 50
			WHEN MATCHED THEN DELETE
			WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)`
		if _, err := sh.DB.ExecContext(t.Context(), merge); err != nil {
			t.Error(err)
		}
		sh.WantVersions(t, "1:30#8 2:10#50 9:10#1")
	})
}

// With arguments of pgx's own types, the guarded text has the serial as a constant.
func TestSerialPgxArguments(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		if !s.IsPgx() {
			t.Skip("only pgx has them")
		}
		sh := serialShop(t, s)
		for _, args := range [][]any{
			{pgx.NamedArgs{"id": 1, "price": 30}},
			{pgx.QueryExecModeSimpleProtocol, pgx.NamedArgs{"id": 1, "price": 30}},
			{pgx.QueryExecModeExec, pgx.StrictNamedArgs{"id": 1, "price": 30}},
		} {
			version(t, sh, 7)
			const query = "UPDATE books SET price = @price WHERE id = @id"
			_, err := sh.DB.ExecContext(harness.WithSerial(t, 6), query, args...)
			harness.WantConflict(t, err, 6, 7)
			if _, err := sh.DB.ExecContext(harness.WithSerial(t, 7), query, args...); err != nil {
				t.Error(err)
			}
			sh.WantVersions(t, "1:30#8 2:10#1 3:10#1")
		}
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeCacheDescribe} {
			version(t, sh, 7)
			const query = "UPDATE books SET price = $1 WHERE id = $2 RETURNING id"
			_, err := harness.Returned(sh.DB.QueryContext(harness.WithSerial(t, 6), query, mode, 30, 1))
			harness.WantConflict(t, err, 6, 7)
			_, err = harness.Returned(sh.DB.QueryContext(harness.WithSerial(t, 6), query, mode, 30, 99))
			harness.WantError(t, err, sqlfence.ErrGone)
			if n, err := harness.Returned(sh.DB.QueryContext(harness.WithSerial(t, 7), query, mode, 30, 1)); n != 1 || err != nil {
				t.Errorf("mode %v: %d rows, %v", mode, n, err)
			}
		}
	})
}

// RETURNING returns the same columns as without a serial, with the new serial.
func TestSerialReturning(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Returns() {
			t.Skip("an UPDATE returns nothing")
		}
		sh := serialShop(t, harness.Setting{Base: b, Level: sql.LevelDefault})
		version(t, sh, 7)
		rows, err := sh.DB.QueryContext(harness.WithSerial(t, 7), "UPDATE books SET price = 30 WHERE id = 1 RETURNING *")
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if got := fmt.Sprint(columns); err != nil || got != "[id isbn price writer fence_token serial]" {
			t.Errorf("columns are %s, %v", got, err)
		}
		types, err := rows.ColumnTypes()
		if err != nil || len(types) != 6 || types[1].DatabaseTypeName() == "" {
			t.Errorf("types are %v, %v", types, err)
		}
		if err := rows.Close(); err != nil { // before the first row is read
			t.Error(err)
		}
		var isbn string
		var serial int64
		if err := sh.DB.QueryRowContext(harness.WithSerial(t, 8), "UPDATE books SET price = 30 WHERE id = 1 RETURNING isbn, serial").Scan(&isbn, &serial); err != nil || isbn != "i1" || serial != 9 {
			t.Errorf("got %q, %d, %v", isbn, serial, err)
		}
		sh.Exec(t, "UPDATE books SET serial = 9")
		rows, err = sh.DB.QueryContext(harness.WithSerial(t, 9), "UPDATE books SET price = 30 RETURNING id")
		if n, err := harness.Returned(rows, err); n != 3 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
		// A caller that doesn't read the rows also receives the error.
		rows, err = sh.DB.QueryContext(harness.WithSerial(t, 9), "UPDATE books SET price = 30 WHERE id = 99 RETURNING id")
		if err == nil {
			rows.Close()
		}
		harness.WantError(t, err, sqlfence.ErrGone)
	})
}

// The column's name is folded as the database folds it.
func TestSerialColumnNames(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, tt := range []struct{ column, rule, own string }{
			{`version`, `VERSION`, `Version`},
			{`"Version"`, `"Version"`, `"Version"`},
			{`"a ""b"" c"`, `"a ""b"" c"`, `"a ""b"" c"`},
			{`"order"`, `"order"`, `"order"`},
		} {
			if b.Dialect == sqlfence.MySQL && strings.Contains(tt.column, `""`) {
				continue // MySQL quotes differently
			}
			sh := harness.Setting{Base: b, Level: sql.LevelDefault}.Shop(t, sqlfence.Serial(tt.rule))
			sh.Exec(t, "ALTER TABLE books ADD COLUMN "+tt.column+" integer")
			serial := func() (n int64) {
				if err := sh.Plain.QueryRow("SELECT " + tt.column + " FROM books WHERE id = 1").Scan(&n); err != nil {
					t.Error(err)
				}
				return n
			}
			exec := func(ctx context.Context, query string) {
				t.Helper()
				if _, err := sh.DB.ExecContext(ctx, query); err != nil {
					t.Error(err)
				}
			}
			exec(t.Context(), "INSERT INTO books (id) VALUES (1)")
			exec(t.Context(), "UPDATE books SET price = 1")
			exec(harness.WithSerial(t, 2), "UPDATE books SET price = 1")
			exec(t.Context(), "UPDATE books SET price = 1, "+tt.own+" = "+tt.own+" + 10")
			if got := serial(); got != 13 {
				t.Errorf("%s is at %d, want 13", tt.column, got)
			}
			_, err := sh.DB.ExecContext(harness.WithSerial(t, 12), "DELETE FROM books")
			harness.WantConflict(t, err, 12, 13)
		}
	})
}

// A constraint of SQLite that replaces rows would reset a version.
func TestSerialWhereAConstraintReplacesRows(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has ON CONFLICT in constraints")
		}
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Serial("serial"))
		sh.Exec(t, "DROP TABLE books")
		sh.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY ON CONFLICT REPLACE, isbn text UNIQUE ON CONFLICT REPLACE, price integer DEFAULT 10, fence_token, serial)")
		version(t, sh, 7)
		for _, query := range []string{"INSERT INTO books (id, isbn) VALUES (1, 'i9')", "INSERT INTO books (id, isbn) VALUES (9, 'i1')", "UPDATE books SET isbn = 'i1' WHERE id = 2", "UPDATE books SET id = 1 WHERE id = 2"} {
			for _, ctx := range []context.Context{t.Context(), harness.WithSerial(t, 1)} {
				if _, err := sh.DB.ExecContext(ctx, query); err == nil {
					t.Errorf("%s: it passed", query)
				}
			}
		}
		sh.WantVersions(t, "1:10#7 2:10#1 3:10#1")
	})
}

// A write that waits for a row lock decides by the row that is committed when the write gets the lock.
func TestSerialWriteThatWaits(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := serialShop(t, s)
		for _, w := range harness.RowWrites {
			for _, end := range []string{"update", "delete", "rollback"} {
				t.Run(w.Name+" behind "+end, func(t *testing.T) {
					version(t, sh, 7)
					first := harness.Begin(t.Context(), t, sh.DB, s.Level)
					var pid int
					if err := first.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
						t.Fatal(err)
					}
					query := "UPDATE books SET price = 20 WHERE id = 1"
					if end == "delete" {
						query = "DELETE FROM books WHERE id = 1"
					}
					if _, err := first.ExecContext(harness.WithSerial(t, 7), query); err != nil {
						t.Fatal(err)
					}
					ctx := harness.WithSerial(t, 7)
					second := harness.Go(func() error {
						_, err := harness.Forms[0].Run(ctx, sh.DB, w)
						return err
					})
					sh.WantBlocked(t, pid, second.Ended())
					finish := first.Commit
					if end == "rollback" {
						finish = first.Rollback
					}
					if err := finish(); err != nil {
						t.Error(err)
					}
					err := second.Wait()
					switch {
					case end == "rollback":
						if err != nil {
							t.Error(err)
						}
					case s.Level != sql.LevelReadCommitted && harness.RefusedByIsolation(err):
					case end == "delete":
						harness.WantError(t, err, sqlfence.ErrGone)
					default:
						harness.WantConflict(t, err, 7, 8)
					}
				})
			}
		}
	})
}
