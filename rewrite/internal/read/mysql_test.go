package read

import (
	"fmt"
	"strings"
	"testing"
)

// If a setting may change an operator to OR, or if an expression assigns a variable, no part of it is evaluated twice.
func TestMySQLRepeatable(t *testing.T) {
	for in, want := range map[string]string{
		"id = ? AND f(x) AND b = 1":            "id = ? | b = 1",
		"f(x) AND a || b AND c":                "",
		"f(x) AND a XOR b AND c":               "",
		"f(x) AND @a = 1 AND b":                "b",
		"f(x) AND (@a := 1) = 1 AND b":         "b",
		"f(x) AND a->'$.b' = 1 AND c / 2 = 1":  "",
		"f(x) AND a = \"b\" AND `c` IN (1)":    "a = \"b\" | `c` IN (1)",
		"a || b":                               "a || b",
		"f(x) AND NOT a BETWEEN 1 AND 2 AND b": "NOT a BETWEEN 1 AND 2 | b",
	} {
		x := first(t, MySQL, "DELETE FROM t WHERE "+in)
		if got := x.pieces(x.Repeatable(x.Writes[0].Where.Range)); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestMySQLValues(t *testing.T) {
	for in, want := range map[string]string{
		"a = 1":                  "true 1 1 {0 1}",
		"b.a := ?":               "true ? ? {1 }",
		"c.b.a = 'x'":            "true 'x' 'x' {0 x}",
		"`A` = VALUES(b)":        "true VALUES(b) VALUES(b) excluded b",
		"a = VALUES(b, c)":       "true VALUES(b, c) VALUES(b, c)",
		"a = excluded.b":         "true excluded.b excluded.b",
		"a = CAST(? AS CHAR)":    "true CAST(? AS CHAR) CAST(? AS CHAR) {1 }",
		"a = CAST(? AS CHAR(2))": "true CAST(? AS CHAR(2)) CAST(? AS CHAR(2))",
		"a = \"x\"":              "true \"x\" \"x\"",
		"a = 0x1F":               "true 0x1F 0x1F",
		"a = 'x' 'y'":            "true 'x' 'y' 'x' 'y'",
		"a = @x":                 "true @x @x",
		"a :":                    "true  ",
		"a := ":                  "true  ",
		"a":                      "true  ",
		"a.b = 1":                "false 1 ",
	} {
		x := first(t, MySQL, "UPDATE t SET "+in)
		item := x.Writes[0].Set.Items[0]
		value, _ := x.Value(item, "a")
		plain := x.PlainValue(item)
		got := fmt.Sprintf("%v %s %s", x.Assigns(item, "a"), x.piece(plain), x.piece(value))
		if !x.Assigns(item, "a") {
			got = fmt.Sprintf("false %s ", x.piece(plain))
		}
		if c, ok := x.Constant(value); ok && x.Assigns(item, "a") {
			got += fmt.Sprintf(" {%d %s}", c.Ordinal, c.Text)
		}
		if column, ok := x.Excluded(value); ok {
			got += " excluded " + column
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// A SET that changes how later statements are read is found.
func TestMySQLChangesEncoding(t *testing.T) {
	for in, want := range map[string]string{
		"SET NAMES utf8mb4":                            "",
		"SET NAMES 'utf8' COLLATE utf8_bin, @a = 1":    "",
		"SET NAMES gbk":                                "NAMES",
		"SET NAMES DEFAULT":                            "NAMES",
		"SET NAMES":                                    "NAMES",
		"SET NAMES @a":                                 "NAMES",
		"SET @a = 1, NAMES sjis":                       "NAMES",
		"SET CHARACTER SET latin1":                     "",
		"SET CHARACTER SET big5":                       "CHARACTER",
		"SET CHARSET \"gb18030\"":                      "CHARSET",
		"SET character_set_client = utf8mb3":           "",
		"SET SESSION character_set_client := cp932":    "character_set_client",
		"SET @@character_set_client = binary, a = 1":   "",
		"SET @@session.`character_set_client` = 'gbk'": "`character_set_client`",
		"SET @a = @@character_set_client":              "",
		"SET character_set_client = @a":                "character_set_client",
		"SET character_set_client = utf8 + 1":          "character_set_client",
		"SET character_set_results = gbk":              "",
		"SET names = 1":                                "names",
		"SET a = names":                                "",
		"SELECT character_set_client":                  "",
	} {
		x := first(t, MySQL, in)
		got := ""
		if at := x.ChangesEncoding(); at >= 0 {
			got = x.TokenText(at)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// A name is also kept as it is spelled: with lower_case_table_names=0, two names that differ in case are two tables.
func TestMySQLSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"UPDATE Shop.Books AS `B` SET a = 1":   "Books `B`",
		"UPDATE Books SET a = 1":               "Books",
		"DELETE shop.Books FROM Shop.`BOOKS`":  "`BOOKS`",
		"DELETE FROM shop.books.* USING Books": "Books",
		"INSERT INTO Shop.Books VALUES (1)":    "Books",
	} {
		w := first(t, MySQL, in)
		target := w.Writes[0].Target
		got := w.TokenText(target.NameAt)
		if target.AliasAt > 0 {
			got += " " + w.TokenText(target.AliasAt)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// A join with more tables than the servers accept isn't parsed.
func TestMySQLManyTables(t *testing.T) {
	for n, want := range map[int]PartKind{maxTables: WritePart, maxTables + 1: UnreadablePart} {
		sql := "UPDATE books" + strings.Repeat(", pens", n-1) + " SET books.a = 1"
		if x := first(t, MySQL, sql); x.Parts[0].Kind != want {
			t.Errorf("%d tables: got %+v", n, x.Parts[0])
		}
	}
}

func TestMySQLDepth(t *testing.T) {
	deep := "UPDATE " + strings.Repeat("(", maxDepth+1) + "books" + strings.Repeat(")", maxDepth+1) + " SET a = 1"
	if x := first(t, MySQL, deep); x.Parts[0].Kind != UnreadablePart {
		t.Errorf("got %+v", x.Parts)
	}
}
