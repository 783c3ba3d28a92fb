package plans_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// rows is how many rows the table has. All conditions but the empty one select at most three of them by their key.
const rows = 1 << 14

// rules are the rules whose guards check the written rows.
var rules = []struct {
	name  string
	rules []sqlfence.Rule
}{
	{"RowFence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
	{"Key", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}},
	{"Key with Ledger", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
	{"Claim", []sqlfence.Rule{sqlfence.Claim("writer"), sqlfence.Key("id")}},
	{"EditLock", []sqlfence.Rule{sqlfence.EditLock("locked_by", "locked_at", "locked_until")}},
}

// A shape is a kind of condition, for the databases that have it.
type shape struct {
	name, condition string
	without         string
}

var shapes = []shape{
	{name: "constant", condition: "id = 8007"},
	{name: "IN", condition: "id IN (8007, 8008)"},
	{name: "OR", condition: "id = 8007 OR id = 8008"},
	{name: "row address", condition: "{address}", without: "mysql"},
	{name: "function", condition: "id = 8000 + length(replace('aaaaaaa', 'a', 'b'))"},
	{name: "subquery", condition: "id = (SELECT max(doc) FROM small)"},
	{name: "IN with subquery", condition: "id IN (SELECT doc FROM small)"},
	{name: "EXISTS", condition: "EXISTS (SELECT 1 FROM small WHERE small.doc = books.id)"},
	{name: "LIMIT in subquery", condition: "id IN (SELECT doc FROM small ORDER BY doc LIMIT 2)", without: "mysql"},
	{name: "OR with subquery", condition: "id = 8007 OR id = (SELECT max(doc) FROM small)"},
	{name: "constant and EXISTS", condition: "id = 8007 AND EXISTS (SELECT 1 FROM small WHERE small.doc = books.id)"},
	{name: "WITH", condition: "id IN (SELECT doc FROM c)", without: "mysql"},
	{name: "join", condition: "{join}"},
	{name: "no condition"},
}

// unrepeated are the shapes that can't be evaluated twice. Without a condition SQLite deletes all rows without reading
// them.
var unrepeated = []string{"function", "LIMIT in subquery", "no condition"}

var kinds = []string{"DELETE", "DELETE RETURNING", "DELETE LIMIT", "UPDATE", "UPDATE LIMIT", "MERGE DELETE", "MERGE UPDATE"}

// statement returns the statement of a kind with the condition, or "" if the database can't have it.
func (s shape) statement(b harness.Base, kind string) string {
	engine := map[sqlfence.Dialect]string{
		sqlfence.Postgres: "postgres", sqlfence.MySQL: "mysql", sqlfence.SQLite: "sqlite"}[b.Dialect]
	verb, option, _ := strings.Cut(kind, " ")
	if s.without == engine || option == "LIMIT" && (engine != "mysql" || s.name == "join") ||
		verb == "MERGE" && (engine != "postgres" || s.name == "WITH") {
		return ""
	}
	if verb == "MERGE" {
		return s.merge(option)
	}
	begin := map[string]string{"DELETE": "DELETE FROM books", "UPDATE": "UPDATE books SET price = 1"}[verb]
	condition := s.condition
	switch condition {
	case "{address}":
		condition = map[string]string{"postgres": "ctid = '(0,7)'", "sqlite": "rowid = 8007"}[engine]
	case "{join}":
		condition = "books.id = small.doc"
		switch engine + " " + verb {
		case "postgres DELETE":
			begin += " USING small"
		case "sqlite DELETE":
			return ""
		case "mysql DELETE":
			begin = "DELETE books FROM books JOIN small ON books.id = small.doc"
		case "mysql UPDATE":
			begin = "UPDATE books JOIN small ON books.id = small.doc SET books.price = 1"
		default:
			begin += " FROM small"
		}
	}
	if s.name == "WITH" {
		begin = "WITH c AS (SELECT doc FROM small) " + begin
	}
	if condition != "" {
		begin += " WHERE " + condition
	}
	switch option {
	case "RETURNING":
		begin += " RETURNING books.id"
	case "LIMIT":
		begin += " LIMIT 2"
	}
	return begin
}

// merge returns PostgreSQL's MERGE that does this to rows that satisfy the condition and the join's condition.
func (s shape) merge(does string) string {
	on := "books.id = small.doc"
	switch {
	case s.condition == "" || s.name == "join":
	case s.name == "row address":
		on += " AND books.ctid = '(0,7)'"
	default:
		on += " AND (" + s.condition + ")"
	}
	if does == "UPDATE" {
		does += " SET price = 1"
	}
	return "MERGE INTO books USING small ON " + on + " WHEN MATCHED THEN " + does
}

// TestGuardedStatementsReadTheRowsOfBareOnes finds statements that read all rows of the table with their guard, and
// only a few without it. MariaDB locks all rows that a statement reads, the other databases only the written rows.
func TestGuardedStatementsReadTheRowsOfBareOnes(t *testing.T) {
	var order []string             // databases with a kind of statement and the conditions that read more
	under := map[string][]string{} // the same lines, each with the names of the rules
	compared := rules
	if testing.Short() {
		compared = rules[:1]
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.IsUsual() {
			t.Skip("plans don't differ by driver")
		}
		for _, rule := range compared {
			sh := newLibrary(t, b, rule.rules)
			for _, kind := range kinds {
				if !b.Returns() && strings.Contains(kind, "RETURNING") || shapes[0].statement(b, kind) == "" {
					continue
				}
				more := sh.readMore(t, kind, rule.name)
				for _, name := range more {
					if !slices.Contains(unrepeated, name) {
						t.Errorf("%s: %s reads all rows by %s", rule.name, kind, name)
					}
				}
				line := fmt.Sprintf("| %v | %s | %s", b.Dialect, kind, cmp.Or(strings.Join(more, ", "), "none"))
				if !slices.Contains(order, line) {
					order = append(order, line)
				}
				under[line] = append(under[line], rule.name)
			}
		}
	})
	page := "| database | statement | conditions that read all rows | rules |\n|---|---|---|---|\n"
	for _, line := range order {
		page += line + " | " + strings.Join(under[line], ", ") + " |\n"
	}
	if !testing.Short() {
		harness.InCompatibility(t, "plans", page)
	}
}

// A guard on PostgreSQL qualifies its operators with their schema. An index still finds the ledger's names.
func TestGuardReadsTheLedgerByItsIndex(t *testing.T) {
	ledger, key := sqlfence.Ledger(), sqlfence.Key("id")
	for _, b := range harness.Bases[:2] {
		for _, all := range [][]sqlfence.Rule{{ledger}, {ledger, key}, {sqlfence.RowFence("fence_token"), ledger}} {
			sh := newLibrary(t, b, all)
			sh.Exec(t, "INSERT INTO fencing_tokens (name, token) SELECT 'other/' || id, 1 FROM books")
			sh.Exec(t, "ANALYZE fencing_tokens")
			for _, kind := range kinds {
				for _, condition := range []string{"id = 8007", "id IN (SELECT doc FROM small)"} {
					statement := shape{condition: condition}.statement(b, kind)
					if statement == "" {
						continue
					}
					if n := read(t, sh, sh.DB, statement); n > 50 {
						t.Errorf("%s: %s under %v reads %d rows", b.Name, statement, all, n)
					}
				}
			}
		}
	}
}

// readMore returns the conditions with which a kind of statement reads more rows under its guard than without it.
func (sh *library) readMore(t *testing.T, kind, rule string) (names []string) {
	t.Helper()
	for _, s := range shapes {
		statement := s.statement(sh.Base, kind)
		if statement == "" || s.condition == "" && rule != "RowFence" && rule != "EditLock" {
			continue // the last would write rows without a token
		}
		if bare, guarded := read(t, sh, sh.Plain, statement), read(t, sh, sh.DB, statement); guarded > 3*bare+50 {
			names = append(names, s.name)
		}
	}
	return names
}

// A library is a shop with many books, and a small table with the keys of three books.
type library struct {
	*harness.Shop
	counted *sql.DB
	counter *harness.Counter
}

func newLibrary(t *testing.T, b harness.Base, rules []sqlfence.Rule) *library {
	sh := &library{Shop: harness.NewShop(t, b, rules...)}
	if b.Dialect == sqlfence.SQLite {
		sh.counted, sh.counter = b.Counted(t, sh.Source, harness.Books(rules...))
	}
	for _, column := range []string{"by text", "at " + b.TimeType(), "until " + b.TimeType()} {
		sh.Exec(t, "ALTER TABLE books ADD COLUMN locked_"+column)
	}
	sh.Exec(t, "INSERT INTO books (id, price, writer) VALUES (1, 10, 1)")
	for n := 1; n < rows; n *= 2 {
		sh.Exec(t, fmt.Sprintf("INSERT INTO books (id, price, writer) SELECT id + %d, price, writer FROM books", n))
	}
	sh.Exec(t, "CREATE TABLE small (doc integer)")
	sh.Exec(t, "INSERT INTO small (doc) VALUES (8007), (8008), (8009)")
	for _, key := range []string{"books", "books/7", "books/8007", "books/8008", "books/8009"} {
		sh.Exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('"+key+"', 1)")
	}
	if b.Dialect == sqlfence.MySQL {
		sh.Exec(t, "ANALYZE TABLE books, small")
	} else {
		sh.Exec(t, "ANALYZE")
	}
	return sh
}

// sent returns the text that the driver gets for a statement, and rolls the statement back.
func (sh *library) sent(ctx context.Context, t *testing.T, statement string) (text string, args []any) {
	t.Helper()
	tx := harness.Begin(ctx, t, sh.counted, sql.LevelDefault)
	defer tx.Rollback()
	sh.counter.Reset()
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		t.Fatal(statement, err)
	}
	for _, call := range sh.counter.Calls() {
		if !strings.Contains(call.Query, "books") {
			continue
		}
		text, args = call.Query, nil
		for _, arg := range call.Args {
			args = append(args, arg.Value)
		}
	}
	return text, args
}

// read returns how many rows of the table a statement reads, and rolls the statement back.
func read(t *testing.T, sh *library, db *sql.DB, statement string) (n int) {
	t.Helper()
	keys := harness.HoldingKeys(t, 7, 1, 8007, 1, 8008, 1, 8009, 1)
	ctx := sqlfence.WithFence(keys, sqlfence.Token{Name: "books", Value: 1})
	tx := harness.Begin(ctx, t, db, sql.LevelDefault)
	defer tx.Rollback()
	switch sh.Dialect {
	case sqlfence.Postgres:
		var plan string
		if err := tx.QueryRowContext(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+statement).Scan(&plan); err != nil {
			t.Fatal(statement, err)
		}
		var top any
		if err := json.Unmarshal([]byte(plan), &top); err != nil {
			t.Fatal(err)
		}
		return scanned(top)
	case sqlfence.SQLite:
		var args []any
		if db != sh.Plain {
			statement, args = sh.sent(ctx, t, statement)
		}
		found, err := tx.QueryContext(sqlfence.Bypass(ctx, "the plan"), "EXPLAIN QUERY PLAN "+statement, args...)
		if err != nil {
			t.Fatal(statement, err)
		}
		defer found.Close()
		for found.Next() {
			var id, parent, unused int
			var detail string
			if err := found.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(detail, "SCAN books") {
				n += rows
			}
		}
		return n
	}
	handled := func() (sum int) {
		var name string
		var value int
		found, err := tx.QueryContext(ctx, "SHOW SESSION STATUS LIKE 'Handler_read%'")
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			if err := found.Scan(&name, &value); err != nil {
				t.Fatal(err)
			}
			sum += value
		}
		return sum
	}
	before := handled()
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		t.Fatal(statement, err)
	}
	return handled() - before
}

// scanned adds up the rows of the tables books and fencing_tokens that the nodes of a plan read.
func scanned(node any) (n int) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			n += scanned(child)
		}
	case map[string]any:
		number := func(name string) int { f, _ := node[name].(float64); return int(f) }
		kind, _ := node["Node Type"].(string)
		from := node["Relation Name"]
		if (from == "books" || from == "fencing_tokens") && strings.HasSuffix(kind, "Scan") {
			n = number("Actual Loops") * (number("Actual Rows") + number("Rows Removed by Filter") +
				number("Rows Removed by Index Recheck"))
		}
		for _, child := range node {
			n += scanned(child)
		}
	}
	return n
}
