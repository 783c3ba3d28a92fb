package sqlfence_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/fakedb"
)

// A logger as it comes tells of a refused write, and what it is about.
func TestRefusalsAreLogged(t *testing.T) {
	for _, test := range []struct {
		name  string
		rules []sqlfence.Rule
		fails string
		token int64
		query string
		want  string
	}{
		{"stale", []sqlfence.Rule{fenced}, "sqlfence:nonce:stale:0:9", 7, "UPDATE books SET price = 1", "table=books token=books:000000000000007 current=9 statement=UPDATE"},
		{"not issued", []sqlfence.Rule{sqlfence.Ledger()}, "sqlfence:nonce:ledger:0:5", 7, "DELETE FROM books", "table=books token=books:000000000000007 current=5 statement=DELETE"},
		{"unknown name", []sqlfence.Rule{sqlfence.Ledger()}, "sqlfence:nonce:unknown:0:", 7, "DELETE FROM books", "table=books token=books:000000000000007 statement=DELETE"},
		{"no token", []sqlfence.Rule{fenced}, "", 0, "INSERT INTO books (id) VALUES (1)", "table=books statement=INSERT"},
		{"an invalid token", []sqlfence.Rule{fenced}, "", -7, "INSERT INTO books (id) VALUES (1)", "table=books statement=INSERT"},
		{"unguardable", []sqlfence.Rule{fenced}, "", 7, "TRUNCATE books", "table=books statement=TRUNCATE"},
		{"conflict", []sqlfence.Rule{sqlfence.Serial("serial")}, "sqlfence:nonce:conflict:0:4", 0, "UPDATE books SET price = 1", "table=books serial=3 current=4 statement=UPDATE"},
		{"locked", []sqlfence.Rule{sqlfence.EditLock("a", "b", "c")}, "sqlfence:nonce:locked:0:1:2:ada", 0, "UPDATE books SET price = 1", "table=books current=ada statement=UPDATE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			base := &fakedb.Recorder{Fails: func(string) error {
				if test.fails == "" {
					return nil
				}
				return errors.New("bad JSON path: '" + test.fails + "'")
			}}
			db := open(t, base, sqlfence.WithTable("books", test.rules...), sqlfence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			ctx := sqlfence.WithSerial(t.Context(), 3)
			if test.token != 0 {
				ctx = sqlfence.WithFence(ctx, token("books", test.token))
			}
			if _, err := db.ExecContext(ctx, test.query); err == nil {
				t.Error("not refused")
			}
			if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level=WARN") || !strings.HasSuffix(line, " "+test.want+"\n") {
				t.Errorf("the log has\n%swant a warning that ends with %q", line, test.want)
			}
		})
	}
}
