package parsers

import "testing"

// TestPostgres runs its subtests one after another, because each parallel subtest would compile another instance of the
// parser.
func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Run("hazards", func(t *testing.T) { hazardsOf(t, newChecker(t, postgres{}), postgresHazards) })
	t.Run("generated", func(t *testing.T) { generated(t, newChecker(t, postgres{}), postgresGrammar, 20000) })
	t.Run("varied", func(t *testing.T) {
		blanks := []string{" ", "  ", "\n", "\t\r\n", " /* ; */ ", "/**/", " /* a /* ' */ b */ ", " -- x ' \n", "--\n", " --\r", "\f"}
		varied(t, newChecker(t, postgres{}), postgresGrammar, 4000, []variant{
			{"comments", respace(blanks...)},
			{"no blanks", glue},
			{"case", recase},
			{"quotes", requote([]string{"books", "orders", "other", "title", "price", "src", "b"},
				func(s string) string { return `"` + s + `"` },
				func(s string) string { return `U&"\+0000` + hex(s[0]) + s[1:] + `"` })},
			{"alias", realias},
		})
	})
	t.Run("mutated", func(t *testing.T) { mutated(t, newChecker(t, postgres{}), postgresGrammar, 40000) })
}

func hex(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}
