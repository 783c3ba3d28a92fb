package rewrite

import (
	"strings"
	"testing"
)

// The second look refuses a piece of the guard that stands elsewhere than where it
// guards, whatever the reader took it for. In the texts «» are around the piece.
func TestSecondLook(t *testing.T) {
	const (
		mark  = "«, fence = 7»"
		check = "«CASE WHEN fence <= 7 THEN true ELSE raise() END»"
		where = "CASE WHEN (id = 1) THEN " + check + " ELSE false END"
	)
	for _, tt := range []struct {
		op   op
		text string
		want bool
	}{
		{opMark, "UPDATE books SET price = 1" + mark, true},
		{opMark, "UPDATE books SET price = 1" + mark + " WHERE id = 1 RETURNING id", true},
		{opMark, "UPDATE books SET price = 1 WHERE id = 1 RETURNING id" + mark, false},
		{opMark, "UPDATE books SET price = @ case::int WHERE id = @ id RETURNING id" + mark, false},
		{opMark, "UPDATE books SET price = 1 WHERE id = 1" + mark, false},
		{opMark, "UPDATE books SET price = 1 FROM pens" + mark + " WHERE true", false},
		{opMark, "UPDATE books SET price = (SELECT 1" + mark + ")", false},
		{opMark, "UPDATE books SET price = CASE WHEN a THEN 1" + mark + " ELSE 2 END", false},
		{opMark, "UPDATE books SET price = CASE WHEN a THEN 1 ELSE 2 END" + mark, true},
		{opMark, "UPDATE books SET price = 1" + mark + " + 1", false},
		{opMark, "UPDATE books SET price = 1" + mark + ", id = 2", false},
		{opMark, "UPDATE books SET price =" + mark, false},
		{opMark, "UPDATE books SET price = 1 -- " + mark, false},
		{opMark, "UPDATE books SET price = 1 /* " + mark + " */", false},
		{opMark, "UPDATE books SET price = '" + mark + "'", false},
		{opMark, "UPDATE books SET price = $$" + mark + "$$", false},
		{opMark, "UPDATE books SET price = E'\\'" + mark + "'", false},
		{opMark, "UPDATE books SET price = 1" + mark[:len(mark)-len("»")] + " -- »\n", true},
		{opMark, "UPDATE books SET price = 1«, fence = (7», 8)", false},
		{opMark, "UPDATE books SET price = 1«, fence = (7»", false},
		{opMark, "UPDATE books SET price = 1«, fence = 7)(»", false},
		{opMark, "UPDATE books SET price = 1«, fence = 7»7", false},
		{opMark, "UPDATE books SET price = CASE WHEN a THEN 1" + mark, false},
		{opMark, "UPDATE pens SET price = 1" + mark, false},
		{opMark, "UPDATE pens AS books SET price = 1" + mark, true},
		{opMark, "UPDATE books AS b SET price = 1" + mark, false},
		{opMark, "UPDATE ONLY (books) SET price = 1" + mark, true},
		{opMark, "UPDATE pens SET price = 1; UPDATE books SET price = 1" + mark, true},
		{opMark, "UPDATE books SET price = 1; UPDATE pens SET price = 1" + mark, false},
		{opMark, "WITH a AS (UPDATE books SET price = 1) UPDATE pens SET price = 1" + mark, false},
		{opMark, "WITH a AS (UPDATE books SET price = 1" + mark + ") UPDATE pens SET price = 1", true},
		{opMark, "UPDATE books SET a = b IS DISTINCT FROM c" + mark, true},
		{opMark, "UPDATE books SET a = b.where" + mark, true},
		{opMark, "UPDATE books SET set = values" + mark, true},
		{opMark, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1" + mark + " WHERE true", true},
		{opMark, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1 RETURNING id" + mark, false},
		{opMark, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO NOTHING RETURNING id" + mark, false},
		{opMark, "MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET id = 1" + mark + " WHEN NOT MATCHED THEN DO NOTHING", true},
		{opMark, "MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET id = 1 WHEN NOT MATCHED THEN DO NOTHING" + mark, false},
		{opMark, "MERGE INTO books USING s ON true WHEN MATCHED THEN DELETE" + mark, false},
		{opMark, "SELECT 1" + mark, false},

		{opCheck, "DELETE FROM books WHERE " + where, true},
		{opCheck, "DELETE FROM books WHERE " + where + " AND (id = 1) RETURNING id", true},
		{opCheck, "DELETE FROM books WHERE " + check, true},
		{opCheck, "DELETE FROM books WHERE true RETURNING " + check, false},
		{opCheck, "DELETE FROM books WHERE true OR " + check, false},
		{opCheck, "DELETE FROM books WHERE id IN (SELECT id FROM books WHERE " + where + ")", false},
		{opCheck, "DELETE FROM pens WHERE " + where, false},
		{opCheck, "DELETE FROM books USING a JOIN b ON " + check, false},
		{opCheck, "DELETE FROM books WHERE fre«sh»", false},
		{opCheck, "DELETE FROM books WHERE CASE WHEN a THEN b WHEN (c) THEN " + check, false},
		{opCheck, "UPDATE books SET a = 1 WHERE " + where, true},
		{opCheck, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) WHERE " + check + " DO UPDATE SET id = 1", false},
		{opCheck, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1 WHERE " + check, true},
		{opCheck, "MERGE INTO books USING s ON true WHEN MATCHED AND " + check + " THEN DELETE", true},
		{opCheck, "MERGE INTO books USING s ON " + check + " WHEN MATCHED THEN DELETE", false},

		{opTokens, "UPDATE books SET a = 1 WHERE " + check, true},
		{opTokens, "UPDATE books SET a = 1 WHERE " + where + " RETURNING id", true},
		{opTokens, "MERGE INTO books USING s ON true WHEN NOT MATCHED BY SOURCE AND " + where + " THEN DELETE", true},
		{opTokens, "UPDATE books SET a = " + check + " WHERE true", false},
		{opTokens, "UPDATE pens SET a = 1 WHERE " + check, false},
		{opTokens, "UPDATE books SET a = 1 WHERE (" + check + ")", false},
		{opTokens, "UPDATE books SET a = 1 WHERE CASE WHEN a THEN " + check + " END", false},
		{opTokens, "UPDATE books SET a = 1 WHERE true AND " + check, false},
		{opTokens, "UPDATE books SET a = 1 WHERE true RETURNING " + check, false},
		{opTokens, "UPDATE books SET a = 1 WHERE «CASE WHEN (fence <= 7» THEN true END)", false},

		{opColumn, "INSERT INTO books (id«, fence») VALUES (1)", true},
		{opColumn, "INSERT INTO books (id«, fence», a) VALUES (1)", true}, // the serial may follow; a count that differs is an error
		{opColumn, "INSERT INTO books (id) VALUES (1«, fence»)", false},
		{opColumn, "INSERT INTO books (id) SELECT f(1«, fence»)", false},
		{opValue, "INSERT INTO books (id) VALUES (1«, 7»), (2)", true},
		{opValue, "INSERT INTO books (id) VALUES (f(1«, 7»))", false},
		{opValue, "INSERT INTO books (id) SELECT 1«, 7» FROM pens", true},
		{opValue, "INSERT INTO books (id) SELECT 1 FROM pens«, 7»", false},
		{opValue, "INSERT INTO books (id) SELECT 1 FROM pens RETURNING id«, 7»", false},
		{opValue, "SELECT 1«, 7»", false},
		{opStatements, "«WITH l AS (UPDATE fencing_tokens SET a = 1)» UPDATE books SET a = 1", true},
		{opStatements, "WITH RECURSIVE« l AS (UPDATE fencing_tokens SET a = 1),» x AS (SELECT 1) UPDATE books SET a = 1", true},
		{opStatements, "EXPLAIN (ANALYZE) «WITH l AS (UPDATE fencing_tokens SET a = 1)» UPDATE books SET a = 1", true},
		{opStatements, "UPDATE books SET a = 1 «WITH l AS (UPDATE fencing_tokens SET a = 1)»", false},
		{opStatements, "SELECT (SELECT 1 «WITH l AS (SELECT 1)»)", false},
		{opLedger, "UPDATE books SET a = 1 WHERE (b) AND «ledger(1)»", true},
		{opLedger, "UPDATE books SET a = 1 WHERE b OR c AND «ledger(1)»", false},
		{opLedger, "UPDATE books SET a = 1 RETURNING b AND «ledger(1)»", false},
		{opLedger, "INSERT INTO books SELECT * FROM (VALUES (1)) WHERE «ledger(1)»", true},
		{opGone, "INSERT INTO books (id) VALUES (1) «RETURNING id»", true},
		{opGone, "INSERT INTO books (id) VALUES (1) «RETURNING i»d", false},
		{opGone, "UPDATE books SET id = 1 «RETURNING id»", false},
		{opLedger, "INSERT INTO books SELECT * FROM (SELECT 1 WHERE «ledger(1)»)", false},
	} {
		before, rest, _ := strings.Cut(tt.text, "«")
		inside, after, _ := strings.Cut(rest, "»")
		p := piece{&edit{op: tt.op, text: `"books"`}, len(before), len(before) + len(inside)}
		if got := confirmed(Postgres, before+inside+after, []piece{p}); got != tt.want {
			t.Errorf("confirmed = %v, want %v: %s", got, tt.want, tt.text)
		}
	}
}

// A serial that the statement assigns has a piece before it and one behind it, in «»
// here. They are refused anywhere but around the whole of one assigned value.
func TestSecondLookAtAnAssignedSerial(t *testing.T) {
	const value = "«greatest((»$1«), serial)»"
	for text, want := range map[string]bool{
		"UPDATE books SET serial = " + value:                                                 true,
		"UPDATE books SET serial = " + value + ", a = 1 WHERE id = 1":                        true,
		"UPDATE books SET serial = " + value + " FROM pens":                                  true,
		"UPDATE books SET serial = «greatest((»(SELECT max(a) FROM pens)«), serial)»":        true,
		"UPDATE books SET serial = «greatest((»CASE WHEN a THEN 1 END«), serial)»":           true,
		"UPDATE books SET (a, serial) = (1, " + value + ")":                                  true,
		"UPDATE books SET (serial, a) = ROW(" + value + ", 1) WHERE id = 1":                  true,
		"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET serial = " + value: true,
		"MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET serial = " + value:    true,
		"UPDATE books SET a = 1 WHERE serial = " + value:                                     false,
		"UPDATE books SET a = 1 RETURNING serial = " + value:                                 false,
		"INSERT INTO books (serial) VALUES (" + value + ")":                                  false,
		"SELECT serial = " + value:                                                           false,
		"UPDATE pens SET serial = " + value:                                                  false,
		"WITH a AS (UPDATE books SET a = 1) UPDATE pens SET serial = " + value:               false,
		"UPDATE books SET a = 1; UPDATE pens SET serial = " + value:                          false,
		"UPDATE books SET a = 1 FROM (SELECT serial = " + value + ") AS s":                   false,
		"UPDATE books SET serial = f(" + value + ")":                                         false,
		"UPDATE books SET serial = (a = " + value + ")":                                      false,
		"UPDATE books SET serial = 1 + " + value:                                             false,
		"UPDATE books SET serial = " + value + " + 1":                                        false,
		"UPDATE books SET serial = " + value + "::int":                                       false,
		"UPDATE books SET serial = " + value + " OR true":                                    false,
		"UPDATE books SET serial = CASE WHEN a = " + value + " THEN 1 END":                   false,
		"UPDATE books SET serial = «greatest((»CASE WHEN a THEN 1«), serial)» END":           false,
		"UPDATE books SET serial = «greatest((»1) + (2«), serial)»":                          false,
		"UPDATE books SET serial = «greatest((»(1«), serial)»)":                              false,
		"UPDATE books SET serial = «greatest((»1)«), serial)»":                               false,
		"UPDATE books SET serial = «greatest((»1«), serial»)":                                false,
		"UPDATE books SET serial = «greatest »1«, serial»":                                   false,
		"UPDATE books SET serial = «greatest((»«greatest((»1«), serial)»«), serial)»":        false,
		"UPDATE books SET serial = «greatest((»1), serial)":                                  false,
		"UPDATE books SET serial = " + value + ", a = greatest((1«), serial)»":               false,
		"UPDATE books SET serial = greatest((1«), serial)»":                                  false,
		"UPDATE books SET serial = «greatest((»1 -- «), serial)»\n), serial)":                false,
	} {
		var pieces []piece
		rest, plain := text, ""
		for {
			before, after, ok := strings.Cut(rest, "«")
			if plain += before; !ok {
				break
			}
			inside, after, _ := strings.Cut(after, "»")
			op := opRaised
			if strings.Contains(inside, "serial") {
				op = opRaisedEnd
			}
			pieces = append(pieces, piece{&edit{op: op, text: `"books"`}, len(plain), len(plain) + len(inside)})
			plain, rest = plain+inside, after
		}
		if got := confirmed(Postgres, plain, pieces); got != want {
			t.Errorf("confirmed = %v, want %v: %s", got, want, text)
		}
	}
}

// Where the reader is wrong about the end of a part, the second look says so: here
// it ends each part at any place among the tokens instead of the right one.
func TestSecondLookFindsAWrongEnd(t *testing.T) {
	r := benchRewriter(t, Postgres)
	for _, query := range []string{
		"UPDATE books SET price = price + 1, title = 'a' FROM pens p WHERE p.id = books.id AND price > 1 RETURNING price, title",
		"INSERT INTO books (id, price) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET price = 3 WHERE books.id > 1 RETURNING id, price",
		"MERGE INTO books USING pens p ON p.id = books.id WHEN MATCHED AND price > 1 THEN UPDATE SET price = 2 WHEN NOT MATCHED THEN INSERT (id) VALUES (3)",
		"WITH a AS (SELECT 1 AS id) UPDATE books SET price = CASE WHEN a.id = 1 THEN 2 ELSE 3 END FROM a WHERE books.id = a.id",
	} {
		p := r.Plan(query)
		if p.Verdict != Guard {
			t.Fatalf("%v %v: %s", p.Verdict, p.Refusal, query)
		}
		toks, _ := lex(Postgres, query, nil)
		for n := range p.source.edits {
			if p.source.edits[n].op != opMark {
				continue
			}
			right := p.source.edits[n].at
			for _, tok := range toks[:len(toks)-1] {
				moved := *p
				moved.source.edits = append([]edit(nil), p.source.edits...)
				moved.source.edits[n].at = tok.end
				order(moved.source.edits, query)
				moved.source.plan = &moved
				if ok := moved.renderDefault(); ok != (tok.end == right) {
					t.Errorf("the mark behind byte %d is confirmed: %v\n%s", tok.end, ok, moved.form.SQL)
				}
			}
		}
	}
}

// A table may be called like a word that means something behind the verb.
func TestSecondLookAtTablesNamedLikeKeywords(t *testing.T) {
	named := map[Dialect]string{
		Postgres: "system value overriding indexed source target matched conflict by do set_ merge replace",
		SQLite:   "user system value overriding only indexed source target matched conflict by do merge replace key row end of",
	}
	for d, names := range named {
		for _, name := range strings.Fields(names) {
			r, err := New(d, []Table{{Name: name, FenceColumn: "fence", Ledger: true}})
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{
				"UPDATE % SET a = 1", "UPDATE % AS b SET a = 1 WHERE b.a = 2", "UPDATE public.% SET a = 1 RETURNING a",
				"DELETE FROM %", "DELETE FROM % WHERE a = 1 AND %.a = 2",
				"INSERT INTO % (a) VALUES (1)", "INSERT INTO % DEFAULT VALUES", "INSERT INTO public.% AS b (a) SELECT 1",
				"INSERT INTO % (a) VALUES (1), (2) ON CONFLICT (a) DO UPDATE SET a = excluded.a WHERE %.a > 1",
			} {
				query = strings.ReplaceAll(query, "%", name)
				if p := r.Plan(query); p.Verdict != Guard {
					t.Errorf("%v: %s: %v %s", d, query, p.Verdict, p.Refusal.Reason)
				}
			}
		}
	}
}
