package parsers

import "testing"

func TestSQLite(t *testing.T) {
	t.Parallel()
	t.Run("hazards", func(t *testing.T) { hazardsOf(t, newChecker(t, newSQLite(t)), sqliteHazards) })
	t.Run("generated", func(t *testing.T) { generated(t, newChecker(t, newSQLite(t)), sqliteGrammar, 20000) })
	t.Run("varied", func(t *testing.T) {
		blanks := []string{" ", "  ", "\n", "\t\r\n", " /* ; */ ", "/**/", " /* a /* ' */ ", " -- x ' \n", "--\r\n", "\f", " \uFEFF "}
		varied(t, newChecker(t, newSQLite(t)), sqliteGrammar, 4000, []variant{
			{"comments", respace(blanks...)},
			{"no blanks", glue},
			{"case", recase},
			{"quotes", requote([]string{"books", "orders", "other", "title", "price", "src", "b"},
				func(s string) string { return `"` + s + `"` },
				func(s string) string { return "[" + s + "]" },
				func(s string) string { return "`" + s + "`" })},
			{"alias", realias},
		})
	})
	t.Run("mutated", func(t *testing.T) { mutated(t, newChecker(t, newSQLite(t)), sqliteGrammar, 40000) })
}
