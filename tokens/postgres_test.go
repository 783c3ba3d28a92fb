package tokens_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/tokens"
)

// A server is a fake PostgreSQL: it recognizes statements by their text, and has their effects as far as a test needs.
// Tests with a real PostgreSQL check that PostgreSQL accepts the statements.
type server struct {
	*fakedb.DB
	store *tokens.Store
	log   bytes.Buffer

	mu      sync.Mutex
	tokens  map[string]int64
	columns [][]any // of the ledger; none without one
	floor   int64
	hidden  bool // the timeline can't be read
	standby bool
	fails   func(c fakedb.Call) error
}

// A stateError is PostgreSQL's, with its SQLSTATE.
type stateError struct{ state, message string }

func (e stateError) Error() string    { return e.message }
func (e stateError) SQLState() string { return e.state }

var (
	serialization = stateError{"40001", "could not serialize access"}
	deadlock      = stateError{"40P01", "deadlock detected"}
)

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{tokens: make(map[string]int64), fails: func(fakedb.Call) error { return nil }}
	s.columns = [][]any{{"name", "text", true}, {"token", "bigint", true}}
	s.DB = fakedb.New(s.answer)
	db := sql.OpenDB(s.DB)
	t.Cleanup(func() { db.Close() })
	s.store = newStore(t, db, tokens.WithDialect(sqlfence.Postgres), tokens.WithLogger(slog.New(slog.NewTextHandler(&s.log, nil))))
	return s
}

func (s *server) answer(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails(c); err != nil {
		return fakedb.Response{}, err
	}
	if s.hidden && strings.Contains(c.Query, "pg_walfile_name") {
		return fakedb.Response{}, stateError{"42883", "function pg_walfile_name does not exist"}
	}
	one := func(v any) (fakedb.Response, error) { return fakedb.Response{Rows: [][]any{{v}}}, nil }
	switch {
	case strings.HasPrefix(c.Query, "EXPLAIN"): // the fake answers without rows
	case strings.HasPrefix(c.Query, "SELECT attname"):
		return fakedb.Response{Columns: make([]string, 3), Rows: s.columns}, nil
	case strings.HasPrefix(c.Query, "CREATE TABLE"):
		s.columns = [][]any{{"name", "text", true}, {"token", "bigint", true}}
	case strings.HasPrefix(c.Query, "SELECT CASE WHEN held.token"):
		return one(max(s.tokens[c.Args[0].(string)], s.floor))
	case strings.Contains(c.Query, "AS found"):
		token, ok := s.tokens[c.Args[0].(string)]
		return fakedb.Response{Columns: make([]string, 4), Rows: [][]any{{s.standby, ok, nil, token}}}, nil
	case strings.HasPrefix(c.Query, "SELECT token FROM"): // for display
		if token, ok := s.tokens[c.Args[0].(string)]; ok {
			return one(token)
		}
	case strings.Contains(c.Query, "turn.floor") && strings.Contains(c.Query, "RETURNING name"):
		var issued [][]any
		for _, name := range strings.Split(strings.Trim(c.Args[0].(string), `[]"`), `","`) {
			s.tokens[name] = max(s.tokens[name], s.floor) + 1
			issued = append(issued, []any{name, s.tokens[name]})
		}
		slices.Reverse(issued) // no order is promised
		return fakedb.Response{Rows: issued}, nil
	case strings.HasPrefix(c.Query, "EXPLAIN"):
	case strings.Contains(c.Query, "turn.floor") && c.Kind == fakedb.Query:
		name, n := c.Args[0].(string), c.Args[1].(int64)
		if last := max(s.tokens[name], s.floor) + n; last <= sqlfence.MaxToken {
			s.tokens[name] = last
			return one(last)
		}
	case strings.HasPrefix(c.Query, "SELECT pg_catalog.max("):
		return one(41)
	case strings.HasPrefix(c.Query, "SELECT GREATEST(COALESCE"):
		return one(s.floor)
	case strings.Contains(c.Query, "json_array_elements_text"):
		for _, name := range strings.Split(strings.Trim(c.Args[0].(string), `[]"`), `","`) {
			s.tokens[name] += 0
		}
	}
	return fakedb.Response{Affected: 1}, nil
}

// times makes the next n calls that of chooses fail with err.
func (s *server) times(n int, err error, of func(c fakedb.Call) bool) {
	s.fails = func(c fakedb.Call) error {
		if n > 0 && of(c) {
			n--
			return err
		}
		return nil
	}
}

// sent returns the statements since the last time, each up to its first line's end, cut
// short.
func (s *server) sent() (texts []string) {
	for _, c := range s.Sent() {
		line, _, _ := strings.Cut(c.Query, "\n")
		texts = append(texts, fmt.Sprintf("%.32s", line))
	}
	return texts
}

func isIssue(c fakedb.Call) bool { return strings.Contains(c.Query, "turn.floor") }

func TestPostgresIssueIsOneStatement(t *testing.T) {
	s := newServer(t)
	s.floor = 20_000_000_000
	for i := range int64(2) {
		if got := issue(t, s.store, "books"); got != s.floor+1+i {
			t.Errorf("token %d, want %d", got, s.floor+1+i)
		}
	}
	if got := s.Sent(); len(got) != 2 || got[0].Args[0] != "books" || got[0].Args[1] != int64(1) {
		t.Errorf("sent %v", got)
	}
}

// A statement that met a serialization failure is sent again, after a pause, until the context ends.
func TestPostgresResends(t *testing.T) {
	for method, call := range map[string]func(s *server, ctx context.Context) error{
		"Issue": func(s *server, ctx context.Context) error { _, err := s.store.Issue(ctx, "books"); return err },
		"IssueMany": func(s *server, ctx context.Context) error {
			_, err := s.store.IssueMany(ctx, "books", "pens")
			return err
		},
		"Ensure": func(s *server, ctx context.Context) error { return s.store.Ensure(ctx, "books") },
		"Repair": func(s *server, ctx context.Context) error { _, err := s.store.Repair(ctx, 9); return err },
		"Rotate": func(s *server, ctx context.Context) error { _, err := s.store.Rotate(ctx, "books"); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			s.times(3, serialization, func(c fakedb.Call) bool { return strings.Contains(c.Query, "fencing_tokens") })
			if err := call(s, t.Context()); err != nil {
				t.Errorf("%s: %v", method, err)
			}
			if sent := len(s.Sent()); sent < 4 {
				t.Errorf("%s: %d statements, want 4 or more", method, sent)
			}
			s.times(1000, serialization, func(c fakedb.Call) bool { return strings.Contains(c.Query, "fencing_tokens") })
			ctx, cancel := context.WithTimeout(t.Context(), 1_000_000_000)
			defer cancel()
			if err := call(s, ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s without an end: %v", method, err)
			}
			if sent := len(s.Sent()); sent > 100 {
				t.Errorf("%s: %d statements within a second, want a pause between them", method, sent)
			}
		})
	}
}

func TestPostgresTransactionsAreRepeatedAfterADeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.times(1, deadlock, func(c fakedb.Call) bool { return c.Kind == fakedb.Commit })
		if _, err := s.store.Repair(t.Context(), 9); err != nil {
			t.Fatal(err)
		}
		once := []string{"BEGIN Read Committed", "SELECT CASE WHEN pg_catalog.text", "SELECT pg_catalog.set_config('ro", "LOCK TABLE fencing_tokens IN SHA",
			"INSERT INTO fencing_tokens (name", "SELECT name, token FROM fencing_", "UPDATE fencing_tokens SET token ", "COMMIT"}
		if got := s.sent(); len(got) == 0 || !slices.Equal(got[1:], append(once, once...)) { // the first reads the floor
			t.Errorf("sent %q", got)
		}
		s.times(1, deadlock, isIssue)
		if _, err := s.store.Issue(t.Context(), "books"); !errors.Is(err, deadlock) {
			t.Errorf("a statement by itself: %v", err)
		}
	})
}

func TestPostgresRotateLocksBeforeItWrites(t *testing.T) {
	s := newServer(t)
	n, err := s.store.Rotate(t.Context(), "books", tokens.Mark{Table: "Shop.Books", Column: `"Mark"`})
	if n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	const leased = `SELECT l."key", l.holder FROM fencing_leases`
	want := []string{
		leased,
		"BEGIN Read Committed",
		"SELECT CASE WHEN pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'off') THEN pg_catalog.set_config('synchronous_commit', 'on', true) END",
		"SELECT pg_catalog.set_config('row_security', 'off', true)",
		`LOCK TABLE "shop"."books" IN SHARE ROW EXCLUSIVE MODE`,
		"LOCK TABLE fencing_tokens IN SHARE ROW EXCLUSIVE MODE",
		"SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', $1::pg_catalog.text), 0))",
		leased,
		"SELECT name, COALESCE(token, 0) FROM fencing_tokens\nWHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.text OR pg_catalog.starts_with(name, pg_catalog.concat($1::pg_catalog.text, '/')) ORDER BY name",
		"UPDATE fencing_tokens SET token = $2::bigint\nWHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.text OR pg_catalog.starts_with(name, pg_catalog.concat($1::pg_catalog.text, '/'))",
		`SELECT pg_catalog.max(pg_catalog.abs("Mark")) FROM "shop"."books" WHERE pg_catalog.abs("Mark") OPERATOR(pg_catalog.<=) 90000000000000`,
		"INSERT INTO fencing_tokens (name, token) VALUES ('sqlfence:floor', $1::bigint)\n" +
			"ON CONFLICT (name) DO UPDATE SET token = GREATEST(fencing_tokens.token, excluded.token)",
		`UPDATE "shop"."books" SET "Mark" = 41 WHERE pg_catalog.abs("Mark") OPERATOR(pg_catalog.>) 90000000000000`,
		"COMMIT",
	}
	var got []string
	for _, c := range s.Sent() {
		if strings.HasPrefix(c.Query, leased) {
			c.Query = leased
		}
		got = append(got, c.Query)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPostgresFailuresWithinATransaction(t *testing.T) {
	broken := errors.New("broken")
	for step := range 13 {
		s := newServer(t)
		n := step
		s.fails = func(fakedb.Call) error {
			if n--; n == -1 {
				return broken
			}
			return nil
		}
		rows, err := s.store.Rotate(t.Context(), "books", tokens.Mark{Table: "books", Column: "mark"})
		if rows != 0 || !errors.Is(err, broken) {
			t.Errorf("Rotate, the call %d fails: %d, %v", step, rows, err)
		}
		if n = step; step < 9 {
			if _, err := s.store.Repair(t.Context(), 9); !errors.Is(err, broken) {
				t.Errorf("Repair, the call %d fails: %v", step, err)
			}
		}
	}
}

// unseenBy returns PostgreSQL's error for a name that a statement may not add.
func unseenBy(name string) error {
	return stateError{"22P02", `invalid input syntax: "` + sqltext.OldSnapshot + name + `"`}
}

// fullBy returns PostgreSQL's error for a name that has no token left.
func fullBy() error { return stateError{"22P02", `invalid input syntax: "` + tokens.Full + `f"`} }

// If a statement's snapshot is too old to add a name, the name is added first, by a statement of its own.
func TestPostgresUnseenNameIsAddedFirst(t *testing.T) {
	s := newServer(t)
	unseen := unseenBy("books")
	s.times(1, unseen, isIssue)
	if got := issue(t, s.store, "books"); got != 1 {
		t.Errorf("token %d", got)
	}
	if got := s.sent(); len(got) != 3 {
		t.Errorf("sent %q, want Issue, Ensure and Issue", got)
	}
	s.fails = func(c fakedb.Call) error {
		if isIssue(c) {
			return unseen
		}
		return errors.New("read only")
	}
	if _, err := s.store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "read only") {
		t.Errorf("the name can't be added: %v", err)
	}
	forged := stateError{"22P02", `invalid input syntax: "sqlfence:unseen:books"`}
	s.times(1, forged, isIssue)
	if _, err := s.store.Issue(t.Context(), "books"); !errors.Is(err, forged) {
		t.Errorf("what another value says: %v", err)
	}
}

func TestPostgresIssueSaysWhyItFails(t *testing.T) {
	none := func(c fakedb.Call) error {
		if isIssue(c) {
			return sql.ErrNoRows
		}
		return nil
	}
	for _, test := range []struct {
		name   string
		stored int64
		fails  func(c fakedb.Call) error
		want   string
	}{
		{"narrow column", 0, func(fakedb.Call) error { return stateError{"22003", "integer out of range"} }, "too narrow, make it a bigint: integer out of range"},
		{"another error", 0, func(fakedb.Call) error { return errors.New("gone") }, `tokens: issue "books": gone`},
		{"a trigger", 7, none, "stored no token in the table fencing_tokens; look for a trigger"},
		{"the limit", sqlfence.MaxToken, none, "token limit reached"},
		{"negative", -1, none, "holds the negative token -1"},
		{"no answer why", 0, func(c fakedb.Call) error {
			if isIssue(c) {
				return sql.ErrNoRows
			}
			return errors.New("gone")
		}, "gone"},
	} {
		s := newServer(t)
		s.tokens["books"], s.floor = test.stored, min(test.stored, 0)
		s.fails = test.fails
		if token, err := s.store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), test.want) || token != (sqlfence.Token{}) {
			t.Errorf("%s: %v, %v; want %q", test.name, token, err, test.want)
		}
	}
}

func TestPostgresIssueManyIsOneStatement(t *testing.T) {
	s := newServer(t)
	s.floor = 20_000_000_000
	for i := range int64(2) {
		issued, err := s.store.IssueMany(t.Context(), "pens", "books")
		want := []sqlfence.Token{{Name: "pens", Value: s.floor + 1 + i}, {Name: "books", Value: s.floor + 1 + i}}
		if err != nil || !slices.Equal(issued, want) {
			t.Errorf("issued %v, %v; want %v", issued, err, want)
		}
	}
	// Locks are taken in the order of the names.
	if got := s.Sent(); len(got) != 2 || got[0].Args[0] != `["books","pens"]` {
		t.Errorf("sent %v", got)
	}
	for failure, want := range map[error]int{deadlock: 2, serialization: 2, unseenBy("pens"): 3} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			s.times(1, failure, isIssue)
			if issued, err := s.store.IssueMany(t.Context(), "pens", "books"); err != nil || len(issued) != 2 {
				t.Errorf("behind %v: %v, %v", failure, issued, err)
			}
			if got := s.sent(); len(got) != want {
				t.Errorf("behind %v: sent %q, want %d statements", failure, got, want)
			}
		})
	}
}

func TestPostgresIssueManySaysWhyItFails(t *testing.T) {
	for _, test := range []struct {
		name   string
		stored int64
		fails  error
		want   string
	}{
		{"narrow column", 0, stateError{"22003", "integer out of range"}, "tokens: issue for 2 names: the column token of fencing_tokens is too narrow, make it a bigint"},
		{"another error", 0, errors.New("gone"), "tokens: issue for 2 names: gone"},
		{"the limit", sqlfence.MaxToken, fullBy(), `token limit reached: "pens" stands at`},
		{"negative", -1, fullBy(), "holds the negative token -1"},
		{"raised in vain", 7, fullBy(), "stored no token in the table fencing_tokens; look for a trigger"},
	} {
		s := newServer(t)
		s.tokens["pens"], s.floor = test.stored, min(test.stored, 0)
		s.fails = func(c fakedb.Call) error {
			if isIssue(c) {
				return test.fails
			}
			return nil
		}
		if issued, err := s.store.IssueMany(t.Context(), "books", "pens"); err == nil || !strings.Contains(err.Error(), test.want) || issued != nil {
			t.Errorf("%s: %v, %v; want %q", test.name, issued, err, test.want)
		}
	}
	broken := errors.New("commit failed")
	one := [][]any{{"books", int64(1)}}
	for _, test := range []struct {
		answer fakedb.Response
		want   string
	}{
		{fakedb.Response{Rows: one}, "look for a trigger"},
		{fakedb.Response{Rows: append(one, []any{"pens", nil})}, "look for a trigger"},
		{fakedb.Response{Rows: append(one, []any{"pens", int64(1)}), RowsErr: broken}, "commit failed"},
		{fakedb.Response{Rows: append(one, []any{"pens", "one"})}, "one"},
	} {
		db := sql.OpenDB(fakedb.New(fakedb.Script(test.answer)))
		defer db.Close()
		if issued, err := newStore(t, db, tokens.WithDialect(sqlfence.Postgres)).IssueMany(t.Context(), "books", "pens"); err == nil || !strings.Contains(err.Error(), test.want) || issued != nil {
			t.Errorf("%v: %v, %v; want %q", test.answer, issued, err, test.want)
		}
	}
}

// An answer counts only when all of it has been read: the commit may fail after the row.
func TestPostgresReadsTheAnswerToItsEnd(t *testing.T) {
	broken := errors.New("commit failed")
	db := sql.OpenDB(fakedb.New(fakedb.Script(
		fakedb.Response{Rows: [][]any{{int64(7)}}, RowsErr: broken},
		fakedb.Response{Columns: make([]string, 4), Rows: [][]any{{false, true, int64(1), "seven"}}},
		fakedb.Response{Columns: make([]string, 4), Rows: [][]any{{false, true, int64(1), nil}}},
	)))
	defer db.Close()
	store := newStore(t, db, tokens.WithDialect(sqlfence.Postgres))
	if token, err := store.Issue(t.Context(), "books"); !errors.Is(err, broken) {
		t.Errorf("Issue = %v, %v", token, err)
	}
	if token, err := store.Current(t.Context(), "books"); err == nil {
		t.Errorf("Current of a text = %v", token)
	}
	if token, err := store.Current(t.Context(), "books"); err != nil || token.Value != 0 {
		t.Errorf("Current of NULL = %v, %v", token, err)
	}
}

// A standby may know neither a token that was issued nor a name that was added a moment ago. So calls that decide by
// its answer fail. Calls for display return the answer.
func TestStandbyDecidesNothing(t *testing.T) {
	s := newServer(t)
	token := sqlfence.Token{Name: "books", Value: issue(t, s.store, "books")}
	s.standby = true
	for _, name := range []string{"books", "unknown"} {
		token.Name = name
		_, err := s.store.Current(t.Context(), name)
		for what, err := range map[string]error{"Current": err, "Check": s.store.Check(t.Context(), token)} {
			if !errors.Is(err, sqlfence.ErrStandby) || errors.Is(err, sqlfence.ErrUnknownName) {
				t.Errorf("%s of %s: %v, want ErrStandby", what, name, err)
			}
		}
	}
	for shown, err := range s.store.Watch(t.Context(), "books", time.Hour) {
		if err != nil || shown.Value != 1 {
			t.Errorf("Watch: %v, %v", shown, err)
		}
		break
	}
}

// If the server's timeline can't be read, the Store tries this once, and logs it.
func TestPostgresWithoutTimelines(t *testing.T) {
	s := newServer(t)
	s.hidden = true
	for want := int64(1); want <= 3; want++ {
		if got := issue(t, s.store, "books"); got != want {
			t.Errorf("token %d, want %d", got, want)
		}
	}
	if got := s.sent(); len(got) != 5 {
		t.Errorf("sent %q, want three for the first token, one for each of the others", got)
	}
	if got := strings.Count(s.log.String(), "level=WARN"); got != 1 || !strings.Contains(s.log.String(), "timeline") {
		t.Errorf("%d warnings, want one:\n%s", got, s.log.String())
	}
}

func TestPostgresSetup(t *testing.T) {
	broken := errors.New("no privilege")
	for _, test := range []struct {
		name    string
		columns [][]any
		floor   int64
		fails   func(c fakedb.Call) error
		want    string // part of the error, or of the warning
		warns   bool
		sent    int
	}{
		{"there", [][]any{{"name", "text", true}, {"token", "bigint", true}}, 0, nil, "", false, 3},
		{"missing", nil, 0, nil, "", false, 6},
		{"created by another", nil, 0, func(c fakedb.Call) error {
			if strings.HasPrefix(c.Query, "CREATE") {
				return stateError{"42P07", "relation exists"}
			}
			return nil
		}, "the server shows no column of it", false, 4},
		{"can't be created", nil, 0, func(c fakedb.Call) error {
			if strings.HasPrefix(c.Query, "CREATE") {
				return broken
			}
			return nil
		}, "setup: create fencing_tokens: no privilege", false, 3},
		{"can't be written", [][]any{{"name", "text", true}, {"token", "bigint", true}}, 0, func(c fakedb.Call) error {
			if strings.HasPrefix(c.Query, "EXPLAIN") {
				return broken
			}
			return nil
		}, "can't be used: no privilege", false, 2},
		{"narrow", [][]any{{"name", "text", true}, {"token", "integer", true}}, 0, nil, "make it a bigint", true, 4},
		{"too narrow", [][]any{{"name", "text", true}, {"token", "integer", true}}, 1 << 31, nil, "tokens are above 2147483648; make it a bigint", false, 4},
		{"narrow, without an answer", [][]any{{"name", "text", true}, {"token", "integer", true}}, 0, func(c fakedb.Call) error {
			if strings.HasPrefix(c.Query, "SELECT GREATEST(COALESCE") {
				return broken
			}
			return nil
		}, "setup: no privilege", false, 4},
		{"another column of that type", [][]any{{"name", "text", true}, {"token", "bigint", true}, {"id", "integer", false}}, 1 << 31, nil, "", false, 3},
	} {
		s := newServer(t)
		s.columns, s.floor = test.columns, test.floor
		if test.fails != nil {
			s.fails = test.fails
		}
		err := s.store.Setup(t.Context())
		text := s.log.String()
		if err != nil {
			text = err.Error()
		}
		if (err != nil) != (test.want != "" && !test.warns) || !strings.Contains(text, test.want) || test.want == "" && text != "" {
			t.Errorf("%s: %v, logged %q; want %q", test.name, err, s.log.String(), test.want)
		}
		if got := s.sent(); len(got) != test.sent {
			t.Errorf("%s: sent %q, want %d statements", test.name, got, test.sent)
		}
	}
}
