package parsers

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/rewrite"
)

// TestQuestionInPlace damages the ledger's early check in guarded statements. The comparison with the user's statement
// must detect each damage.
func TestQuestionInPlace(t *testing.T) {
	t.Parallel()
	const (
		ofLedger = 1
		ofBoth   = 2
	)
	t.Run("PostgreSQL", func(t *testing.T) {
		c := newChecker(t, postgres{})
		const offset = " OFFSET (newer)"
		for _, s := range []spoiled{
			{ofLedger, "UPDATE books SET n = 1 WHERE id = 1 OR n = 2", "asks AND ", ""},
			{ofLedger, "UPDATE books SET n = 1 WHERE id = 1 OR n = 2", " IS NULL AND (id", " IS NULL OR (id"},
			{ofLedger, "UPDATE books SET n = 1 WHERE id = 1 OR n = 2", " IS NULL AND (id", " IS NOT NULL AND (id"},
			{ofLedger, "UPDATE books SET n = 1 WHERE id = 1 OR n = 2", "(id = 1 OR n = 2)", "id = 1 OR n = 2"},
			{ofLedger, "UPDATE books SET n = 1 WHERE id = 1 AND n = 2", "(id = 1 AND n = 2)", "id = 1 AND n = 2"},
			{ofLedger, "UPDATE books SET n = 1 WHERE id = 1", "n = 1 WHERE", "n = CASE WHEN asks THEN 1 END WHERE"},
			{ofLedger, "DELETE FROM books", " WHERE asks", ""},
			{ofLedger, "DELETE FROM books", ") IS NULL", " FOR SHARE) IS NULL"},
			{ofLedger, "DELETE FROM books", " AND NOT ", " OR NOT "},
			{ofBoth, "DELETE FROM books WHERE id = 1", "asks AND ", ""},
			{ofLedger, "MERGE INTO books USING s ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (1)", "NOT MATCHED AND asks", "NOT MATCHED"},
			{ofLedger, "INSERT INTO books (id) SELECT n FROM s", offset, ""},
			{ofLedger, "INSERT INTO books (id) SELECT n FROM s", offset, " OFFSET 1"},
			{ofLedger, "INSERT INTO books (id) SELECT n FROM s", offset, " LIMIT (newer)"},
			{ofLedger, "INSERT INTO books (id) SELECT n FROM s", offset, " WHERE asks"},
			{ofLedger, "INSERT INTO books (id, n) VALUES ($1, 2)", " WHERE asks", ""},
			{ofLedger, "INSERT INTO books (id, n) VALUES ($1, 2)", " WHERE asks", " FROM s WHERE asks"},
			{ofLedger, "INSERT INTO books (id, n) VALUES ($1, 2)", ", 2", ", 3"},
			{ofLedger, "INSERT INTO books (id) VALUES (1), (2)", " THEN 1 END", " THEN 1 ELSE 2 END"},
			{ofLedger, "INSERT INTO books (id) VALUES (1), (2)", "CASE WHEN asks THEN 1 END", "1"},
			{ofBoth, "INSERT INTO books (id) VALUES ($1), ($2)", "CASE WHEN asks THEN ", "CASE WHEN true THEN "},
		} {
			s.isSeen(t, c)
		}
	})
	t.Run("SQLite", func(t *testing.T) {
		c := newChecker(t, newSQLite(t))
		around := func(value string) string { return "CASE WHEN asks THEN " + value + " END" }
		for _, s := range []spoiled{
			{ofLedger, "DELETE FROM books WHERE id = ? AND n > 1", "AND (id", "OR (id"},
			{ofLedger, "DELETE FROM books WHERE id = ? AND n > 1", around("?"), "CASE WHEN n THEN ? END"},
			{ofLedger, "DELETE FROM books WHERE id = ? AND n > 1", " THEN ? END", " THEN ? ELSE 1 END"},
			{ofLedger, "DELETE FROM books WHERE id = ? AND n > 1", " > 1", " > " + around("1")},
			{ofLedger, "DELETE FROM books WHERE id = 1", "id = " + around("1"), "id = " + around("2")},
			{ofLedger, "DELETE FROM books WHERE id = 1", "id = " + around("1"), "n = " + around("1")},
			{ofLedger, "DELETE FROM books WHERE id = 1", "id = " + around("1"), "id <> " + around("1")},
			{ofLedger, "DELETE FROM books WHERE id = 1", "(id = 1)", "(id = " + around("1") + ")"},
			{ofLedger, "INSERT INTO books (id) SELECT s_id FROM src", " LIMIT " + around("-1"), ""},
			{ofLedger, "INSERT INTO books (id) SELECT s_id FROM src", around("-1"), around("1")},
			{ofLedger, "INSERT INTO books (id) SELECT s_id FROM src", around("-1"), "-1"},
		} {
			s.isSeen(t, c)
		}
	})
}

// spoiled holds a query and a damage: in the query's guarded SQL, was is replaced by now. In both, "asks" stands for
// the condition that checks the ledger early, and "newer" for PostgreSQL's subquery in this condition.
type spoiled struct {
	rules    int // index in ruleSets
	query    string
	was, now string
}

// isSeen checks that the comparison accepts the guarded SQL and rejects the damaged SQL.
func (s spoiled) isSeen(t *testing.T, c *checker) {
	t.Helper()
	const all = "DELETE FROM books"
	_, asks := c.literalText(t, s.rules, all)
	_, asks, _ = strings.Cut(asks, all+" WHERE ")
	asks, _, _ = strings.Cut(asks, " AND CASE")
	names := strings.NewReplacer("asks", asks, "newer", strings.TrimSuffix(asks, " IS NULL"))
	was, now := names.Replace(s.was), names.Replace(s.now)

	plan, text := c.literalText(t, s.rules, s.query)
	if err := c.compare(t, s, plan, text); err != "" {
		t.Errorf("%s: %s\n\t=> %s", s.query, err, text)
	}
	at := strings.LastIndex(text, was)
	if at < 0 {
		t.Errorf("%s: there is no %q in it\n\t=> %s", s.query, was, text)
		return
	}
	bad := text[:at] + now + text[at+len(was):]
	if err := c.compare(t, s, plan, bad); err == "" {
		t.Errorf("%s: it isn't seen that %q is %q\n\t=> %s", s.query, s.was, s.now, bad)
	}
}

// literalText returns a query's plan, and the guarded SQL with the guard's values as literals.
func (c *checker) literalText(t *testing.T, rules int, query string) (*rewrite.Plan, string) {
	t.Helper()
	plan := c.rewriters[rules].Plan(query)
	text, _, err := render(plan, true)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return plan, text
}

// compare describes how guarded SQL, without its guards, differs from the query; "" if it doesn't differ.
func (c *checker) compare(t *testing.T, s spoiled, plan *rewrite.Plan, text string) string {
	t.Helper()
	tree, err := c.db.parse(s.query)
	if err != nil {
		t.Fatalf("%s: %v", s.query, err)
	}
	guarded, err := c.db.parse(text)
	if err != nil {
		t.Fatalf("%s: %v\n\t=> %s", s.query, err, text)
	}
	c.db.renumber(guarded, plan.Inputs, nil)
	if err := c.db.unguard(guarded, ruleSets[s.rules], 1, plan.ChecksLate); err != nil {
		return err.Error()
	}
	return c.db.difference(tree, guarded)
}
