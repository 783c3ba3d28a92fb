package parsers

import "testing"

func TestMySQL(t *testing.T) {
	t.Parallel()
	t.Run("hazards", func(t *testing.T) { hazardsOf(t, newChecker(t, newMySQL(t)), mysqlHazards) })
	t.Run("generated", func(t *testing.T) { generated(t, newChecker(t, newMySQL(t)), mysqlGrammar, 20000) })
	t.Run("varied", func(t *testing.T) {
		blanks := []string{" ", "  ", "\n", "\t\r\n", " /* ; */ ", "/**/", " /* a ' */ ", " -- x ' \n", " --\t\n", "\f", " # x ' \n", "#\n"}
		varied(t, newChecker(t, newMySQL(t)), mysqlGrammar, 4000, []variant{
			{"comments", respace(blanks...)},
			{"no blanks", glue},
			{"case", recase},
			{"quotes", requote([]string{"books", "orders", "other", "title", "price", "src", "b"}, func(s string) string { return "`" + s + "`" })},
			{"alias", realias},
		})
	})
	t.Run("mutated", func(t *testing.T) { mutated(t, newChecker(t, newMySQL(t)), mysqlGrammar, 40000) })
}
