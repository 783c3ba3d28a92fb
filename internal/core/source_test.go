package core_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A supplier is a token source with some tokens. It records the requested names.
type supplier struct {
	tokens []sqlfence.Token
	err    error
	asked  []string
}

func (s *supplier) source(_ context.Context, names []string) (got []sqlfence.Token, err error) {
	s.asked = append(s.asked, strings.Join(names, "+"))
	for _, token := range s.tokens {
		if slices.ContainsFunc(names, func(name string) bool {
			return name == token.Name || strings.HasSuffix(name, "/") && strings.HasPrefix(token.Name, name)
		}) {
			got = append(got, token)
		}
	}
	return got, s.err
}

var (
	suppliedTables = []sqlfence.Option{
		sqlfence.WithTable("books", fenced),
		sqlfence.WithTable("shelves", fenced),
		sqlfence.WithTable("pages", fenced, sqlfence.Resource("books")),
		sqlfence.WithTable("pens", fenced, sqlfence.Key("id")),
		sqlfence.WithTable("notes", fenced, sqlfence.Optional()),
		sqlfence.WithTable("invoices", sqlfence.Serial("serial")),
		sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
		sqlfence.WithTable("results", sqlfence.ClaimOf("jobs")),
	}
	errNotLeading = errors.New("not leading")
)

// A source is called once, only for the tokens that a statement needs and the context lacks.
func TestSourceIsAskedForWhatIsMissing(t *testing.T) {
	const both = "WITH b AS (DELETE FROM books RETURNING id) UPDATE shelves SET price = 1"
	has := []sqlfence.Token{token("books", 7), token("shelves", 8), token("pens/1", 9), token("pens/2", 10)}
	for _, tt := range []struct {
		name, query string
		ctx         []sqlfence.Token
		has         []sqlfence.Token
		asked       []string
		is          error
		args        []driver.Value
	}{
		{"no context", "UPDATE books SET price = ?", nil, has, []string{"books"}, nil, []driver.Value{int64(1), int64(7)}},
		{"its resource", "UPDATE pages SET price = ?", nil, has, []string{"books"}, nil, []driver.Value{int64(1), int64(7)}},
		{"the context's wins", "UPDATE books SET price = ?", []sqlfence.Token{token("books", 6)}, has, nil, nil, []driver.Value{int64(1), int64(6)}},
		{"a context for something else", "UPDATE books SET price = ?", []sqlfence.Token{token("shelves", 6)}, has, []string{"books"}, nil, []driver.Value{int64(1), int64(7)}},
		{"it has none", "UPDATE books SET price = ?", nil, nil, []string{"books"}, sqlfence.ErrNoFence, nil},
		{"an Optional table", "UPDATE notes SET price = ?", nil, []sqlfence.Token{token("notes", 5)}, []string{"notes"}, nil, []driver.Value{int64(1), int64(5)}},
		{"an Optional table, and it has none", "UPDATE notes SET price = ?", nil, has, []string{"notes"}, nil, []driver.Value{int64(1)}},
		{"rows", "INSERT INTO pens (id, price) VALUES (2, ?)", nil, has, []string{"pens/"}, nil, []driver.Value{int64(1), int64(10)}},
		{"other rows", "INSERT INTO pens (id, price) VALUES (3, ?)", nil, has, []string{"pens/"}, sqlfence.ErrOutOfScope, nil},
		{"no rows", "INSERT INTO pens (id, price) VALUES (3, ?)", nil, nil, []string{"pens/"}, sqlfence.ErrNoFence, nil},
		{"the context has a row", "INSERT INTO pens (id, price) VALUES (2, ?)", []sqlfence.Token{token("pens/1", 6)}, has, nil, sqlfence.ErrOutOfScope, nil},
		{"no table", "UPDATE others SET price = ?", nil, has, nil, nil, []driver.Value{int64(1)}},
		{"a read", "SELECT price FROM books WHERE id = ?", nil, has, nil, nil, []driver.Value{int64(1)}},
		{"no tokens needed", "UPDATE invoices SET total = ?", nil, has, nil, nil, []driver.Value{int64(1)}},
		{"a row with a claim", "UPDATE jobs SET price = ?", nil, append(has, token("jobs/1", 3)), []string{"jobs/"}, nil, []driver.Value{int64(1), "1:3"}},
		{"a takeover", "UPDATE jobs SET attempt = attempt + ?", nil, has, nil, nil, []driver.Value{int64(1)}},
		{"a new row with a claim", "INSERT INTO jobs (id, price) VALUES (1, ?)", nil, has, nil, nil, []driver.Value{int64(1)}},
		{"a takeover beside another write", "WITH b AS (DELETE FROM books RETURNING id) UPDATE jobs SET attempt = attempt + ?", nil, has, []string{"books"}, nil, []driver.Value{int64(7), int64(1)}},
		{"a result", "UPDATE results SET price = ?", nil, append(has, token("jobs/1", 3)), nil, sqlfence.ErrNoFence, nil},
		{"a result with the job's claim", "UPDATE results SET price = ?", []sqlfence.Token{token("jobs/1", 3)}, has, nil, nil, []driver.Value{int64(1), "1:3", "1", "1"}},
		{"a result beside another write", "WITH b AS (DELETE FROM books RETURNING id) UPDATE results SET price = ?", []sqlfence.Token{token("jobs/1", 3)}, has, []string{"books"}, nil, []driver.Value{int64(7), int64(1), "1:3", "1", "1"}},
		{"unguardable", "CREATE TRIGGER t AFTER INSERT ON x BEGIN DELETE FROM books; END -- ?", nil, has, nil, sqlfence.ErrUnguardable, nil},
	} {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, prepared %v", tt.name, prepared), func(t *testing.T) {
				base, s := new(fakedb.Recorder), &supplier{tokens: tt.has}
				db := open(t, base, append(suppliedTables, sqlfence.WithTokenSource(s.source))...)
				ctx := t.Context()
				if tt.ctx != nil {
					ctx = sqlfence.WithFence(ctx, tt.ctx...)
				}
				exec := func() error { _, err := db.ExecContext(ctx, tt.query, 1); return err }
				if prepared {
					stmt, err := db.PrepareContext(ctx, tt.query)
					if err != nil {
						if !errors.Is(err, tt.is) {
							t.Fatal(err)
						}
						return
					}
					defer stmt.Close()
					if len(s.asked) > 0 {
						t.Errorf("asked for %q when it was prepared", s.asked)
					}
					exec = func() error { _, err := stmt.ExecContext(ctx, 1); return err }
				}
				err := exec()
				if !errors.Is(err, tt.is) || !slices.Equal(s.asked, tt.asked) || !slices.Equal(base.Values(), tt.args) {
					t.Errorf("%v, asked for %q, sent %v; want %v, %q, %v", err, s.asked, base.Values(), tt.is, tt.asked, tt.args)
				}
			})
		}
	}
	t.Run("two tables", func(t *testing.T) {
		for _, tt := range []struct {
			ctx   []sqlfence.Token
			asked string
			want  []driver.Value
		}{
			{nil, "books+shelves", []driver.Value{int64(7), int64(8)}},
			{[]sqlfence.Token{token("shelves", 6)}, "books", []driver.Value{int64(7), int64(6)}},
			{[]sqlfence.Token{token("shelves", 6), token("books", 5)}, "", []driver.Value{int64(5), int64(6)}},
		} {
			base, s := new(fakedb.Recorder), &supplier{tokens: has}
			db := openPostgres(t, base, append(suppliedTables, sqlfence.WithTokenSource(s.source))...)
			if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), tt.ctx...), both); err != nil {
				t.Fatal(err)
			}
			text := base.Sent[0]
			if asked := strings.Join(s.asked, "|"); asked != tt.asked || !containsAll(text, tt.want) {
				t.Errorf("asked for %q, want %q; sent %s, want %v in it", asked, tt.asked, text, tt.want)
			}
		}
	})
}

func containsAll(text string, values []driver.Value) bool {
	return !slices.ContainsFunc(values, func(v driver.Value) bool { return !strings.Contains(text, fmt.Sprint(v)) })
}

// A source's mistake or error refuses the statement before it reaches the database, and is reported once. In Observe
// mode the statement passes.
func TestSourceThatRefuses(t *testing.T) {
	const update, insert = "UPDATE books SET price = 1", "INSERT INTO pens (id) VALUES (1)"
	for _, tt := range []struct {
		name, query string
		tokens      []sqlfence.Token
		err         error
		is          []error
	}{
		{"an error", update, nil, errNotLeading, []error{sqlfence.ErrNoFence, errNotLeading}},
		{"an error beside a token", update, []sqlfence.Token{token("books", 7)}, errNotLeading, []error{sqlfence.ErrNoFence, errNotLeading}},
		{"an error for an Optional table", "UPDATE notes SET price = 1", nil, errNotLeading, []error{sqlfence.ErrNoFence, errNotLeading}},
		{"a lost connection", update, nil, driver.ErrBadConn, []error{sqlfence.ErrNoFence}},
		{"a call to be repeated", update, nil, driver.ErrSkip, []error{sqlfence.ErrNoFence, driver.ErrSkip}},
		{"another name", update, []sqlfence.Token{token("shelves", 7)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"another name, too", update, []sqlfence.Token{token("books", 7), token("shelves", 7)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"a row of it", update, []sqlfence.Token{token("books/1", 7)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"the table of a row", insert, []sqlfence.Token{token("pens", 7)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"a name twice", update, []sqlfence.Token{token("books", 7), token("books", 8)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"a token twice", update, []sqlfence.Token{token("books", 7), token("books", 7)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"a row in two spellings", insert, []sqlfence.Token{token("pens/1", 7), token("pens/caf\u00e9", 7), token("pens/cafe\u0301", 8)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"no value", update, []sqlfence.Token{token("books", 0)}, nil, []error{sqlfence.ErrNoFence, sqlfence.ErrInvalid}},
		{"too high a value", update, []sqlfence.Token{token("books", sqlfence.MaxToken+1)}, nil, []error{sqlfence.ErrTokenLimit}},
	} {
		for _, mode := range [][]sqlfence.Option{nil, observeMode} {
			t.Run(fmt.Sprintf("%s, observed %v", tt.name, mode != nil), func(t *testing.T) {
				var o observed
				calls := 0
				base := new(fakedb.Recorder)
				given := slices.Clone(tt.tokens)
				db := open(t, base, slices.Concat(suppliedTables, o.opts(), mode, []sqlfence.Option{
					sqlfence.WithTokenSource(func(context.Context, []string) ([]sqlfence.Token, error) { calls++; return given, tt.err })})...)
				_, err := db.Exec(tt.query)
				if calls != 1 || len(o.events) != 1 || !slices.Equal(given, tt.tokens) {
					t.Errorf("asked %d times, events %v, the source's tokens are now %v", calls, o.events, given)
				}
				if mode != nil {
					if base.WantSent(t, tt.query); err != nil || o.events[0].Kind != sqlfence.WouldRefuse {
						t.Errorf("%v, event %v", err, o.events[0])
					}
					return
				}
				base.WantSent(t)
				for _, is := range tt.is {
					if !errors.Is(err, is) || !errors.Is(o.events[0].Err, is) {
						t.Errorf("%v, want %v", err, is)
					}
				}
				if n := strings.Count(err.Error(), "sqlfence:"); n != 1 || errors.Is(err, driver.ErrBadConn) {
					t.Errorf("error: %v", err)
				}
			})
		}
	}
}

// A source can't replace the context's tokens.
func TestSourceGivesWhatTheContextHas(t *testing.T) {
	base := new(fakedb.Recorder)
	db := openPostgres(t, base, append(suppliedTables, sqlfence.WithTokenSource(func(context.Context, []string) ([]sqlfence.Token, error) {
		return []sqlfence.Token{token("books", 7), token("shelves", 9)}, nil
	}))...)
	_, err := db.ExecContext(sqlfence.WithFence(t.Context(), token("shelves", 6)), "WITH b AS (DELETE FROM books) UPDATE shelves SET price = 1")
	if base.WantSent(t); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Error(err)
	}
}

// A token whose name has another normalization form counts as the table's. The source's slice stays unchanged.
func TestSourceNamesAreNormalised(t *testing.T) {
	given := []sqlfence.Token{token("cafe\u0301", 7)}
	base := new(fakedb.Recorder)
	db := open(t, base, sqlfence.WithTable("books", fenced, sqlfence.Resource("caf\u00e9")),
		sqlfence.WithTokenSource(func(context.Context, []string) ([]sqlfence.Token, error) { return given, nil }))
	if _, err := db.Exec("UPDATE books SET price = ?", 1); err != nil || !slices.Equal(base.Values(), []driver.Value{int64(1), int64(7)}) {
		t.Errorf("%v, sent %v", err, base.Values())
	}
	if given[0].Name != "cafe\u0301" {
		t.Errorf("the source's token is called %+q now", given[0].Name)
	}
}

func TestBypassWinsOverTheSource(t *testing.T) {
	base, s := new(fakedb.Recorder), &supplier{err: errNotLeading}
	db := open(t, base, append(suppliedTables, sqlfence.WithTokenSource(s.source))...)
	if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "repair"), "UPDATE books SET price = 1"); err != nil || s.asked != nil {
		t.Errorf("%v, asked for %q", err, s.asked)
	}
}

// A transaction can only continue under the tokens of its earlier writes, because its reads were made under the lease
// of these tokens.
func TestTransactionKeepsItsTerm(t *testing.T) {
	base, s := new(fakedb.Recorder), &supplier{tokens: []sqlfence.Token{token("books", 7), token("shelves", 1)}}
	db := open(t, base, append(suppliedTables, sqlfence.WithTokenSource(s.source))...)
	db.SetMaxOpenConns(1)
	const query = "UPDATE books SET price = ?"
	for _, tt := range []struct {
		name  string
		begun context.Context
		own   context.Context // the second write's context
		first int64
		then  int64
		check func(error) bool
	}{
		{"the same", t.Context(), t.Context(), 7, 7, func(err error) bool { return err == nil }},
		{"a newer one", t.Context(), t.Context(), 7, 9, func(err error) bool {
			var stale *sqlfence.StaleError
			return errors.As(err, &stale) && stale.Table == "books" && stale.Token == token("books", 7) && stale.Current == 9
		}},
		{"an older one", t.Context(), t.Context(), 7, 6, func(err error) bool {
			return errors.Is(err, sqlfence.ErrNoFence) && errors.Is(err, sqlfence.ErrInvalid)
		}},
		{"the statement's own", t.Context(), sqlfence.WithFence(t.Context(), token("books", 9)), 7, 8, func(err error) bool { return err == nil }},
		{"the transaction's", sqlfence.WithFence(t.Context(), token("books", 5)), t.Context(), 7, 9, func(err error) bool { return err == nil }},
		{"beside the transaction's", sqlfence.WithFence(t.Context(), token("books", 5)), sqlfence.WithFence(t.Context(), token("shelves", 5)), 7, 9, func(err error) bool {
			return errors.Is(err, sqlfence.ErrStale)
		}},
	} {
		s.tokens[0].Value = tt.first
		tx, err := db.BeginTx(tt.begun, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(query, 1); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		s.tokens[0].Value = tt.then
		if _, err := tx.ExecContext(tt.own, query, 1); !tt.check(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := tx.Exec("UPDATE shelves SET price = ?", 1); err != nil && tt.begun == t.Context() {
			t.Errorf("%s: another resource: %v", tt.name, err)
		}
		// The next transaction, and statements outside of a transaction, don't use this transaction's tokens.
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.tokens[0].Value++
			if _, err := db.Exec(query, 1); err != nil {
				t.Errorf("after %s: %v", tt.name, err)
			}
		}
	}
	// A lost lease is noticed at the next statement, though the transaction has a token.
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(query, 1); err != nil {
		t.Fatal(err)
	}
	s.err = errNotLeading
	if _, err := tx.Exec(query, 1); !errors.Is(err, errNotLeading) {
		t.Errorf("after the loss: %v", err)
	}
}

// A database has exactly one WithTokenSource, whose function must not be nil.
func TestWithTokenSourceIsChecked(t *testing.T) {
	none := func(context.Context, []string) ([]sqlfence.Token, error) { return nil, nil }
	for _, opts := range [][]sqlfence.Option{
		{sqlfence.WithTokenSource(nil)},
		{sqlfence.WithTokenSource(none), sqlfence.WithTokenSource(none)},
	} {
		if _, err := sqlfence.OpenDB(new(fakedb.Recorder), append(opts, sqlfence.WithDialect(sqlfence.SQLite))...); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("OpenDB: %v", err)
		}
	}
}
