package mysql_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// charsets returns the server's charsets.
func charsets(t *testing.T, db *sql.DB) (all []string) {
	t.Helper()
	rows, err := db.Query("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	return all
}

// In some encodings a backslash can be the second byte of a character. If a driver interpolates an argument, the
// argument can then end its string literal, and the rest would be read as a condition around the guard. No stale write
// may land in any encoding that a client can set.
func TestCharsetsThatSplitCharacters(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books MODIFY title varchar(40) CHARACTER SET utf8mb4")
	for _, charset := range charsets(t, plain) {
		cfg, _ := mysql.ParseDSN(dsn)
		cfg.InterpolateParams = true
		if err := cfg.Apply(mysql.Charset(charset, "")); err != nil {
			t.Fatal(err)
		}
		if bare := open(t, cfg.FormatDSN()); bare.Ping() != nil {
			continue // a client can't have this charset
		}
		db := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"))
		for lead := 0x80; lead < 0x100; lead++ {
			exec(t, plain, "REPLACE INTO books (id, title, fence_token) VALUES (1, 'kept', 9)")
			arg := string([]byte{byte(lead)}) + `') THEN TRUE END IS NULL OR TRUE -- `
			_, err := db.ExecContext(holding(5), "DELETE FROM books WHERE title = ?", arg)
			var left int
			if err := plain.QueryRow("SELECT COUNT(*) FROM books").Scan(&left); err != nil {
				t.Fatal(err)
			}
			if left != 1 {
				t.Errorf("%s: %q deletes the row", charset, arg)
			}
			if errors.Is(err, sqlfence.ErrUnguardable) {
				t.Fatalf("%s: %v", charset, err)
			}
		}
		if charset == "swe7" { // in swe7 the servers refuse any guard
			continue
		}
		// ASCII text is read alike in every encoding.
		exec(t, plain, "REPLACE INTO books (id, title, fence_token) VALUES (1, 'kept', 4)")
		if _, err := db.ExecContext(holding(5), "UPDATE books SET title = ? WHERE id = 1", `it's \ a`); err != nil {
			t.Fatalf("%s: %v", charset, err)
		}
		var title string
		if err := plain.QueryRow("SELECT title FROM books WHERE id = 1").Scan(&title); err != nil || title != `it's \ a` {
			t.Errorf("%s: %q, %v", charset, title, err)
		}
	}
}

// In these charsets a key or an editor's ID, which the guard adds as an argument, doesn't end its string, either.
func TestGuardsValuesInCharsetsThatSplitCharacters(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books MODIFY title varchar(200) CHARACTER SET utf8mb4, ADD editor varchar(200), ADD since bigint, ADD expiry bigint")
	cfg, _ := mysql.ParseDSN(dsn)
	cfg.InterpolateParams = true
	for _, charset := range []string{"utf8mb4", "gbk", "big5", "sjis", "cp932"} {
		if err := cfg.Apply(mysql.Charset(charset, "")); err != nil {
			t.Fatal(err)
		}
		keyed := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"), sqlfence.Key("title"))
		locked := fence(t, cfg.FormatDSN(), sqlfence.EditLock("editor", "since", "expiry"))
		for _, lead := range []string{"縗", "表", "é"} {
			exec(t, plain, "REPLACE INTO books (id, title, fence_token, editor, since, expiry) VALUES (1, 'kept', 9, 'other', 1, 9000000000000000)")
			for tail, db := range map[string]*sql.DB{
				`' OR TRUE THEN TRUE END THEN fence_token END, price = 99 WHERE id = 1 -- `: keyed,
				`' OR TRUE THEN editor END, price = 99 WHERE id = 1 -- `:                    locked,
			} {
				ctx := sqlfence.WithFence(sqlfence.WithEditor(t.Context(), lead+tail), sqlfence.Token{Name: "books/" + lead + tail, Value: 5})
				_, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", 2, 1)
				if db == keyed && !errors.Is(err, sqlfence.ErrOutOfScope) || db == locked && !errors.Is(err, sqlfence.ErrLocked) {
					t.Errorf("%s: %q: %v", charset, lead+tail, err)
				}
				var price int
				if err := plain.QueryRow("SELECT price FROM books").Scan(&price); err != nil || price != 0 {
					t.Fatalf("%s: %q: a stale write lands: %d, %v", charset, lead+tail, price, err)
				}
			}
			// The holder of the token for this key can write.
			exec(t, plain, "REPLACE INTO books (id, title, fence_token) VALUES (1, ?, 4)", lead+"'")
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + lead + "'", Value: 5})
			if _, err := keyed.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", 0, 1); err != nil {
				t.Errorf("%s: the key %q: %v", charset, lead+"'", err)
			}
		}
	}
}

// encodings are statements that change the connection's encoding, or try to.
var encodings = []string{
	"SET NAMES gbk", "SET NAMES 'gbk'", "SET NAMES `gbk`", "SET NAMES \"gbk\"", "SET names = 1, NAMES gbk", "SET NAMES gbk COLLATE gbk_bin", "SET NAMES DEFAULT",
	"SET CHARACTER SET gbk", "SET CHARSET gbk", "SET CHARACTER SET DEFAULT", "SET CHARACTER /**/ SET 'gbk'",
	"SET character_set_client = gbk", "SET SESSION character_set_client = gbk", "SET LOCAL character_set_client := gbk", "SET @@character_set_client = gbk",
	"SET @@session.character_set_client = gbk", "SET @@session . character_set_client = gbk", "SET @@local.`character_set_client` = gbk", "SET @@`session`.`character_set_client` = gbk",
	"SET `session`.character_set_client = gbk", "SET SESSION `character_set_client` = 'gbk'", "SET character_set_client = 28", "SET character_set_client = 'g' 'bk'", "SET character_set_client = CONCAT('g', 'bk')",
	"SET character_set_client = (SELECT 'gbk')", "SET @a = 'gbk', character_set_client = @a", "SET CHARACTER_SET_CLIENT=gbk", "SET @a := 1 , @@character_set_client:=gbk",
	"SET sql_mode = '', NAMES gbk", "SET @a = 1, CHARACTER SET gbk", "SET @a = 1, CHARSET gbk", "SET NAMES utf8mb4, NAMES gbk", "SET NAMES utf8mb4, character_set_client = gbk",
	"SET character_set_client = DEFAULT", "SET character_set_client = @@character_set_filesystem", "SET @@character_set_client = @@global.character_set_client",
	"SET NAMES utf8mb4 COLLATE gbk_bin", "SET PERSIST_ONLY character_set_client = gbk",
	"/*!SET NAMES gbk*/", "/*!50000 SET NAMES gbk */", "SET /*! NAMES gbk */", "/*M!SET NAMES gbk*/", "SET/**/NAMES/**/gbk", "SET -- x\nNAMES gbk", "SET #\nNAMES gbk",
	"SET STATEMENT max_statement_time = 9 FOR SET NAMES gbk", "SET STATEMENT max_statement_time = 9 FOR SET character_set_client = gbk", "SET STATEMENT max_statement_time = 9 FOR SET CHARACTER SET gbk",
	"SET STATEMENT character_set_client = gbk FOR SELECT 1", "SET STATEMENT max_statement_time = 9, character_set_client = gbk FOR SET @a = 1",
	"BEGIN NOT ATOMIC SET NAMES gbk; END", "IF 1 THEN SET NAMES gbk; END IF", "BEGIN NOT ATOMIC IF 1 THEN SET character_set_client = gbk; END IF; END", "x: BEGIN NOT ATOMIC SET CHARSET gbk; END",
	"WHILE @@character_set_client <> 'gbk' DO SET NAMES gbk; END WHILE", "CASE 1 WHEN 1 THEN SET NAMES gbk; END CASE", "x: LOOP SET NAMES gbk; LEAVE x; END LOOP", "REPEAT SET NAMES gbk; UNTIL 1 END REPEAT",
	"FOR i IN 1..1 DO SET NAMES gbk; END FOR",
	"EXECUTE IMMEDIATE 'SET NAMES gbk'", "EXECUTE IMMEDIATE CONCAT('SET NA', 'MES gbk')", "PREPARE p FROM 'SET NAMES gbk'", "PREPARE p FROM @a", "CALL encode()",
	"ANALYZE SET NAMES gbk", "EXPLAIN SET NAMES gbk", "DO (SELECT @@character_set_client := 'gbk')", "SELECT @@character_set_client := 'gbk'", "SELECT 'gbk' INTO @@character_set_client",
	"SET ROLE NONE", "SET RESOURCE GROUP x", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "RESET SESSION", "SELECT /*+ SET_VAR(character_set_client = gbk) */ 1", "USE test",
	"SET @@session.sql_mode = 'ANSI_QUOTES', @@session.\"character_set_client\" = gbk", "SET SESSION \"character_set_client\" = gbk",
	"CREATE DATABASE IF NOT EXISTS sqlfence_gbk CHARACTER SET gbk", "USE sqlfence_gbk", "DROP DATABASE sqlfence_gbk",
}

// A statement gives the connection an encoding that splits characters. Later arguments don't end their strings.
func TestStatementsThatChangeTheCharset(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "CREATE PROCEDURE encode() SET NAMES gbk")
	exec(t, plain, "INSERT INTO books (id, fence_token) VALUES (1, 9)")
	cfg, _ := mysql.ParseDSN(dsn)
	cfg.InterpolateParams = true
	for _, sqlMode := range []string{"''", "'ANSI'", "'STRICT_ALL_TABLES'"} {
		cfg.Params = map[string]string{"sql_mode": sqlMode}
		changed := 0
		for _, query := range encodings {
			for _, prepared := range []bool{false, true} {
				db := fence(t, cfg.FormatDSN(), sqlfence.RowFence("fence_token"))
				db.SetMaxOpenConns(1)
				write := func() (rows int) {
					_, refused := db.ExecContext(holding(5), "DELETE FROM books WHERE title = ?", "\xbf') THEN TRUE END IS NULL OR TRUE -- ")
					err := plain.QueryRow("SELECT COUNT(*) FROM books").Scan(&rows)
					if err != nil || errors.Is(refused, sqlfence.ErrUnguardable) {
						t.Fatal(err, refused)
					}
					return rows
				}
				if write() == 0 {
					t.Fatal("before: a stale write lands")
				}
				if !prepared {
					_, _ = db.Exec(query)
				} else if stmt, err := db.Prepare(query); err == nil {
					_, _ = stmt.Exec()
				}
				var client string
				if err := db.QueryRow("SELECT @@character_set_client").Scan(&client); err != nil {
					t.Fatal(err)
				}
				if client == "gbk" {
					changed++
				}
				if write() == 0 {
					t.Fatalf("%s: %s: %s: a stale write lands", sqlMode, query, client)
				}
				_ = db.Close()
			}
		}
		if changed == 0 {
			t.Error("no statement changes the encoding")
		}
	}
}
