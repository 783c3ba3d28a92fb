package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// newest is the newest token of every name, and the mark of every row.
const newest = 5

// A rule is a way to fence the table books, and what the context of a write needs for it.
type rule struct {
	name   string
	table  []sqlfence.Rule
	fences func(ctx context.Context, caller int) context.Context
	seal   func(*sql.DB) error // nil for a table that isn't sealed
}

// sealedFence is the contestant whose table is sealed, with the rows' marks alone.
const sealedFence = "RowFence, Sealed"

// rules are those that sqlfence has.
var rules = []rule{
	{"RowFence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, withToken, nil},
	{"Ledger", []sqlfence.Rule{sqlfence.Ledger()}, withToken, nil},
	{"Serial", []sqlfence.Rule{sqlfence.Serial("serial")}, nil, nil},
	{"Key", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}, withKeyToken, nil},
	{"EditLock", []sqlfence.Rule{sqlfence.EditLock("editedby", "editedsince", "editedexpiry")}, withEditor, nil},
}

func withToken(ctx context.Context, _ int) context.Context {
	return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: newest})
}

func withKeyToken(ctx context.Context, caller int) context.Context {
	return sqlfence.WithFence(ctx, sqlfence.Token{Name: fmt.Sprint("books/", caller+1), Value: newest})
}

func withEditor(ctx context.Context, caller int) context.Context {
	return sqlfence.WithEditor(ctx, caller+1)
}

// wrap opens a database with the rule on books, and more options.
func (r rule) wrap(more ...sqlfence.Option) wrapping {
	return fenced(append([]sqlfence.Option{sqlfence.WithTable("books", r.table...)}, more...)...)
}

// seals seals the table if the rule has a seal.
func (r rule) seals(sh *shop) error {
	if r.seal == nil || !sh.lead {
		return nil
	}
	return r.seal(sh.db)
}

// mark returns the inserted value that makes the row's mark the newest token.
func (r rule) mark() int {
	if r.seal != nil {
		return -newest
	}
	return newest
}

// contexts returns the context of each caller's writes.
func (r rule) contexts(callers int) []context.Context {
	contexts := make([]context.Context, callers)
	for caller := range contexts {
		contexts[caller] = context.Background()
		if r.fences != nil {
			contexts[caller] = r.fences(contexts[caller], caller)
		}
	}
	return contexts
}

// A shop is a database with the table books, which has a row for each caller and at
// least as many as it was asked for, and the ledger.
type shop struct {
	target
	*stage
	db *sql.DB
}

// openShop opens a shop. All contestants have identical columns, including unused columns.
func (t target) openShop(s *stage, wrap wrapping, rows int) (*shop, error) {
	db, err := t.open(s, wrap)
	if err != nil {
		return nil, err
	}
	sh := &shop{t, s, db}
	if !s.lead {
		return sh, nil
	}
	store, err := tokens.New(db, tokens.WithDialect(t.dialect))
	if err != nil {
		return nil, err
	}
	if err := store.Setup(context.Background()); err != nil {
		return nil, err
	}
	return sh, setUp(db,
		fmt.Sprintf("INSERT INTO fencing_tokens (name, token) VALUES ('books', %d)", newest),
		fmt.Sprintf(`CREATE TABLE books (id bigint PRIMARY KEY, title text, price bigint NOT NULL CHECK (price >= 0),
			fence_token bigint, serial bigint, editedby bigint, editedsince %s, editedexpiry %[1]s)`, t.moment),
		sh.fill(1, max(rows, s.callers)))
}

// fill adds books.
func (sh *shop) fill(from, to int) string {
	var rows []string
	for id := from; id <= to; id++ {
		rows = append(rows, fmt.Sprintf("(%d, 'a title', 10, %d, 1)", id, newest))
	}
	return "INSERT INTO books (id, title, price, fence_token, serial) VALUES " + strings.Join(rows, ", ")
}

// execute returns a call that executes a query, prepared or not.
func (sh *shop) execute(prepared bool, query string) (func(ctx context.Context, args ...any) error, error) {
	if !prepared {
		return func(ctx context.Context, args ...any) error { return one(sh.db.ExecContext(ctx, query, args...)) }, nil
	}
	stmt, err := sh.db.Prepare(query)
	if err != nil {
		return nil, err
	}
	sh.cleanup(func() { stmt.Close() })
	return func(ctx context.Context, args ...any) error { return one(stmt.ExecContext(ctx, args...)) }, nil
}

// one checks that a write has changed one row, because a contestant without effect would win.
func one(result sql.Result, err error) error { return wrote(1, result, err) }

func wrote(rows int, result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != int64(rows) {
		err = fmt.Errorf("wrote %d rows, want %d", n, rows)
	}
	return err
}
