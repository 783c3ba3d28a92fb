package core_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A sealable stands for a PostgreSQL server. Its table books may be sealed.
type sealable struct {
	*fakedb.DB
	sealed bool
	fails  error  // of the query for facts
	sent   string // kinds of the sent statements
}

// A sealError is an error with its code and constraint, in the form of pgx.
type sealError struct{ message, state, ConstraintName string }

func (e *sealError) Error() string    { return e.message }
func (e *sealError) SQLState() string { return e.state }

// A sealNumber is a MySQL error.
type sealNumber struct {
	Number  uint16
	Message string
}

func (e *sealNumber) Error() string { return e.Message }

var (
	notProven   = &sealError{"ERROR: sqlfence: table books is sealed: the write carries no fencing token", "FT001", ""}
	notNegative = &sealError{`ERROR: new row for relation "books" violates check constraint "sqlfence_mark"`, "23514", "sqlfence_mark"}
)

// openSealable opens a fenced database with a table books that can be sealed.
func openSealable(t *testing.T) (*sql.DB, *sealable) {
	t.Helper()
	s := new(sealable)
	s.DB = fakedb.New(func(_ context.Context, call fakedb.Call) (fakedb.Response, error) {
		kind := kindOf(call.Query)
		s.sent += kind
		switch {
		case kind == "?":
			facts, err := s.facts()
			return fakedb.Response{Rows: [][]any{{facts}}}, err
		case kind == "u" && s.sealed:
			return fakedb.Response{}, notProven
		case kind == "s" && !s.sealed:
			return fakedb.Response{}, notNegative
		}
		return fakedb.Response{Affected: 1}, nil
	})
	s.Capabilities = func(query string) (string, error) { s.sent += kindOf(query); return s.facts() }
	db, err := sqlfence.OpenDB(s.DB, sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, s
}

// kindOf distinguishes the query for facts, and the sealed and unsealed forms of a statement.
func kindOf(query string) string {
	switch {
	case strings.Contains(query, "pg_trigger"):
		return "?"
	case !strings.Contains(query, "books"):
		return ""
	case strings.Contains(query, "THEN -"):
		return "s"
	}
	return "u"
}

func (s *sealable) kinds() (kinds string) {
	kinds, s.sent = s.sent, ""
	return kinds
}

// facts returns the response to the query for facts.
func (s *sealable) facts() (string, error) {
	if s.sealed {
		return `{"version": "` + fakedb.Version + `", "sealed": [0]}`, s.fails
	}
	return `{"version": "` + fakedb.Version + `"}`, s.fails
}

// The form of a write follows the seal. If the seal was added or removed since the query for facts, one write fails
// with a temporary error.
func TestTheFormFollowsTheSeal(t *testing.T) {
	const query = "UPDATE books SET price = $1 WHERE id = $2"
	noAnswer := errors.New("no answer")
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	type step struct {
		sealed bool
		err    error
	}
	for _, test := range []struct {
		name  string
		fails error
		steps []step
		want  string
	}{
		{"unsealed", nil, []step{{false, nil}, {false, nil}}, "?uu"},
		{"sealed", nil, []step{{true, nil}, {true, nil}}, "?ss"},
		{"sealed later, and unsealed", nil, []step{
			{false, nil}, {true, notProven}, {true, nil}, {true, nil}, {false, notNegative}, {false, nil}, {false, nil},
		}, "?uu?sss?uu"},
		{"no answer", noAnswer, []step{{false, noAnswer}, {true, noAnswer}}, "??"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, s := openSealable(t)
			s.fails = test.fails
			for _, step := range test.steps {
				s.sealed = step.sealed
				_, err := db.ExecContext(ctx, query, 1, 2)
				var passing interface{ Temporary() bool }
				if !errors.Is(err, step.err) || step.err != nil && step.err != noAnswer && !errors.As(err, &passing) {
					t.Errorf("%v, want %v", err, step.err)
				}
			}
			if got := s.kinds(); got != test.want {
				t.Errorf("sent %s, want %s", got, test.want)
			}
		})
	}
}

// In a transaction, which the refusal has ended, the error is temporary.
func TestASealInATransaction(t *testing.T) {
	db, s := openSealable(t)
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); err != nil {
		t.Fatal(err)
	}
	s.sealed = true
	runs := 0
	err := sqlfence.Retry(ctx, db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		_, err := tx.ExecContext(ctx, "UPDATE books SET price = 1")
		return err
	})
	if got := s.kinds(); err != nil || runs != 2 || got != "?uu?s" {
		t.Errorf("%d runs, sent %s, %v", runs, got, err)
	}
}

// The seal is queried again after package schema has changed it, but not after other statements of sqlfence's packages,
// such as issuing a token.
func TestSealingIsNoticed(t *testing.T) {
	db, s := openSealable(t)
	ctx := sqlfence.WithFence(t.Context(), token("books", 7))
	for _, statement := range []string{"UPDATE fencing_tokens SET token = 8", `CREATE TRIGGER "~sqlfence_write"`} {
		for range 2 {
			if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.ExecContext(trusted.Context(t.Context(), statement), statement); err != nil {
			t.Fatal(err)
		}
	}
	s.sealed = true
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); err != nil {
		t.Fatal(err)
	}
	if got := s.kinds(); got != "?uuuu?s" {
		t.Errorf("sent %s", got)
	}
}

// raising returns a function that returns the application's error if an unguarded statement fails with cause.
func raising(t *testing.T) func(cause error) error {
	var raised error
	db, err := sqlfence.OpenDB(fakedb.New(func(context.Context, fakedb.Call) (fakedb.Response, error) {
		return fakedb.Response{}, raised
	}), sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("shop.Books", sqlfence.RowFence("mark"), sqlfence.Resource("shelf"), sqlfence.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return func(cause error) error {
		raised = cause
		_, err := db.ExecContext(t.Context(), "DELETE FROM pens")
		return err
	}
}

// A seal's error becomes a typed error, even if the write was unguarded.
func TestSealsRefusalsAreTyped(t *testing.T) {
	s := raising(t)
	for _, test := range []struct {
		cause, want error
	}{
		{&sealError{"pq: sqlfence: table books is sealed: TRUNCATE carries no fencing token (write DELETE)", "FT001", ""}, sqlfence.ErrNoFence},
		{&sealNumber{51002, "sqlfence: stale token 7 for table books, which has 9"}, sqlfence.ErrStale},
		{&sealError{"sqlfence: token 12 for table books is not issued, the newest is 9", "FT003", ""}, sqlfence.ErrNotIssued},
		{&sealError{"sqlfence: table books is sealed: the write keeps the serial", "FT004", ""}, sqlfence.ErrNoSerial},
	} {
		err := s(test.cause)
		if !errors.Is(err, test.want) || !errors.Is(err, test.cause) || !strings.Contains(err.Error(), "shop.Books") {
			t.Errorf("%s: %v", test.cause, err)
		}
	}
	var stale *sqlfence.StaleError
	if err := s(&sealNumber{51002, "sqlfence: stale token 7 for table books, which has 9"}); !errors.As(err, &stale) ||
		stale.Token != token("shelf", 7) || stale.Current != 9 {
		t.Errorf("%+v", stale)
	}
	if err := s(&sealError{"sqlfence: stale token 7 for table two\nlines, which has 9", "FT002", ""}); !errors.As(err, &stale) || stale.Table != "two\nlines" {
		t.Errorf("a name with a line's end: %v", err)
	}
	if err := s(&sealNumber{51002, "sqlfence: stale token 7 for ta"}); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("a message that was cut: %v", err)
	}
}

// The text of a seal's error alone doesn't make an error a seal's, because a user may have written the text.
func TestSealsRefusalsCannotBeForged(t *testing.T) {
	s := raising(t)
	for _, text := range []string{
		"sqlfence: table books is sealed: ", "sqlfence: stale token 7 for table books, which has 9",
		"sqlfence: token 12 for table books is not issued, the newest is 9", `"sqlfence_mark"`, "sqlfence:stale:0:9", "",
	} {
		for _, cause := range []error{
			errors.New(text), &sealError{"invalid input syntax: " + text, "22P02", ""}, &sealError{text + "(SQLSTATE FT001)", "23505", "books_title_key"},
			&sealNumber{1062, "Duplicate entry '" + text + "'"}, &sealNumber{1644, text}, &sealError{text, "23514", "books_title_check"},
		} {
			if err := s(cause); !errors.Is(err, cause) || errors.Is(err, sqlfence.ErrStale) || errors.Is(err, sqlfence.ErrNoFence) || errors.Is(err, sqlfence.ErrNotIssued) {
				t.Errorf("%s: %v", cause, err)
			}
			if got := sqltext.ReadSealRefusal(cause); got != sqltext.NoSealRefusal {
				t.Errorf("%s is %d", cause, got)
			}
		}
	}
}

// If the database doesn't confirm a seal's refusal, the write fails, and its form stays.
func TestARefusalIsAQuestion(t *testing.T) {
	sent := ""
	db, err := sqlfence.OpenDB(fakedb.New(func(_ context.Context, call fakedb.Call) (fakedb.Response, error) {
		kind := kindOf(call.Query)
		sent += kind
		if kind == "u" {
			return fakedb.Response{}, notProven // from a function that throws the seal's code
		}
		return fakedb.Response{Columns: []string{"sealed"}}, nil
	}), sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 2 {
		if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), token("books", 7)), "UPDATE books SET price = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Error(err)
		}
	}
	// The connection's first query isn't recorded.
	if want := "u?u"; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
}

func TestSealedRules(t *testing.T) {
	for _, test := range []struct {
		dialect sqlfence.Dialect
		rules   []sqlfence.Rule
		ok      bool
	}{
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed()}, true},
		{sqlfence.MySQL, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed(), sqlfence.Ledger(), sqlfence.Key("id"), sqlfence.SingleUse()}, true},
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.Sealed()}, false},
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.Sealed(), sqlfence.Ledger()}, false},
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed(), sqlfence.Optional()}, false},
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed(), sqlfence.UnfencedInserts()}, false},
		{sqlfence.SQLite, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed()}, false},
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed(), sqlfence.EditLock("by", "since", "until")}, false},
		{sqlfence.Postgres, []sqlfence.Rule{sqlfence.RowFence("mark"), sqlfence.Sealed(), sqlfence.Serial("version", sqlfence.Required())}, true},
	} {
		_, err := sqlfence.OpenDB(new(fakedb.DB), sqlfence.WithDialect(test.dialect), sqlfence.WithTable("books", test.rules...))
		if (err == nil) != test.ok || err != nil && !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}

// The error of a sealed table on SQLite names the page that explains seals.
func TestSealedOnSQLite(t *testing.T) {
	_, err := sqlfence.OpenDB(new(fakedb.DB), sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", sqlfence.RowFence("mark"), sqlfence.Sealed()))
	if !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "docs/sealed.md") {
		t.Error(err)
	}
}

// The query has the table's name as registered, because MySQL may distinguish capital letters.
func TestSealOfTableInCapitals(t *testing.T) {
	asked := ""
	db, err := sqlfence.OpenDB(fakedb.New(func(_ context.Context, call fakedb.Call) (fakedb.Response, error) {
		if strings.Contains(call.Query, "information_schema.triggers") {
			asked = call.Query
		}
		return fakedb.Response{Columns: []string{"any"}}, nil
	}), sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("Shop.Books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "Shop.Books", Value: 7}), "UPDATE Shop.Books SET price = 1"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(asked, "_utf8mb4'Shop'") || !strings.Contains(asked, "_utf8mb4'Books'") {
		t.Errorf("asked %q", asked)
	}
}
