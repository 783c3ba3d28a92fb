package statements_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In a database with a single-byte encoding PostgreSQL folds letters beyond ASCII, too, if its locale does.

// latin1 creates a database in LATIN1 and returns its DSN, with the client's encoding UTF8. If the locale is missing,
// the database folds only ASCII, as with the locale C.
func latin1(t *testing.T, b harness.Base, locale string) (dsn string, ok bool) {
	t.Helper()
	source, err := harness.PostgresDatabaseAs(t, "TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE '"+locale+"'")
	if err != nil {
		return "", false
	}
	u, err := url.Parse(source)
	if err != nil || u.Scheme == "" {
		need.Missing(t, "postgres", "the server's DSN is no URL")
	}
	q := u.Query()
	q.Set("client_encoding", "UTF8")
	u.RawQuery = q.Encode()
	return u.String(), true
}

func TestLettersFoldedByLocale(t *testing.T) {
	long := strings.Repeat("ü", 63) // 63 bytes in LATIN1, and 126 in UTF8
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite folds ASCII only")
		}
		for _, locale := range []string{"C", "de_DE", "de_DE.iso88591", "en_US.iso88591"} {
			t.Run(locale, func(t *testing.T) {
				source, ok := latin1(t, b, locale)
				if !ok {
					need.Missing(t, "locale", "the server has no such locale; Debian's package locales-all has it")
				}
				plain := b.Raw(t, source)
				for _, table := range []string{"bücher", long} {
					harness.MustExec(t, plain, `CREATE TABLE "`+table+`" (id integer PRIMARY KEY, preis integer, "märke" bigint)`)
					harness.MustExec(t, plain, `INSERT INTO "`+table+`" VALUES (1, 10, 9)`)
				}
				folds := false
				if err := plain.QueryRowContext(t.Context(), "SELECT lower('Ü' COLLATE \""+map[bool]string{true: "C", false: "default"}[locale == "C"]+"\") = 'ü'").Scan(&folds); err != nil {
					t.Fatal(err)
				}
				if _, err := plain.ExecContext(t.Context(), "UPDATE BÜCHER SET preis = 10"); (err == nil) != folds {
					t.Fatalf("without sqlfence: %v, although lower('Ü') = 'ü' is %v", err, folds)
				}
				rules := []sqlfence.Rule{sqlfence.RowFence("märke"), sqlfence.Resource("books")}
				db := b.Fenced(t, source, sqlfence.WithTable("bücher", rules...), sqlfence.WithTable(long, rules...))
				for _, query := range []string{
					"UPDATE BÜCHER SET preis = 30", "DELETE FROM bÜCHER", "INSERT INTO BÜcher (id) VALUES (2)",
					"UPDATE bücher SET MÄRKE = 1", "DO $$ BEGIN UPDATE BÜCHER SET preis = 30; END $$",
					"UPDATE " + strings.ToUpper(long) + " SET preis = 30",
				} {
					for name, run := range harness.Ways {
						if err := run(harness.Holding(t, 8), db, query); !errors.Is(err, sqlfence.ErrUnguardable) {
							t.Errorf("%s by %s: %v", query, name, err)
						}
					}
				}
				for _, query := range []string{"UPDATE " + long + " SET preis = 30", `DELETE FROM "` + long + `"`, `INSERT INTO ` + long + ` VALUES (2)`} {
					if err := harness.Ways["exec"](harness.Holding(t, 8), db, query); err == nil {
						t.Errorf("%s: a name that is cut in the server's encoding is not seen", query)
					}
				}
				for _, query := range []string{"UPDATE bücher SET preis = 30", `UPDATE "bücher" SET preis = 30`, "DELETE FROM bücher"} {
					for name, run := range harness.Ways {
						if err := run(harness.Holding(t, 8), db, query); !errors.Is(err, sqlfence.ErrStale) {
							t.Errorf("%s by %s: %v", query, name, err)
						}
					}
					if !strings.HasPrefix(query, "DELETE") {
						if _, err := db.ExecContext(harness.Holding(t, 9), query); err != nil {
							t.Errorf("%s: %v", query, err)
						}
					}
				}
			})
		}
	})
}
