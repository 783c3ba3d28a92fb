package tokens_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/tokens"
)

// openStore opens a Store on a fake of SQLite, which has only a ledger.
func openStore() (*sql.DB, *tokens.Store) {
	newest := map[string]int64{}
	db := sql.OpenDB(fakedb.New(func(_ context.Context, c fakedb.Call) (answer fakedb.Response, err error) {
		if c.Kind != fakedb.Exec && c.Kind != fakedb.Query {
			return answer, nil
		}
		name := c.Args[0].(string)
		switch {
		case strings.Contains(c.Query, "json_each"):
			var names []string
			if err := json.Unmarshal([]byte(name), &names); err != nil {
				return answer, err
			}
			for _, name := range names {
				newest[name]++
				answer.Rows = append(answer.Rows, []any{name, newest[name]})
			}
			return answer, nil
		case strings.Contains(c.Query, "AS count"):
			newest[name] += c.Args[1].(int64)
		case strings.Contains(c.Query, "INSERT"):
			newest[name] = max(newest[name], c.Args[1].(int64))
		}
		token, ok := newest[name]
		switch {
		case strings.Contains(c.Query, "AS found"): // a query that decides, and asks whether a standby answers
			return fakedb.Response{Columns: make([]string, 4), Rows: [][]any{{false, ok, nil, token}}}, nil
		case ok:
			answer.Rows = [][]any{{token}}
		}
		return answer, nil
	}))
	store, err := tokens.New(db, tokens.WithDialect(sqlfence.SQLite)) // only for a driver that sqlfence doesn't know
	if err != nil {
		log.Fatal(err)
	}
	return db, store
}

// Each token of a name is higher than the name's last one. Every name has its own numbers.
func ExampleStore_Issue() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	for _, name := range []string{"books", "books", "pens"} {
		token, err := store.Issue(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(token)
	}
	// Output:
	// books:000000000000001
	// books:000000000000002
	// pens:000000000000001
}

// A job that writes to several resources takes all their tokens by one statement, or none.
func ExampleStore_IssueMany() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	if _, err := store.Issue(ctx, "accounts/9"); err != nil {
		log.Fatal(err)
	}
	issued, err := store.IssueMany(ctx, "accounts/9", "accounts/7")
	if err != nil {
		log.Fatal(err)
	}
	for _, token := range issued {
		fmt.Println(token)
	}
	ctx = sqlfence.WithFence(ctx, issued...) // writes carry both

	_, err = store.IssueMany(ctx, "accounts/7", "accounts/7")
	fmt.Println(err)
	// Output:
	// accounts/9:000000000000002
	// accounts/7:000000000000001
	// sqlfence: invalid argument: the name "accounts/7" comes twice
}

// With Do the latest run of a job wins: the writes of an earlier run are refused from then on.
func ExampleStore_Do() {
	db, store := openStore()
	defer db.Close()

	err := store.Do(context.Background(), "books", func(ctx context.Context) error {
		token, _ := sqlfence.FenceFrom(ctx, "books")
		fmt.Println("writes carry", token)
		return nil
	})
	fmt.Println(err)
	// Output:
	// writes carry books:000000000000001
	// <nil>
}

// Another lock service issues the tokens, here up to 4711. Adopt makes the ledger follow.
func ExampleStore_Adopt() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	granted := sqlfence.Token{Name: "books", Value: 4711} // an etcd revision, for example
	fmt.Println("the newest:", store.Adopt(ctx, granted))

	err := store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 4700}) // an older one
	var stale *sqlfence.StaleError
	if errors.As(err, &stale) {
		fmt.Println("too late, the newest is", stale.Current)
	}
	// Output:
	// the newest: <nil>
	// too late, the newest is 4711
}

// Use Current for display only: when its answer arrives, a newer token may exist.
func ExampleStore_Current() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	_, err := store.Current(ctx, "books")
	fmt.Println(errors.Is(err, sqlfence.ErrUnknownName))
	if _, err := store.Issue(ctx, "books"); err != nil {
		log.Fatal(err)
	}
	newest, err := store.Current(ctx, "books")
	fmt.Println(newest, err)
	// Output:
	// true
	// books:000000000000001 <nil>
}
