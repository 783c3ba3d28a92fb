// Package rqlite tests that sqlfence refuses rqlite's driver, because its Begin doesn't begin a transaction.
package rqlite

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rqlite/gorqlite/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestRefused(t *testing.T) {
	const nowhere = "http://127.0.0.1:1"
	plain, err := sql.Open("rqlite", nowhere)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	tx, err := (&stdlib.Conn{}).Begin() // returns no error and begins nothing
	if err != nil || tx.Rollback() != nil {
		t.Error("it has transactions now: test the driver")
	}
	for _, named := range []sqlfence.Dialect{0, sqlfence.SQLite} {
		var opts []sqlfence.Option
		var ofTokens []tokens.Option
		var ofLeases []lease.Option
		if named != 0 {
			opts, ofTokens, ofLeases = append(opts, sqlfence.WithDialect(named)), append(ofTokens, tokens.WithDialect(named)), append(ofLeases, lease.WithDialect(named))
		}
		for what, open := range map[string]func() error{
			"Open":       func() error { _, err := sqlfence.Open("rqlite", nowhere, opts...); return err },
			"WrapDriver": func() error { _, err := sqlfence.WrapDriver(&stdlib.Driver{}, opts...); return err },
			"tokens":     func() error { _, err := tokens.New(plain, ofTokens...); return err },
			"lease":      func() error { _, err := lease.New(plain, ofLeases...); return err },
		} {
			if err := open(); err == nil || !strings.Contains(err.Error(), "is refused: its Begin, Commit and Rollback do nothing") {
				t.Errorf("%s, %v: %v", what, named, err)
			}
		}
	}
}
