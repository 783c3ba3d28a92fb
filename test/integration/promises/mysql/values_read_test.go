package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// stringModes are sql_modes in which servers read strings in different ways.
var stringModes = []string{"''", "'NO_BACKSLASH_ESCAPES'", "'ANSI_QUOTES'", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"}

// constant returns a value as a constant in a session's sql_mode: with backslashes, or with doubled apostrophes.
func constant(value, sqlMode string, doubles bool) string {
	if strings.Contains(sqlMode, "NO_BACKSLASH_ESCAPES") {
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	quote := `\'`
	if doubles {
		quote = "''"
	}
	return "'" + strings.NewReplacer(`\`, `\\`, "'", quote, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`).Replace(value) + "'"
}

// characters are values with each character of one byte, and with other languages' letters before characters that may
// end a string.
func characters(short bool) (values []string) {
	for c := 1; c < 0x100; c++ {
		values = append(values, string(rune(c)), "é"+string(rune(c)), string(rune(c))+`\`, `\`+string(rune(c))+"'")
	}
	for _, letter := range []string{"é", "Ü", "ソ", "表", "功", "許", "일", "\u1a5c", "\U0001d15c"} {
		for _, next := range []string{`\`, `\\`, `'`, `"`, `\'`, `\"`, `'\`, "`", "[", "]", "\n", "%", ` -- `, `/*`, "#", "?"} {
			values = append(values, letter+next, letter+next+letter, next+letter+`\`, `C:\`+letter+next+`x\y`)
		}
	}
	if short {
		rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		values = append([]string{`C:\Menü\Datei`, "it's", `"é\'`}, values[:12]...)
	}
	return values
}

// No value makes sqlfence refuse a statement: as a constant in the text, prepared or not, and as an argument that the
// driver writes into the text. Values are stored and found as without sqlfence.
func TestNoValueIsRefused(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books MODIFY title varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
	exec(t, plain, "INSERT INTO books (id, fence_token) VALUES (1, 4)")
	for _, sqlMode := range stringModes {
		for _, interpolates := range []bool{false, true} {
			cfg, _ := mysql.ParseDSN(dsn)
			cfg.InterpolateParams, cfg.Params = interpolates, map[string]string{"sql_mode": sqlMode, "charset": "utf8mb4"}
			db := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"))
			for i, value := range characters(testing.Short()) {
				text := constant(value, sqlMode, i%2 == 0)
				check := func(how string, err error) {
					t.Helper()
					var stored string
					if err == nil {
						err = plain.QueryRow("SELECT title FROM books WHERE id = 1").Scan(&stored)
					}
					if err != nil || stored != value {
						t.Fatalf("%s, %s: %s: stored %q, %v", sqlMode, how, text, stored, err)
					}
					exec(t, plain, "UPDATE books SET title = NULL WHERE id = 1")
				}
				_, err := db.ExecContext(holding(5), "UPDATE books SET title = "+text+" WHERE id = 1")
				check("text", err)
				_, err = db.ExecContext(holding(5), "UPDATE books SET price = ?, title = "+text+" WHERE id = ?", 1, 1)
				check("text with arguments", err)
				stmt, err := db.PrepareContext(holding(5), "UPDATE books SET title = "+text+" WHERE id = ?")
				if err == nil {
					_, err = stmt.ExecContext(holding(5), 1)
					_ = stmt.Close()
				}
				check("prepared", err)
				_, err = db.ExecContext(holding(5), "UPDATE books SET title = ? WHERE id = ?", value, 1)
				check("argument", err)
				var found string
				err = db.QueryRow("SELECT " + text + " FROM books WHERE id = 1 AND COALESCE(title, '') <> " + text + " OR id = 1").Scan(&found)
				if err != nil || found != value {
					t.Fatalf("%s: reading %s: %q, %v", sqlMode, text, found, err)
				}
			}
			_ = db.Close()
		}
	}
}

// twoReadings are texts that write to the books, or to more of their rows, only in some sql_mode or encoding.
var twoReadings = []string{
	`SELECT '\', ' ; UPDATE books SET price = 9 -- '`,
	`SELECT * FROM books WHERE title = '\'' OR '\'`,
	`UPDATE pens SET price = '\' WHERE id = ', grp = 1 -- '`,
	`UPDATE books SET title = '\' WHERE FALSE -- ' WHERE id = 1`,
	`UPDATE books SET title = '\', price = 9 WHERE id = 1 OR '' <> '`,
	`UPDATE books SET title = "\", price = 9 WHERE id = 1 OR "" <> "x"`,
	`UPDATE pens p JOIN books b ON p.id = '\' SET b.price = 9 -- ' SET p.price = 1`,
	`DELETE FROM books WHERE title = '\' OR id = 1 -- ' AND id = 1`,
	`DELETE FROM pens WHERE price = '\'; DELETE FROM books; -- '`,
	`UPDATE books SET title = 'ü\' WHERE id = 1 -- ' WHERE id = 1`,
	`UPDATE books SET title = 'ü\\' OR id = 1 -- ' WHERE id = 1`,
	`INSERT INTO pens SELECT 9, 9, '\'; UPDATE books SET price = 9; -- '`,
	`SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\'; UPDATE books SET price = 9; -- '`,
	`SET sql_mode = ''; SELECT '\'; UPDATE books SET price = 9; -- '`,
	`SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR UPDATE books SET title = '\', price = 9 WHERE id = 1 OR '' <> '`,
	`SET STATEMENT sql_mode = '' FOR UPDATE books SET title = '\', price = 9 WHERE id = 1 OR '' <> '`,
}

// If a text has two readings, sqlfence reads it as the session does. No stale write succeeds in any sql_mode or
// encoding, even if statements have changed them, also between preparing and executing.
func TestTextsOfTwoReadingsAreReadAsTheSessionDoes(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	share := 6 // one of this many combinations is executed
	if testing.Short() {
		share = 40
	}
	for _, charset := range []string{"utf8mb4", "gbk", "sjis", "latin1"} {
		for _, first := range stringModes {
			for _, then := range stringModes {
				cfg, _ := mysql.ParseDSN(dsn)
				cfg.MultiStatements, cfg.Params = true, map[string]string{"sql_mode": first}
				if err := cfg.Apply(mysql.Charset(charset, "")); err != nil {
					t.Fatal(err)
				}
				for _, query := range twoReadings {
					if rand.IntN(share) > 0 {
						continue
					}
					exec(t, plain, "REPLACE INTO books (id, title, fence_token) VALUES (1, 'kept', 9)")
					kept := func(how string, err error) {
						t.Helper()
						var n int
						if e := plain.QueryRow("SELECT COUNT(*) FROM books WHERE id = 1 AND title = 'kept' AND price = 0 AND fence_token = 9").Scan(&n); e != nil {
							t.Fatal(e)
						}
						if n != 1 {
							t.Fatalf("%s, %s, then %s: %s: a stale write of %s lands: %v", charset, first, then, how, query, err)
						}
						if strings.Contains(fmt.Sprint(err), "Error 1064") && errors.Is(err, sqlfence.ErrUnguardable) {
							t.Fatal(err)
						}
					}
					db := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"))
					db.SetMaxOpenConns(1)
					_, err := db.ExecContext(holding(5), query)
					kept("at once", err)
					stmt, err := db.PrepareContext(holding(5), query)
					if _, err := db.Exec("SET SESSION sql_mode = " + then); err != nil {
						t.Fatal(err)
					}
					if err == nil {
						kept("prepared before", executed(stmt, query))
						_ = stmt.Close()
					}
					_, err = db.ExecContext(holding(5), query)
					kept("changed", err)
					_ = db.Close()
				}
			}
		}
	}
}

// executed executes a prepared statement. Exec of a statement that returns two columns is left out, because
// go-sql-driver 1.10 then waits for packets that MariaDB doesn't send.
func executed(stmt *sql.Stmt, query string) error {
	if !strings.HasPrefix(query, "SELECT") {
		_, err := stmt.ExecContext(holding(5))
		return err
	}
	rows, err := stmt.QueryContext(holding(5))
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

// otherwise holds statements that write the books under one sql_mode, and the pens under another.
var otherwise = []string{
	`UPDATE (SELECT '\' AS a) q, books pens /*' AS a) q, pens /* */ SET pens.price = 9`,
	`UPDATE (SELECT '\' AS a) q, pens /*' AS a) q, books pens /* */ SET pens.price = 9`,
}

// A statement is read by the settings at its execution. Some servers execute a comment that has changed them, or the
// statement was prepared under other settings, without a guard.
func TestStatementsAreReadByTheSettingsTheyAreExecutedIn(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	for _, query := range otherwise {
		for _, modes := range [][2]int{{0, 1 << 20}, {1 << 20, 0}} { // NO_BACKSLASH_ESCAPES
			for _, change := range []string{"SET sql_mode = %d", "/*! SET sql_mode = %d, @a = */ (SELECT 1)"} {
				exec(t, plain, "REPLACE INTO books (id, title, fence_token) VALUES (1, 'kept', 9)")
				db := fence(t, dsn, sqlfence.RowFence("fence_token"))
				db.SetMaxOpenConns(1)
				exec(t, db, fmt.Sprintf("SET sql_mode = %d", modes[0]))
				stmt, err := db.PrepareContext(sqlfence.Bypass(holding(5), "test"), query)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = db.ExecContext(holding(5), query) // now the connection knows its settings
				exec(t, db, fmt.Sprintf(change, modes[1]))
				_, prepared := stmt.ExecContext(holding(5))
				_, sent := db.ExecContext(holding(5), query)
				var price int
				err = plain.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price)
				if err != nil || price != 0 {
					t.Errorf("%s %d: %s: a stale write lands: %v, %v, %v", change, modes[1], query, prepared, sent, err)
				}
			}
		}
	}
}

// In an encoding of several bytes a value may have a first byte before a character that ends a string. sqlfence doesn't
// refuse it: it reads the text in the connection's encoding, and the driver doesn't write an argument into the text. No
// stale write succeeds by such a text.
func TestNoValueIsRefusedInAnEncodingThatSplitsBytes(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books MODIFY title varbinary(40)")
	exec(t, plain, "INSERT INTO books (id, fence_token) VALUES (1, 4), (2, 4)")
	for _, charset := range charsets(t, plain) {
		if !slices.Contains([]string{"gbk", "gb18030", "big5", "sjis", "cp932"}, charset) {
			continue
		}
		for _, sqlMode := range []string{"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"} {
			cfg, _ := mysql.ParseDSN(dsn)
			cfg.InterpolateParams, cfg.MultiStatements = true, true
			cfg.Params = map[string]string{"sql_mode": "'" + sqlMode + "'", "character_set_connection": "binary"}
			if err := cfg.Apply(mysql.Charset(charset, "")); err != nil {
				t.Fatal(err)
			}
			split := splitting{db: fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token")), plain: plain}
			cfg.MultiStatements = false
			split.bare = open(t, cfg.FormatDSN())
			for lead := 0x80; lead < 0x100; lead++ {
				if testing.Short() && rand.IntN(8) > 0 {
					continue
				}
				for _, next := range []string{"", "'", `\`, `\\`, `\'`, "''", `"`, "`", `\n`, "a'", "\x81'", "\xa1\\"} {
					if err := split.check(string([]byte{byte(lead)}) + next); err != nil {
						t.Fatalf("%s, %s: %v", charset, sqlMode, err)
					}
				}
			}
			_, _ = split.db.Close(), split.bare.Close()
		}
	}
}

// A splitting has connections with an encoding in which a character's last byte may be ASCII.
type splitting struct{ db, bare, plain *sql.DB }

// check writes a value as an argument, as a constant, if the server reads it as one, and in texts whose strings may end
// earlier or later.
func (s splitting) check(value string) error {
	argument := value + "; DELETE FROM books -- "
	_, err := s.db.ExecContext(holding(5), "UPDATE books SET title = ? WHERE id = 1", argument)
	var stored, found string
	if e := s.plain.QueryRow("SELECT title FROM books WHERE id = 1").Scan(&stored); err != nil || e != nil || stored != argument {
		return fmt.Errorf("argument %q: stored %q, %w", argument, stored, errors.Join(err, e))
	}
	constant := "'" + value + "'"
	if s.bare.QueryRow("SELECT "+constant).Scan(&stored) == nil {
		_, err := s.db.ExecContext(holding(5), "UPDATE books SET title = "+constant+" WHERE id = 1")
		if err == nil {
			err = s.db.QueryRow("SELECT " + constant + " FROM books WHERE id = 1 AND title = " + constant).Scan(&found)
		}
		if err != nil || found != stored {
			return fmt.Errorf("constant %q: found %q, want %q: %w", constant, found, stored, err)
		}
	}
	for _, text := range []string{
		"UPDATE books SET title = '" + argument + "' WHERE id = 1 -- '\n",
		"UPDATE books SET title = '" + argument + "', price = 1 WHERE id = 1 OR '' <> ' -- ' AND id = 1",
		"SELECT '" + argument + "' FROM books",
	} {
		_, err := s.db.ExecContext(holding(3), text)
		if landed := s.unwritten(); landed != nil {
			return fmt.Errorf("%q: %w, %w", text, landed, err)
		}
	}
	return nil
}

// unwritten returns an error if a stale write has succeeded.
func (s splitting) unwritten() error {
	var rows int
	err := s.plain.QueryRow("SELECT COUNT(*) FROM books WHERE fence_token >= 4 AND price = 0").Scan(&rows)
	if err == nil && rows != 2 {
		err = errors.New("a stale write lands")
	}
	return err
}

// A new connection may use an encoding in which a backslash is the second byte of a character. A statement on an
// unregistered table, or its argument, may then contain a write to a registered table, so sqlfence queries the encoding
// before such a statement.
func TestEncodingsAreKnownBeforeTheFirstGuardedWrite(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "INSERT INTO books (id, fence_token) VALUES (1, 4), (2, 4)")
	cfg, _ := mysql.ParseDSN(dsn)
	cfg.InterpolateParams, cfg.MultiStatements = true, true
	if err := cfg.Apply(mysql.Charset("gbk", "")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		query string
		args  []any
	}{
		{"UPDATE pens SET price = 1 WHERE id = ?", []any{"\xbf' OR 1; UPDATE books SET price = 1 -- "}},
		{"UPDATE pens SET price = 1 WHERE id = ?", []any{[]byte("\xbf\" OR 1; UPDATE books SET price = 1 -- ' OR 1; UPDATE books SET price = 1 -- ")}},
		{"SELECT '\xbf\\', ' ? '", []any{"; UPDATE books SET price = 1 -- "}},
		{"SELECT 1 AS `中`, 2 AS `; UPDATE books SET price = 1 -- `", nil},
		{"UPDATE pens AS `中`, ` , books AS b SET b.price = 1 -- ` SET price = 1", nil},
		{"SELECT 1 AS 中`, 2 AS `; UPDATE books SET price = 1 -- `", nil},
		{`SELECT 'é\', '; UPDATE books SET price = 1 -- '`, nil},
	} {
		db := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"))
		_, err := db.ExecContext(holding(3), tt.query, tt.args...)
		if landed := (splitting{plain: plain}).unwritten(); landed != nil {
			t.Errorf("%s, %q: %v, %v", tt.query, tt.args, landed, err)
			exec(t, plain, "UPDATE books SET price = 0")
		}
		_ = db.Close()
	}
}

// In the encoding a backslash may be a part of a character. If a text depends on this, it is refused, and the error
// names the setting.
func TestReadingsOfUnknownEncodingsAreRefusedByName(t *testing.T) {
	dsn := setup(t)
	exec(t, open(t, dsn), "REPLACE INTO books (id, title, fence_token) VALUES (1, 'kept', 4)")
	cfg, _ := mysql.ParseDSN(dsn)
	if err := cfg.Apply(mysql.Charset("swe7", "")); err != nil {
		t.Fatal(err)
	}
	db := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"))
	reads := func(query string) error {
		var v sql.NullString
		return db.QueryRowContext(context.Background(), query).Scan(&v)
	}
	if err := reads(`SELECT 'é\\x' FROM books`); err != nil {
		t.Error(err)
	}
	err := reads(`SELECT 'é\' FROM books -- '`)
	if !errors.Is(err, sqlfence.ErrUnguardable) || !strings.Contains(err.Error(), "character_set_client") {
		t.Error(err)
	}
}
