package core_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A leaking server is a Galera node without a binary log. Its guards throw errors, or its statements fail.
type leaking struct {
	*fakedb.DB
	byText string // whether the server reports an open transaction
	fails  map[string]error
	sent   string
}

var firstWords = regexp.MustCompile(`^\w+( @@\w+)?( TO)?`)

func newLeaking(vars [][]any) *leaking {
	l := &leaking{byText: "0", fails: make(map[string]error)}
	l.DB = fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
		word := firstWords.FindString(c.Query)
		switch {
		case word == "SHOW":
			return fakedb.Response{Rows: append([][]any{{"sql_select_limit", "18446744073709551615"}}, vars...)}, nil
		case word == "SELECT @@in_transaction":
			l.sent += "? "
			return fakedb.Response{Rows: [][]any{{l.byText}}}, nil
		case word != "":
			l.sent += word + " "
		}
		if err := l.fails[word]; err != nil {
			return fakedb.Response{}, err
		}
		if strings.Contains(c.Query, "stale") && l.fails["guard"] != nil {
			return fakedb.Response{}, &mysqlError{3057, "Incorrect user-level lock name 'sqlfence:nonce:stale:0:9 .....'"}
		}
		return fakedb.Response{Affected: 1}, nil
	})
	return l
}

// After a refusal nothing is committed on a node that would replicate a part of the refused statement. On other servers
// the transaction commits, and no query is sent.
func TestRefusalOnALeakingNode(t *testing.T) {
	provider := []any{"wsrep_provider", "libgalera_smm.so"}
	for _, test := range []struct {
		name   string
		vars   [][]any
		leaks  bool
		byText string
	}{
		{"without a binary log", [][]any{{"log_bin", "OFF"}, provider}, true, "0"},
		{"in a transaction that a text has begun", [][]any{{"log_bin", "OFF"}, provider}, true, "1"},
		{"with a binary log", [][]any{{"log_bin", "ON"}, provider}, false, "0"},
		{"no group", [][]any{{"log_bin", "OFF"}, {"wsrep_provider", "none"}}, false, "0"},
		{"no Galera", [][]any{{"log_bin", "OFF"}}, false, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLeaking(test.vars)
			l.byText, l.fails["guard"] = test.byText, sqlfence.ErrStale
			db, err := sqlfence.OpenDB(l, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
			const query = "UPDATE books SET price = 1"
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, query); !errors.Is(err, sqlfence.ErrStale) {
				t.Fatalf("%v, want ErrStale", err)
			}
			if err := tx.Commit(); errors.Is(err, sqlfence.ErrStale) != test.leaks {
				t.Errorf("Commit: %v", err)
			}
			conn, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			l.sent = ""
			if _, err := conn.ExecContext(ctx, query); !errors.Is(err, sqlfence.ErrStale) {
				t.Fatalf("%v, want ErrStale", err)
			}
			l.fails = nil
			_, err = conn.ExecContext(ctx, query)
			want := map[bool]string{true: "UPDATE ? UPDATE ", false: "UPDATE UPDATE "}[test.leaks]
			if test.byText == "1" {
				want = "UPDATE ? "
			}
			if (err != nil) != (test.byText == "1") || l.sent != want {
				t.Errorf("behind a refusal by itself: %v; sent %s", err, l.sent)
			}
		})
	}
}

// In Observe mode the transaction continues from a savepoint. An error of the savepoint that is about the transaction
// becomes the statement's error.
func TestObserveOnALeakingNode(t *testing.T) {
	deadlock := &mysqlError{1213, "Deadlock found"}
	for _, test := range []struct {
		name  string
		fails map[string]error
		err   error
		sent  string
	}{
		{"refused", map[string]error{"guard": sqlfence.ErrStale}, nil, "SAVEPOINT UPDATE ROLLBACK TO UPDATE "},
		{"not refused", nil, nil, "SAVEPOINT UPDATE "},
		{"rolled back before", map[string]error{"SAVEPOINT": deadlock}, deadlock, "SAVEPOINT "},
		{"rolled back behind", map[string]error{"guard": sqlfence.ErrStale, "ROLLBACK TO": deadlock}, deadlock, "SAVEPOINT UPDATE ROLLBACK TO "},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLeaking([][]any{{"log_bin", "OFF"}, {"wsrep_provider", "libgalera_smm.so"}})
			db, err := sqlfence.OpenDB(l, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithMode(sqlfence.Observe),
				sqlfence.WithTable("books", sqlfence.RowFence("fence_token")), sqlfence.WithObserver(func(context.Context, sqlfence.Event) {}))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
			if _, err := db.ExecContext(ctx, "UPDATE books SET price = 0"); err != nil { // the facts are queried before
				t.Fatal(err)
			}
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			l.fails, l.sent = test.fails, ""
			got := error(nil)
			if _, err := tx.ExecContext(ctx, "UPDATE books SET price = 1"); err != nil {
				got = err
			}
			if !errors.Is(got, test.err) || l.sent != test.sent {
				t.Errorf("%v; sent %s, want %s", got, l.sent, test.sent)
			}
		})
	}
}
