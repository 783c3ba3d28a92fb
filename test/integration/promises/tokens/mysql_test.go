package tokens_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Issue commits the token before it returns, and names are compared byte by byte, under all session settings.
func TestTokensInMySQLSessions(t *testing.T) {
	harness.EachMySQLSession(t, func(t *testing.T, db, plain *sql.DB) {
		ctx := t.Context()
		store, other := setupStore(t, db), setupStore(t, plain)
		names := []string{"books", "Books", "books ", "bücher", "本🔒", `a'b"c\`, "books\t", strings.Repeat("x", 512), strings.Repeat("x", 511)}
		for _, name := range names {
			for want := int64(1); want <= 3; want++ {
				from := []*tokens.Store{store, other, store}[want-1]
				if got := harness.IssueToken(t, from, name); got != want {
					t.Fatalf("%q = %d, want %d", name, got, want)
				}
				if got, err := other.Current(ctx, name); err != nil || got.Value != want {
					t.Errorf("%q is %v, %v for others, want %d", name, got, err, want)
				}
			}
		}
		for i, value := range []int64{9, 9, 12} {
			if err := store.Adopt(ctx, sqlfence.Token{Name: "bücher", Value: value}); err != nil {
				t.Error(i, err)
			}
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: "bücher", Value: 11}); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("Adopt of a lower token: %v", err)
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: "new", Value: 7}); err != nil {
			t.Error(err)
		}
		if err := store.Ensure(ctx, "books", "ensured", "Ensured"); err != nil {
			t.Error(err)
		}
		if _, err := store.Repair(ctx, 100); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, "ensured", "Ensured", "new", "newer") {
			if got := harness.IssueToken(t, store, name); got != 101 {
				t.Errorf("%q is %d after Repair, want 101", name, got)
			}
			if got, err := other.Current(ctx, name); err != nil || got.Value != 101 {
				t.Errorf("%q is %v, %v for others, want 101", name, got, err)
			}
		}
		if _, err := store.Rotate(ctx, "books"); err != nil {
			t.Error(err)
		}
		if _, err := store.Rotate(ctx, "books"); err != nil { // a second Rotate changes no row
			t.Error(err)
		}
		if _, err := other.Issue(ctx, "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("a retired name: %v", err)
		}
		if got := harness.IssueToken(t, other, "Books"); got != 102 {
			t.Errorf("a name beside the retired one: %d", got)
		}
		if _, err := store.Rotate(ctx, "nobody's"); !errors.Is(err, sqlfence.ErrUnknownName) {
			t.Errorf("Rotate of an unknown name: %v", err)
		}
	})
}

// Rotate retires also the names of rows, and sets stored tokens back.
func TestTokensRotateOnMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	store := setupStore(t, db)
	harness.MustExec(t, db, "CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint)")
	harness.MustExec(t, db, "INSERT INTO books VALUES (1, 800000000000000), (2, 0), (3, -800000000000000), (4, -8)")
	for _, name := range []string{"books", "books/1", "books/x/y", "books0", "books-3", "booksellers", "Books/1"} {
		harness.IssueToken(t, store, name)
	}
	if n, err := store.Rotate(t.Context(), "books", tokens.Mark{Table: "books", Column: "fence_token"}, tokens.RetireAll()); n != 2 || err != nil {
		t.Errorf("Rotate = %d, %v", n, err)
	}
	gone := fmt.Sprint("=", int64(sqlfence.MaxToken+1))
	harness.WantLedger(t, db, "=8", "Books/1=1", "books"+gone, "books-3=1", "books/1"+gone, "books/x/y"+gone, "books0=1", "booksellers=1")
}

// Setup refuses a table that would cut or mix up names. The error says what is wrong with it.
func TestTokensSetupOnMySQL(t *testing.T) {
	for _, test := range []struct{ name, create, want string }{
		{"text name", "CREATE TABLE fencing_tokens (name varchar(512) PRIMARY KEY, token bigint)", "column name is not a varbinary(512)"},
		{"short name", "CREATE TABLE fencing_tokens (name varbinary(255) PRIMARY KEY, token bigint)", "column name is not a varbinary(512)"},
		{"narrow token", "CREATE TABLE fencing_tokens (name varbinary(512) PRIMARY KEY, token integer)", "column token is not a bigint"},
		{"not unique", "CREATE TABLE fencing_tokens (name varbinary(512), token bigint)", "not unique"},
		{"unique prefix", "CREATE TABLE fencing_tokens (name varbinary(512), token bigint, UNIQUE (name(10)))", "not unique"},
		{"unique together", "CREATE TABLE fencing_tokens (name varbinary(512), token bigint, UNIQUE (name, token))", "not unique"},
		{"no transactions", "CREATE TABLE fencing_tokens (name varbinary(512) PRIMARY KEY, token bigint) ENGINE=MyISAM", "InnoDB"},
		{"required column", "CREATE TABLE fencing_tokens (name varbinary(512) PRIMARY KEY, token bigint, owner text NOT NULL)", "column owner needs a value"},
		{"view", "CREATE VIEW fencing_tokens AS SELECT CAST('books' AS BINARY(600)) AS name, CAST(1 AS SIGNED) AS token", "can't be used"},
		{"with more", "CREATE TABLE fencing_tokens (id integer AUTO_INCREMENT PRIMARY KEY, name varbinary(600) UNIQUE, token bigint, at timestamp DEFAULT now())", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := harness.MySQL.Raw(t, harness.MySQLDatabase(t))
			harness.MustExec(t, db, test.create)
			store := harness.NewStore(t, db)
			err := store.Setup(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Setup = %v, want %q", err, test.want)
			}
			if err == nil && harness.IssueToken(t, store, "books") != 1 {
				t.Error("the first token isn't 1")
			}
		})
	}
}

// A trigger on the ledger inserts a row into another table, and thereby replaces the LAST_INSERT_ID that the client
// receives.
func TestTokensBesideATriggerOnMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	store := harness.NewStore(t, db)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.MustExec(t, db, "CREATE TABLE audit (id bigint PRIMARY KEY AUTO_INCREMENT, token bigint)")
	for _, event := range []string{"INSERT", "UPDATE"} {
		harness.MustExec(t, db, "CREATE TRIGGER audit_"+event+" AFTER "+event+" ON fencing_tokens FOR EACH ROW INSERT INTO audit (token) VALUES (NEW.token)")
	}
	var last int64
	for range 3 {
		token, err := store.Issue(t.Context(), "books")
		if err != nil || token.Value <= last {
			t.Fatalf("after %d: %v, %v", last, token, err)
		}
		last = token.Value
		if current, err := store.Current(t.Context(), "books"); err != nil || current.Value != last {
			t.Errorf("issued %d, the current one is %v, %v", last, current, err)
		}
	}
	for _, value := range []int64{last + 5, last + 5, last} { // a higher token, the same token, a lower token
		err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: value})
		if errors.Is(err, sqlfence.ErrStale) != (value == last) || err != nil && value > last {
			t.Errorf("adopt %d: %v", value, err)
		}
	}
	if _, err := store.Rotate(t.Context(), "books"); err != nil {
		t.Error(err)
	}
	if _, err := store.Issue(t.Context(), "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
		t.Errorf("issue of a retired name: %v", err)
	}
}

// shortWait makes sessions give up a lock wait soon, in case the client stalls and doesn't end them. The timeout is
// longer than [harness.GiveUp] needs to end a session.
var shortWait = map[string]string{"innodb_lock_wait_timeout": "40"}

// A user who may only write to the ledger can end its own abandoned statement, and no statement of another session.
// This works although the pool has no free connection, because the abandoned connection no longer counts.
func TestTokensCancelledByAnyUserOfMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	setupStore(t, db)
	user := "u" + strings.ToLower(rand.Text())[:20]
	harness.MustExec(t, db, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'secret'")
	defer harness.MustExec(t, db, "DROP USER "+user+"@'127.0.0.1'")
	harness.MustExec(t, db, "GRANT SELECT, INSERT, UPDATE ON fencing_tokens TO "+user+"@'127.0.0.1'")
	poor := harness.MySQL.Raw(t, harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.User, c.Passwd, c.Params = user, "secret", shortWait }))
	poor.SetMaxOpenConns(1)
	patience := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"innodb_lock_wait_timeout": "3600"} })
	store, other := harness.NewStore(t, poor), harness.NewStore(t, harness.MySQL.Raw(t, patience))
	before := harness.IssueToken(t, store, "books")
	release := hold(t, harness.MySQL, dsn)
	defer release()
	waiting := func(n int) func() bool {
		return func() bool { return harness.MySQL.Waiting(t, db) == n }
	}
	patient := make(chan error, 1)
	var got sqlfence.Token
	go func() {
		var err error
		got, err = other.Issue(t.Context(), "books")
		patient <- err
	}()
	harness.Eventually(t, "another's call waits", waiting(1))
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() { _, err := store.Issue(ctx, "books"); failed <- err }()
		harness.Eventually(t, "the call waits", waiting(2))
		harness.GiveUp(t, db, func() {
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("Issue: %v", err)
			}
		}, waiting(1))
	}
	release()
	if err := <-patient; err != nil || got.Value != before+1 {
		t.Errorf("the other's token is %v, %v, want %d", got, err, before+1)
	}
}

// A statement that the driver gives up after its read timeout is also ended on the server.
func TestTokensReadTimeoutOfMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	direct := setupStore(t, db)
	limited := harness.MySQLWith(t, dsn, func(c *mysql.Config) {
		c.ReadTimeout, c.Params = 500*time.Millisecond, shortWait
	})
	store := harness.NewStore(t, harness.MySQL.Raw(t, limited))
	harness.Undisturbed(t, db, 250*time.Millisecond, func() error {
		before := harness.IssueToken(t, direct, "books")
		release := hold(t, harness.MySQL, dsn)
		defer release()
		harness.GiveUp(t, db, func() {
			if token, err := store.Issue(t.Context(), "books"); err == nil {
				t.Errorf("issued %v while the ledger was held", token)
			}
		}, func() bool { return harness.MySQL.Waiting(t, db) == 0 })
		release()
		if token, err := store.Issue(t.Context(), "books"); err != nil || token.Value != before+1 {
			return fmt.Errorf("the next token is %v, %v, want %d", token, err, before+1)
		}
		return nil
	})
}

// A call is cancelled at each of its messages. It returns a token that no other caller gets, or an error, and leaves
// neither a busy connection nor a lock on the name.
func TestTokensCancelledAtEachMessageOfMySQL(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	other := setupStore(t, harness.MySQL.Raw(t, dsn))
	network := new(harness.Faulty)
	db := harness.MySQL.Raw(t, network.DSN(t, dsn))
	store := harness.NewStore(t, db)
	for message, met := 0, true; met; message++ {
		met = false
		name := fmt.Sprint("books/", message)
		var last int64
		for range 2 { // first of a new name, then of one in the ledger
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			skip := message
			network.Arm(harness.NoFault, func(byte, []byte) bool {
				if skip--; skip < 0 {
					cancel()
				}
				return skip < 0
			})
			token, err := store.Issue(ctx, name)
			switch {
			case err == nil && token.Value <= last:
				t.Errorf("message %d: issued %v after %d", message, token, last)
			case err != nil && !errors.Is(err, context.Canceled):
				t.Errorf("message %d: %v", message, err)
			case err == nil:
				last = token.Value
			}
			harness.Eventually(t, "the connections are free", func() bool { return db.Stats().InUse == 0 })
			met = met || network.Met()
			network.Arm(harness.NoFault, nil)
			next := harness.IssueToken(t, other, name)
			if next <= last {
				t.Errorf("message %d: issued %d after %d", message, next, last)
			}
			last = next
		}
	}
}
