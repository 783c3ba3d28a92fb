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
		{opCheck, "UPDATE books SET a = 1 WHERE " + where, true},
		{opCheck, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) WHERE " + check + " DO UPDATE SET id = 1", false},
		{opCheck, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1 WHERE " + check, true},
		{opCheck, "MERGE INTO books USING s ON true WHEN MATCHED AND " + check + " THEN DELETE", true},
		{opCheck, "MERGE INTO books USING s ON " + check + " WHEN MATCHED THEN DELETE", false},

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
		{opLedger, "INSERT INTO books SELECT * FROM (SELECT 1 WHERE «ledger(1)»)", false},
	} {
		before, rest, _ := strings.Cut(tt.text, "«")
		inside, after, _ := strings.Cut(rest, "»")
		p := piece{&edit{op: tt.op, text: `"books"`}, int32(len(before)), int32(len(before) + len(inside))}
		if got, _ := look(Postgres, before+inside+after, []piece{p}); got != tt.want {
			t.Errorf("confirmed = %v, want %v: %s", got, tt.want, tt.text)
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
		for n := range p.writer.edits {
			if p.writer.edits[n].op != opMark {
				continue
			}
			right := p.writer.edits[n].at
			for _, tok := range toks[:len(toks)-1] {
				moved := *p
				moved.writer.edits = append([]edit(nil), p.writer.edits...)
				moved.writer.edits[n].at = tok.end
				order(moved.writer.edits, query)
				moved.writer.plan = &moved
				if ok := moved.renderUsual(); ok != (tok.end == right) {
					t.Errorf("the mark behind byte %d is confirmed: %v\n%s", tok.end, ok, moved.usual.SQL)
				}
			}
		}
	}
}
