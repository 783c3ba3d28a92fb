package pgx_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// characters are values with each character of one byte, and with other languages' letters before characters that may
// end a string.
func characters() (values []string) {
	for c := 1; c < 0x100; c++ {
		values = append(values, string(rune(c)), "é"+string(rune(c)), string(rune(c))+`\`, `\`+string(rune(c))+"'")
	}
	for _, letter := range []string{"é", "Ü", "ソ", "表", "功", "許", "일", "\u1a5c", "\U0001d15c"} {
		for _, next := range []string{`\`, `\\`, `'`, `"`, `\'`, `'\`, "[", "\n", " -- ", "/*", "$1", "$$", "?"} {
			values = append(values, letter+next, letter+next+letter, next+letter+`\`, `C:\`+letter+next+`x\y`)
		}
	}
	if testing.Short() {
		rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		values = append([]string{`C:\Menü\Datei`, "it's", `é\'`}, values[:12]...)
	}
	return values
}

// No value makes sqlfence refuse a statement: as an argument, in each protocol of the drivers, and as a constant in the
// text, with escapes or under standard_conforming_strings. Values are stored and found as without sqlfence.
func TestNoValueIsRefused(t *testing.T) {
	dsn := harness.PostgresDatabase(t)
	for _, via := range []struct{ driver, options string }{
		{"postgres", ""}, {"pgx", ""}, {"pgx", "&default_query_exec_mode=simple_protocol"}, {"pgx", "&default_query_exec_mode=exec"},
		{"postgres", "&standard_conforming_strings=off"}, {"pgx", "&standard_conforming_strings=off"},
	} {
		t.Run(via.driver+via.options, func(t *testing.T) {
			db, err := sqlfence.Open(via.driver, dsn+via.options, sqlfence.WithTable("volumes", sqlfence.RowFence("fence_token")))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, query := range []string{"DROP TABLE IF EXISTS volumes", "CREATE TABLE volumes (id int, price int, title text, fence_token bigint)", "INSERT INTO volumes (id) VALUES (1)"} {
				if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "setup"), query); err != nil {
					t.Fatal(err)
				}
			}
			holding := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "volumes", Value: 5})
			for i, value := range characters() {
				text := "'" + strings.NewReplacer(`\`, `\\`, "'", []string{`\'`, "''"}[i%2]).Replace(value) + "'"
				switch off := strings.Contains(via.options, "=off"); {
				case !off && i%3 == 0:
					text = "'" + strings.ReplaceAll(value, "'", "''") + "'"
				case !off || i%3 == 0:
					text = "E" + text
				}
				for _, query := range []string{
					"UPDATE volumes SET title = " + text + " WHERE id = 1",
					"UPDATE volumes SET price = $1, title = " + text + " WHERE id = 1",
					"UPDATE volumes SET title = $1 WHERE id = 1",
				} {
					var args []any
					if strings.Contains(strings.Replace(query, text, "", 1), "$1") {
						args = []any{1}
					}
					if strings.HasPrefix(query, "UPDATE volumes SET title = $1") {
						args = []any{value}
					}
					_, err := db.ExecContext(holding, query, args...)
					if err != nil {
						t.Fatalf("%s: %v", query, err)
					}
					var stored, found string
					if err := db.QueryRow("SELECT title, "+text+" FROM volumes WHERE title = "+text).Scan(&stored, &found); err != nil || stored != value || found != value {
						t.Fatalf("%s: stored %q, found %q: %v", query, stored, found, err)
					}
				}
			}
		})
	}
}
