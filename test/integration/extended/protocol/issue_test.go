package protocol_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// ours matches the comment by which package tokens finds its abandoned statements on a MySQL server.
var ours = regexp.MustCompile(` /\* sqlfence-\w+ \*/$`)

// tag matches the random number by which package tokens recognises the answer of its own session on a MySQL server.
var tag = regexp.MustCompile(`LAST_INSERT_ID\(\d{16,} \+ (.*)\) - \d{16,}`)

// The page's statement for taking a token must be the statement that package tokens sends, with constants as arguments.
func TestIssueIsThatOfTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, b harness.Base) {
		db, sent := b.Counted(t, b.DSN(t))
		store := harness.NewStore(t, db)
		if err := store.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent.Reset()
		if _, err := store.Issue(t.Context(), "books"); err != nil {
			t.Fatal(err)
		}
		constants := strings.NewReplacer("$1::pg_catalog.text", "'books'", "$2::bigint", "1", "? AS name, ? AS count", "'books' AS name, 1 AS count")
		page := inOneLine(block(t, named(b)+" issue"))
		if !slices.ContainsFunc(sent.Texts(), func(text string) bool {
			text = tag.ReplaceAllString(ours.ReplaceAllString(text, ""), "LAST_INSERT_ID($1)")
			return inOneLine(constants.Replace(nonces.ReplaceAllString(text, "sqlfence:"))) == page
		}) {
			t.Errorf("tokens sends\n%s\nthe page has\n%s", strings.Join(sent.Texts(), "\n"), page)
		}
	})
}

// nonces matches the random part of the errors in the package's statements.
var nonces = regexp.MustCompile("sqlfence:[A-Z2-7]{16}:")

func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// The page's statement and package tokens take tokens in turn. Each token must be the previous token plus 1.
func TestIssueByHand(t *testing.T) {
	eachDatabase(t, func(t *testing.T, b harness.Base) {
		l := open(t, b)
		l.plain.SetMaxOpenConns(1) // LAST_INSERT_ID belongs to a connection
		store := harness.NewStore(t, l.plain)
		last := int64(0)
		for range 3 {
			if token := harness.IssueToken(t, store, "books"); token <= last {
				t.Errorf("tokens has issued %d after %d", token, last)
			} else {
				last = token
			}
			if token := issueByHand(t, l); token != last+1 {
				t.Errorf("issued %d after %d", token, last)
			} else {
				last = token
			}
		}
	})
	t.Run("a name that is new", func(t *testing.T) {
		eachDatabase(t, func(t *testing.T, b harness.Base) {
			l := open(t, b)
			l.plain.SetMaxOpenConns(1)
			for want := int64(1); want < 4; want++ {
				if token := issueByHand(t, l); token != want {
					t.Errorf("issued %d, want %d", token, want)
				}
			}
		})
	})
}

func issueByHand(t *testing.T, l *library) (token int64) {
	t.Helper()
	issue := block(t, named(l.Base)+" issue")
	if named(l.Base) != "mysql" {
		if err := l.plain.QueryRow(issue).Scan(&token); err != nil {
			t.Fatal(err)
		}
		return token
	}
	for {
		result, err := l.plain.Exec(issue)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := result.RowsAffected(); n == 1 {
			break
		}
		harness.MustExec(t, l.plain, block(t, "mysql ensure"))
	}
	if err := l.plain.QueryRow("SELECT LAST_INSERT_ID()").Scan(&token); err != nil {
		t.Fatal(err)
	}
	return token
}
