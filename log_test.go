package sqlfence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A logger logs a refused write with the refusal's attributes.
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

// logged is a log that a timer writes as well.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// take returns what was written since the last call.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// The log has a line for each statement that Observe mode lets through, and once a minute the number of further writes.
// An observer gets each event. The number of statements that the log counts is limited.
func TestObservedWritesAreLoggedByStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		var events int
		db, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlite, sqlfence.WithMode(sqlfence.Observe), sqlfence.WithTable("books", fenced),
			sqlfence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			sqlfence.WithObserver(func(context.Context, sqlfence.Event) { events++ }))
		if err != nil {
			t.Fatal(err)
		}
		send := func(format string, n int) {
			for i := range n {
				if _, err := db.ExecContext(t.Context(), fmt.Sprintf(format, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		lines := func() string {
			synctest.Wait()
			return regexp.MustCompile(`(?m)^time=\S+ | error="(\\.|[^"])*"`).ReplaceAllString(log.take(), "")
		}
		want := func(when, want string) {
			if got := lines(); got != want {
				t.Errorf("%s the log has\n%swant\n%s", when, got, want)
			}
		}
		const line = `level=WARN msg="sqlfence: would refuse" query="`
		send("UPDATE books SET price = %d", 100)
		send("DELETE FROM books WHERE id = %d", 1)
		want("first", line+"UPDATE books SET price = 0\" table=books statement=UPDATE\n"+
			line+"DELETE FROM books WHERE id = 0\" table=books statement=DELETE\n")
		time.Sleep(time.Minute)
		want("after a minute", line+"UPDATE books SET price = ?\" times=99 table=books statement=UPDATE\n")
		send("UPDATE books SET price = %d", 3)
		send("DELETE FROM books WHERE id = %d", 1)
		time.Sleep(time.Minute)
		want("after the second minute", line+"DELETE FROM books WHERE id = 0\" table=books statement=DELETE\n"+
			line+"UPDATE books SET price = ?\" times=3 table=books statement=UPDATE\n")
		time.Sleep(time.Hour)
		want("after an hour", "")
		if events != 105 {
			t.Errorf("the observer got %d events, want 105", events)
		}

		send("UPDATE books SET price = price_%d", 2000)
		if n := strings.Count(lines(), "\n"); n != 1001 {
			t.Errorf("2000 statements are %d lines", n)
		}
		time.Sleep(time.Minute)
		want("for the others", line+"(other statements)\" times=999 table=books statement=OTHER\n")
		db.Close()
		time.Sleep(time.Hour) // the bubble ends with its timers
	})
}
