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

// FuzzMySQL checks that no string passes unguarded if the parser finds a write to a registered table in it, and that a
// guarded string without its guards is the original string.
func FuzzMySQL(f *testing.F) {
	for _, q := range mysqlHazards {
		f.Add(q)
	}
	r := random(f)
	for range 200 {
		f.Add(text(mysqlGrammar.write(r, "statement")))
	}
	c := newChecker(f, newMySQL(f))
	f.Fuzz(func(t *testing.T, query string) {
		c.tally = newTally()
		c.all(query)
		for _, failed := range []failures{c.tally.bypasses, c.tally.different} {
			for _, what := range failed.first {
				t.Error(what)
			}
		}
	})
}
