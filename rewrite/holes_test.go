package rewrite

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// TestHolesAreRefusedOrGuarded has statements that must not pass, or must not get a wrong guard.
func TestHolesAreRefusedOrGuarded(t *testing.T) {
	for _, tt := range []struct {
		d          databases.Dialect
		rules, sql string
	}{
		// The name of an option may be quoted.
		{databases.Postgres, "row", `EXPLAIN ("analyze") DELETE FROM books WHERE id = 1`},
		{databases.Postgres, "row", `EXPLAIN (U&"\0061nalyze", verbose) DELETE FROM books WHERE id = 1`},
		// Here key is an ordinary name, and the UPDATE isn't a label.
		{databases.Postgres, "row", `WITH RECURSIVE t(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM t WHERE id<2) SEARCH DEPTH FIRST BY id SET key DELETE FROM books WHERE id = 2`},
		{databases.Postgres, "row", `WITH RECURSIVE t(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM t WHERE id<2) CYCLE id SET c USING key UPDATE books SET price = 77`},
		{databases.Postgres, "row", `WITH RECURSIVE t(id) AS (SELECT 1) CYCLE id SET c USING key INSERT INTO books (id) SELECT id FROM t`},
		// Names spelled with an escape of the writer's choice, of the key column.
		{databases.Postgres, "key", `UPDATE books SET U&"!0069d" UESCAPE '!' = 7 WHERE id = 1`},
		// rowid, oid and _rowid_ are names of an INTEGER PRIMARY KEY.
		{databases.SQLite, "key", `UPDATE books SET rowid = 7 WHERE id = 1`},
		{databases.SQLite, "key", `UPDATE books SET (price, _ROWID_) = (1, 7) WHERE id = 1`},
		{databases.SQLite, "key", `INSERT INTO books (id, oid, price) VALUES (42, 7, 1)`},
		{databases.SQLite, "key", `INSERT INTO books (id) VALUES (42) ON CONFLICT (id) DO UPDATE SET "rowid" = 7`},
		// TiDB allows these words after every verb; the name after the words is the table's.
		{databases.MySQL, "row", `UPDATE HIGH_PRIORITY books SET price = 1`},
		{databases.MySQL, "row", `UPDATE delayed IGNORE books b SET b.price = 1`},
		{databases.MySQL, "row", `DELETE HIGH_PRIORITY FROM books`},
		{databases.MySQL, "row", `DELETE DELAYED QUICK books FROM books JOIN pens ON pens.id = books.id`},
		{databases.MySQL, "row", `REPLACE HIGH_PRIORITY books (id, price) VALUES (1, 2)`},
		// The text doesn't show the statements that TiDB prepares, runs or writes here.
		{databases.MySQL, "row", `SET SESSION_STATES '{"prepared-stmts": {"1": {"name": "p", "text": "UPDATE bo\u006fks SET price = 1"}}}'`},
		{databases.MySQL, "row", `PLAN REPLAYER DUMP EXPLAIN ANALYZE 'file'`},
		{databases.MySQL, "row", `PLAN REPLAYER DUMP WITH STATS AS OF TIMESTAMP '2024-01-31' EXPLAIN ANALYZE SLOW QUERY LIMIT 1`},
		{databases.MySQL, "row", `FLASHBACK CLUSTER TO TIMESTAMP '2024-01-31'`},
		{databases.MySQL, "row", `FLASHBACK DATABASE shop TO TSO 1`},
	} {
		s := sample{sql: tt.sql}
		p := s.plan(t, tt.d, tt.rules)
		if p.Verdict == guard.Pass || p.Verdict == guard.Guard && (tt.rules == "key" || !strings.Contains(standard(t, p), "fence_token")) {
			t.Errorf("%v, %s: %v", tt.d, tt.sql, p.Verdict)
		}
	}
}

// TestValueThatIsNotTheKey has assigned values that look like the key's column, but would change the row's key.
func TestValueThatIsNotTheKey(t *testing.T) {
	for _, tt := range []struct {
		d        databases.Dialect
		key, set string
		keeps    bool
	}{
		{databases.Postgres, "isbn", "isbn = isbn", true},
		{databases.Postgres, "isbn", `"isbn" = "isbn"`, true},
		{databases.Postgres, "isbn", `isbn = "isbn"`, true},
		{databases.Postgres, "user", `"user" = "user"`, true},
		{databases.Postgres, "user", `"user" = books.user`, true},
		{databases.Postgres, "user", `"user" = user`, false},
		{databases.Postgres, "user", `U&"us\0065r" = USER`, false},
		{databases.Postgres, "null", `"null" = null`, false},
		{databases.Postgres, "default", `"default" = DEFAULT`, false},
		{databases.Postgres, "current_user", `"current_user" = current_user`, false},
		{databases.SQLite, "isbn", "isbn = isbn", true},
		{databases.SQLite, "isbn", "'isbn' = [isbn]", true},
		{databases.SQLite, "isbn", "isbn = 'books'.'isbn'", true},
		{databases.SQLite, "isbn", "'isbn' = isbn", false},
		{databases.SQLite, "null", `"null" = null`, false},
		{databases.SQLite, "current_date", "current_date = current_date", false},
		{databases.SQLite, "current_date", "current_date = \"current_date\"", true},
	} {
		for _, table := range []Table{{Name: "books", FenceColumn: "fence_token", Key: tt.key}, {Name: "books", Ledger: true, Key: tt.key}} {
			for _, sql := range []string{"UPDATE books SET " + tt.set, "INSERT INTO books (price) VALUES (1) ON CONFLICT (price) DO UPDATE SET " + tt.set} {
				table.UnfencedInserts = true
				r, err := New(tt.d, []Table{table})
				if err != nil {
					t.Fatal(err)
				}
				if p := r.Plan(sql); (p.Verdict == guard.Guard) != tt.keeps {
					t.Errorf("%v, %s: %v, %s", tt.d, sql, p.Verdict, p.Refusal.Reason)
				}
			}
		}
	}
	// A text is a key like any other.
	r, err := New(databases.SQLite, []Table{{Name: "books", FenceColumn: "fence_token", Key: "isbn"}})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Plan("UPDATE books SET isbn = 'isbn'")
	if p.Verdict != guard.Guard || !p.Targets[0].AssignsKey || len(p.Targets[0].NewKeys) != 1 || p.Targets[0].NewKeys[0].Text != "isbn" {
		t.Errorf("%v, %+v", p.Verdict, p.Targets)
	}
}

// TestLedgerItemIsNotShadowed nests a WITH item with the name of the item that the guard's raises query. If they
// queried the nested item and its value were false, no raise would throw an error.
func TestLedgerItemIsNotShadowed(t *testing.T) {
	for _, rules := range []string{"lockall", "lockkey", "serialboth", "ledger"} {
		for _, name := range []string{"sqlfence_newest_0", "SQLfence_Newest_0", `"sqlfence_newest_0"`, `U&"sqlfence\005fnewest_0"`, "sqlfence_newest_1 (newest)"} {
			for _, with := range []string{
				"WITH x AS (WITH a AS (SELECT 1), b AS (SELECT 2), %s AS (SELECT false AS newest) UPDATE books SET serial = 8 WHERE id = 1) SELECT 1",
				"WITH x AS (WITH %s AS (SELECT false AS newest) DELETE FROM books WHERE id = 1) SELECT 1",
				"WITH RECURSIVE %s AS (SELECT false AS newest) UPDATE books SET price = 8 WHERE id = 1",
				"EXPLAIN ANALYZE WITH x AS (WITH %s AS MATERIALIZED (SELECT false AS newest) INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 8) SELECT 1",
			} {
				s := sample{sql: strings.Replace(with, "%s", name, 1)}
				if p := s.plan(t, databases.Postgres, rules); p.Verdict != guard.Refuse {
					t.Errorf("%s: %s: %v", rules, s.sql, p.Verdict)
				}
			}
		}
	}
}

// TestForgedMark has texts in which a label looks like a part of a longer keyword. If the parser took it for one, it
// would insert the guard's value after the list that the value belongs into. Then the database would store the
// application's value as the token.
func TestForgedMark(t *testing.T) {
	for _, tt := range []struct {
		d   databases.Dialect
		sql string
	}{
		{databases.Postgres, "INSERT INTO books (id, price) SELECT $1::bigint, 666, 5 AS within GROUP BY 1"},
		{databases.SQLite, "INSERT INTO books (id, price) SELECT ?, 666, 5 within GROUP BY 1"},
		{databases.Postgres, "INSERT INTO books (id, price) SELECT 7, 666, within.is distinct FROM src within GROUP BY 1, 2, 3"},
		{databases.Postgres, "INSERT INTO books (id, price) SELECT 7, 666, within.not distinct FROM src within"},
	} {
		s := sample{sql: tt.sql}
		p := s.plan(t, tt.d, "row")
		if p.Verdict != guard.Guard {
			continue
		}
		got := standard(t, p)
		list := strings.FieldsFunc(got, func(r rune) bool { return r == '?' || r == '$' })
		behind := list[len(list)-1]
		if !strings.Contains(behind, "FROM src") && !strings.Contains(behind, "GROUP BY 1") {
			t.Errorf("the mark is not the last of the columns: %s", got)
		}
	}
}

// TestEncodingStays: a change of encoding is refused, because later texts could have two meanings.
func TestEncodingStays(t *testing.T) {
	for sql, want := range map[string]guard.Verdict{
		"SET client_encoding = 'GBK'":                                guard.Refuse,
		"set session names 'BIG5'":                                   guard.Refuse,
		"SELECT set_config('client_encoding', 'GBK', false)":         guard.Refuse,
		"SELECT 1; SET NAMES 'SJIS'":                                 guard.Refuse,
		"ALTER ROLE me SET client_encoding = 'GBK'":                  guard.Refuse,
		`SET "client_encoding" = 'GBK'`:                              guard.Refuse,
		"SELECT set_config('client_encoding', 'GBK', false) AS utf8": guard.Refuse,
		"SELECT E'万\\'; UPDATE books SET price = 666; --'":           guard.Refuse,
		"SELECT E'é\\'; UPDATE books SET price = 666; --'":           guard.Refuse,
		"UPDATE books SET title = E'万 \\n' WHERE id = 1":             guard.Guard,
		"UPDATE books SET title = '万' WHERE tags[1] = 'é'":           guard.Guard,
		"UPDATE books SET 列[1] = 2":                                  guard.Refuse,
		"SET NAMES 'UTF8'":                                           guard.Pass,
		"SET client_encoding TO utf8":                                guard.Pass,
		"SHOW client_encoding":                                       guard.Pass,
		"SELECT names FROM people":                                   guard.Pass,
		"UPDATE people SET names = 'x'":                              guard.Pass,
		"SET/**/NAMES'SJIS'":                                         guard.Refuse,
		`UPDATE people SET filenames = 'C:\\'`:                       guard.Pass,
	} {
		s := sample{sql: sql}
		if p := s.plan(t, databases.Postgres, "row"); p.Verdict != want {
			t.Errorf("%s: %v, want %v", sql, p.Verdict, want)
		}
	}
}

// TestMergedKeys: the arms of a MERGE share one target, and so do their rows.
func TestMergedKeys(t *testing.T) {
	s := sample{sql: "MERGE INTO books b USING other o ON b.id = o.id " +
		"WHEN NOT MATCHED AND o.id = 1 THEN INSERT (id, price) VALUES (1, 5) WHEN NOT MATCHED THEN INSERT (id, price) VALUES (2, 50)"}
	p := s.plan(t, databases.Postgres, "key")
	sql := renderedOf(t, p, Values{Tables: []TableValues{{Tokens: []Token{{Key: "1", Value: 5}, {Key: "2", Value: 50}}, Rows: []int{0, 1}}}, Literal: true}).SQL
	for _, want := range []string{"VALUES (1, 5, 5)", "VALUES (2, 50, 50)"} {
		if !strings.Contains(sql, want) {
			t.Errorf("want %s in %s", want, sql)
		}
	}
}

// TestSurrogatesAreReadAsOneCharacter: PostgreSQL reads two escapes \XXXX of surrogates as one character.
func TestSurrogatesAreReadAsOneCharacter(t *testing.T) {
	if _, name, err := lang.ParseName(databases.Postgres, `U&"\D83D\DE00"`); err != nil || name != "😀" {
		t.Errorf("got %q, %v", name, err)
	}
}

// TestMarkBeforeReturning: PostgreSQL reads a column named as after a dot as a name, so the RETURNING after it is a
// keyword. The guard must assign the stored token before RETURNING.
func TestMarkBeforeReturning(t *testing.T) {
	for _, sql := range []string{
		`UPDATE books b SET price = b.as RETURNING id`,
		`INSERT INTO books (id, price) VALUES (9, 9) ON CONFLICT (id) DO UPDATE SET price = excluded.as RETURNING id`,
	} {
		s := sample{sql: sql}
		p := s.plan(t, databases.Postgres, "row")
		if p.Verdict == guard.Refuse {
			continue
		}
		if got := standard(t, p); strings.LastIndex(got, `"fence_token"`) > strings.Index(got, "RETURNING") {
			t.Errorf("the mark is returned, not assigned: %s", got)
		}
	}
}

// TestSelectListEndsAtKeyword: fetch, offset, for and window are names in SQLite
// where they can't be keywords. The mark must be the last column.
func TestSelectListEndsAtKeyword(t *testing.T) {
	for _, w := range []string{"fetch", "offset", "for", "window"} {
		s := sample{sql: "INSERT INTO books (id, price) SELECT 7 " + w + ", 3 FROM old"}
		p := s.plan(t, databases.SQLite, "row")
		if p.Verdict == guard.Guard && !strings.Contains(standard(t, p), w+", 3, ?1 FROM") {
			t.Errorf("the mark goes to another column: %s", standard(t, p))
		}
	}
}

// TestCutShort has texts that end where another token is expected.
func TestCutShort(t *testing.T) {
	for _, tt := range []struct {
		d   databases.Dialect
		sql string
	}{
		{databases.Postgres, "INSERT INTO books (id) OVERRIDING"},
		{databases.Postgres, "INSERT INTO books (id) OVERRIDING USER"},
		{databases.Postgres, "INSERT INTO books (id) VALUES (1) ON CONFLICT ON CONSTRAINT"},
		{databases.SQLite, "UPDATE OR -- books"},
		{databases.SQLite, "INSERT OR /* books */"},
		{databases.SQLite, "UPDATE books INDEXED BY"},
		{databases.SQLite, "DELETE FROM books INDEXED BY"},
	} {
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: %v", tt.sql, r)
				}
			}()
			for _, rules := range rulesetsOf(t, tt.d) {
				s := sample{sql: tt.sql}
				s.plan(t, tt.d, rules)
			}
		}()
	}
}

// TestGluedWordsAreKeptApart: inserted text must not join an adjacent word of the statement.
func TestGluedWordsAreKeptApart(t *testing.T) {
	for _, tt := range []struct{ rules, sql string }{
		{"row", "UPDATE books SET price=(1)WHERE id=4"},
		{"row", "UPDATE books SET title='x'WHERE id=4"},
		{"row", "UPDATE books SET title='x'RETURNING id"},
		{"row", "UPDATE books SET title='x'FROM prices"},
		{"row", "DELETE FROM books WHERE(id=4)"},
		{"row", `DELETE FROM books WHERE"id"=4`},
		{"row", `DELETE FROM"books"RETURNING id`},
		{"row", `INSERT INTO books (title) SELECT 'x'FROM old`},
		{"row", `INSERT INTO books (title) SELECT(1)FROM old`},
		{"literal", `INSERT INTO books (title) SELECT 'x'FROM old`},
		{"row", `DELETE FROM books WHERE(f(id))RETURNING id`},
		{"row", `INSERT INTO books(id)VALUES(1)RETURNING id`},
	} {
		for _, d := range guardedDialects(t) {
			s := sample{sql: tt.sql}
			p := s.plan(t, d, tt.rules)
			if d == databases.MySQL && (strings.Contains(tt.sql, "FROM prices") || strings.Contains(tt.sql, "SELECT 'x'")) {
				continue // MySQL's UPDATE has no FROM, and its INSERT is guarded in another way
			}
			if p.Verdict != guard.Guard {
				t.Errorf("%v, %s: %v", d, tt.sql, p.Verdict)
				continue
			}
			sql := renderedOf(t, p, valuesOf(p, tt.rules)).SQL
			own, n := tokenTexts(t, d, tt.sql), 0
			for _, word := range []string{"VALUES", "(", ")"} { // which go into comments on purpose
				sql = strings.ReplaceAll(sql, "/*"+word+"*/", word)
			}
			for _, text := range tokenTexts(t, d, sql) {
				if n < len(own) && text == own[n] {
					n++
				}
			}
			if n < len(own) {
				t.Errorf("%v: %q is lost in %s", d, own[n], sql)
			}
			if strings.Contains(sql, "bigintFROM") || strings.Contains(sql, "7FROM") || strings.Contains(sql, "1RETURNING") {
				t.Errorf("%v: grown together: %s", d, sql)
			}
		}
	}
}

// TestRepeatedParts: if a guard repeats a part of a condition, the part must be complete.
func TestRepeatedParts(t *testing.T) {
	for _, tt := range []struct {
		d         databases.Dialect
		sql, want string
	}{
		{databases.Postgres, "DELETE FROM books b WHERE b.and = 1 AND f(x)", "(b.and = 1)"},
		{databases.Postgres, "DELETE FROM books b WHERE b.end = 1 AND CASE WHEN f(x) AND y THEN true END", "(b.end = 1)"},
		{databases.SQLite, "DELETE FROM books WHERE end = 1 AND CASE WHEN f(x) AND y THEN 1 END", "(end = 1)"},
	} {
		s := sample{sql: tt.sql}
		sql := standard(t, s.plan(t, tt.d, "row"))
		_, repeated, ok := strings.Cut(sql, " END AND ")
		if strings.Contains(repeated, "(b.)") || strings.Contains(repeated, "THEN 1 END)") || strings.Contains(repeated, "THEN true END)") {
			t.Errorf("%v: repeated in pieces (want at most %s): %v %s", tt.d, tt.want, ok, sql)
		}
	}
}

// TestAssignmentIsNotRepeatedInPieces: the value that a condition assigns to a variable extends past AND, so the parts
// between the ANDs aren't conditions.
func TestAssignmentIsNotRepeatedInPieces(t *testing.T) {
	for _, condition := range []string{"NOT @a := 0 AND id = 1", "0 = @a := 0 AND id = 1", "price > 1 AND NOT @a := 0 AND id = 1"} {
		for _, sql := range []string{"DELETE FROM books WHERE " + condition,
			"DELETE books FROM books JOIN pens ON " + condition} {
			s := sample{sql: sql}
			guarded := standard(t, s.plan(t, databases.MySQL, "row"))
			if n := strings.Count(guarded, "id = 1"); n != 1 {
				t.Errorf("%s: id = 1 occurs %d times in %s", sql, n, guarded)
			}
		}
	}
}

// A condition in a CASE isn't one of the WHERE's conditions, whatever operator precedes the CASE, so the guard doesn't
// repeat it. The operators are those of pg_operator, and some that an application may create.
func TestCaseBehindOperators(t *testing.T) {
	for _, op := range strings.Fields(`!~ !~* !~~ !~~* # ## #- #> #>> % & && &&& &< &<| &> * *<= *<> *= *> *>= + - -> ->> -|- / < <-> << <<= <<|
		<= <> <@ <^ = > >= >> >>= >^ ? ?# ?& ?- ?-| ?| ?|| @ @> @? @@ @@@ @-@ ^ ^@ | |&> |/ |>> || ||/ ~ ~* ~< ~<=~ ~<~ ~= ~> ~>=~ ~>~ ~~ ~~*
		<#> <=> =* <->* !* OPERATOR(pg_catalog.=) OPERATOR(pg_catalog.~*)`) {
		s := sample{sql: "DELETE FROM books WHERE a " + op + " CASE WHEN f(x) AND price = 1 AND f(y) THEN b ELSE c END"}
		switch p := s.plan(t, databases.Postgres, "row"); {
		case p.Verdict != guard.Guard:
			t.Errorf("%s: %s", op, p.Refusal.Reason)
		case strings.Count(standard(t, p), "price = 1") > 1:
			t.Errorf("%s: a part of the CASE is repeated: %s", op, standard(t, p))
		}
		s.sql = "MERGE INTO books USING s ON true WHEN MATCHED AND a " + op + " CASE WHEN true THEN b END THEN DELETE"
		if p := s.plan(t, databases.Postgres, "row"); p.Verdict != guard.Guard {
			t.Errorf("%s in a MERGE: %s", op, p.Refusal.Reason)
		}
	}
}

// The WITH in a type with a time zone and the WITH after IS JSON begin no WITH clause.
func TestWithThatBeginsNoClause(t *testing.T) {
	for _, condition := range []string{
		"CASE WHEN a::timestamp with time zone < now() THEN true ELSE false END",
		"CASE WHEN a = time with time zone '12:00' THEN true END",
		"(CASE WHEN x THEN a ELSE b::timestamp(3) with time zone END < now())",
		"(CASE WHEN x THEN a ELSE b::timestamp without time zone END < now())",
		"CASE WHEN a IS JSON OBJECT WITH UNIQUE KEYS THEN true END",
		"CASE WHEN a AT TIME ZONE CASE WHEN x THEN 'UTC' ELSE 'CET' END < now() THEN true END",
	} {
		for _, sql := range []string{"DELETE FROM books WHERE " + condition, "UPDATE books SET price = " + condition + " WHERE " + condition} {
			s := sample{sql: sql}
			if p := s.plan(t, databases.Postgres, "row"); p.Verdict != guard.Guard {
				t.Errorf("%s: %s", sql, p.Refusal.Reason)
			}
		}
	}
}

// TestValidStatements has valid statements that must be guarded or pass.
func TestValidStatements(t *testing.T) {
	// These were refused or rendered wrongly. Now they must be guarded or refused.
	s := sample{sql: "INSERT INTO books (id, price) SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a), 2 FROM old"}
	if p := s.plan(t, databases.Postgres, "row"); p.Verdict == guard.Guard && strings.Contains(standard(t, p), "WITHIN, ") {
		t.Errorf("the mark is inside of an aggregate: %s", standard(t, p))
	}
	s = sample{sql: "SELECT update, title FROM books"}
	if p := s.plan(t, databases.Postgres, "row"); p.Verdict != guard.Pass {
		t.Errorf("a read of a column called update: %v", p.Verdict)
	}
}

// TestValueThatIsTheTablesName: in SQLite a string may be a name, but not in a condition. The hidden column of a full-text
// table has the table's name.
func TestValueThatIsTheTablesName(t *testing.T) {
	for sql, want := range map[string]guard.Verdict{
		"DELETE FROM books WHERE title = 'books'":                     guard.Guard,
		"DELETE FROM books WHERE title IN ('pens', 'BOOKS') OR a = 1": guard.Guard,
		"DELETE FROM 'books' WHERE title LIKE 'books'":                guard.Guard,
		`DELETE FROM books WHERE "books" = 'x'`:                       guard.Refuse,
		"DELETE FROM books WHERE books = 'books'":                     guard.Refuse,
		"DELETE FROM books WHERE title = 'books' AND books MATCH 'x'": guard.Refuse,
	} {
		s := sample{sql: sql}
		if p := s.plan(t, databases.SQLite, "row"); p.Verdict != want {
			t.Errorf("%s: %v %s", sql, p.Verdict, p.Refusal.Reason)
		}
	}
}

// TestValueThatIsTheNameOfTheEncodingsSetting: a statement that reads the setting or stores its name doesn't change it.
func TestValueThatIsTheNameOfTheEncodingsSetting(t *testing.T) {
	for sql, want := range map[string]guard.Verdict{
		"SELECT current_setting('client_encoding')":                                     guard.Pass,
		"SELECT client_encoding FROM sessions":                                          guard.Pass,
		"UPDATE pens SET title = 'client_encoding'":                                     guard.Pass,
		"UPDATE books SET title = E'client_encoding'":                                   guard.Guard,
		"SELECT set_config('client_encoding', 'GBK', false)":                            guard.Refuse,
		`SELECT "set_config"('client_encoding', 'GBK', false)`:                          guard.Refuse,
		"UPDATE books SET title = set_config('client_encoding', 'GBK', false)":          guard.Refuse,
		"UPDATE pg_settings SET setting = 'GBK' WHERE name = 'client_encoding'":         guard.Refuse,
		"SELECT query_to_xml('SELECT 1', true, false, 'client_encoding')":               guard.Refuse,
		"SET client_encoding = 'GBK'":                                                   guard.Refuse,
		"SELECT 1; SET client_encoding = 'GBK'":                                         guard.Refuse,
		"ALTER ROLE app SET client_encoding = 'GBK'":                                    guard.Refuse,
		"DO $$ BEGIN PERFORM set_config('client_' || 'encoding', 'GBK', false); END $$": guard.Refuse,
	} {
		s := sample{sql: sql}
		if p := s.plan(t, databases.Postgres, "row"); p.Verdict != want {
			t.Errorf("%s: %v %s", sql, p.Verdict, p.Refusal.Reason)
		}
	}
}

// TestKeyOfSQLiteIsUnquoted: SQLite doubles the quotes in its text.
func TestKeyOfSQLiteIsUnquoted(t *testing.T) {
	if m, ok := reader(t, databases.SQLite).ReadMarker(errors.New(`bad JSON path: 'sqlfence:nonce:scope:0:O''Brien'`), nil); !ok || m.Key != "O'Brien" {
		t.Errorf("got %+v, %v", m, ok)
	}
}

// TestLocalisedScope: the closing quote of other languages' messages.
func TestLocalisedScope(t *testing.T) {
	if m, ok := reader(t, databases.Postgres).ReadMarker(errors.New(`FEHLER: ungültige Eingabesyntax für Typ bigint: »sqlfence:nonce:scope:0:43« (SQLSTATE 22P02)`), nil); !ok || m.Key != "43" {
		t.Errorf("got %+v, %v", m, ok)
	}
}

// TestCacheKeepsClone: a query may be part of a larger text. The plan's source must be a clone of the query, or the
// cache would keep the larger text in memory.
func TestCacheKeepsClone(t *testing.T) {
	r, _ := New(databases.Postgres, []Table{rulesets["row"].table})
	big := strings.Repeat("x", 1<<20) + "UPDATE books SET price = 1"
	query := big[1<<20:]
	p := r.Plan(query)
	if stringData(p.Source.Src) == stringData(query) {
		t.Error("the plan holds on to the caller's text")
	}
}

func stringData(s string) *byte { return unsafe.StringData(s) }
