package effects_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An effect is the result of a statement, with the rows before and after it.
type effect struct {
	before, after []effectRow
	result        string // the rows affected, or those returned
	err           error
}

// files is locked for a statement that may create a file. The statement names the file, and all bases share the working
// folder.
var files sync.Mutex

// An effectRow is a row of a table, and its stored token.
type effectRow struct{ content, mark string }

// run runs the statements of before and then the sample, and rolls all back.
func (l *effectLab) run(ctx context.Context, t *testing.T, db *sql.DB, s *effectSample, way string, before ...string) (e effect) {
	t.Helper()
	if s.alone() {
		files.Lock()
		defer files.Unlock()
	}
	around := sqlfence.Bypass(t.Context(), "around the statement under test")
	c, err := db.Conn(around)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exec := func(text string) error {
		_, err := c.ExecContext(around, text)
		return err
	}
	// ROLLBACK is a text here, because a statement of the corpus may end the transaction itself.
	defer func() { _ = exec("ROLLBACK") }()
	if s.is("execute") { // a prepared statement outlives the transaction
		defer func() { _ = exec("DEALLOCATE books_by_id") }()
	}
	if s.alone() {
		defer func() {
			_ = exec("DETACH books")
			_ = os.Remove("books.db")
		}()
	} else if err := exec("BEGIN"); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	// For some statements SQLite reports the number of rows of the statement before, so an UPDATE of x comes last.
	before = slices.Concat(l.unwatched, s.preparations(l.Dialect), before, l.watched, []string{"UPDATE x SET price = 1"})
	for _, p := range before {
		if err := exec(p); err != nil {
			t.Fatalf("%s: %s: %v", s.name, p, err)
		}
	}
	e.before = l.content(around, c, s)
	savepoint := l.Dialect == sqlfence.Postgres && !s.alone()
	if savepoint {
		if err := exec("SAVEPOINT before_it"); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	if e.result, e.err = send(limited, c, s, l.Dialect, way); e.err != nil && savepoint {
		_ = exec("ROLLBACK TO before_it") // if the statement has dropped the savepoint, content shows it
	}
	if way == "exec" && s.countsMark(l.Dialect) {
		e.result = ""
	}
	e.after = l.content(around, c, s)
	return e
}

// send executes or queries the statement, and returns its result.
func send(ctx context.Context, c *sql.Conn, s *effectSample, d sqlfence.Dialect, way string) (string, error) {
	if way == "exec" {
		result, err := c.ExecContext(ctx, s.sql, s.args(d)...)
		if err != nil || s.isEmpty() { // modernc has no result for an empty text
			return "", err
		}
		n, err := result.RowsAffected()
		return fmt.Sprint(n, err), nil
	}
	rows, err := c.QueryContext(ctx, s.sql, s.args(d)...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var all []string
	for more := true; more; more = rows.NextResultSet() {
		one, err := readRows(rows)
		if err != nil {
			return "", err
		}
		if !s.is("explain") { // a plan contains the guard and durations
			all = append(all, contents(one)...) // their order may be any
		}
	}
	return strings.Join(all, "\n"), rows.Err()
}

// content reads the registered tables and those that the statement names.
func (l *effectLab) content(ctx context.Context, c *sql.Conn, s *effectSample) (all []effectRow) {
	for _, table := range effectTables {
		if table != "books" && !strings.Contains(s.sql, table) {
			continue
		}
		text := "SELECT * FROM " + table
		if l.Dialect == sqlfence.Postgres {
			// The rows are read as text: a prepared query would fail after a change of a column's type.
			text = fmt.Sprintf("SELECT (to_jsonb(r) - 'fence_token')::text AS row, to_jsonb(r) ->> 'fence_token' AS fence_token FROM %s r", table)
		}
		rows, err := c.QueryContext(ctx, text)
		if err == nil {
			var read []effectRow
			read, err = readRows(rows)
			for _, r := range read {
				all = append(all, effectRow{table + ": " + r.content, r.mark})
			}
			_ = rows.Close()
		}
		if err != nil { // the statement may have moved the table away
			all = append(all, effectRow{content: table + ": " + err.Error()})
		}
	}
	slices.SortFunc(all, func(a, b effectRow) int {
		return strings.Compare(a.content+a.mark, b.content+b.mark)
	})
	return all
}

func readRows(rows *sql.Rows) (all []effectRow, err error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		var r effectRow
		for i, v := range values {
			if columns[i] == "fence_token" {
				r.mark = fmt.Sprint(v)
			} else {
				r.content += fmt.Sprintf("%s=%v(%[2]T) ", numbered.ReplaceAllString(columns[i], "?"), v)
			}
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// numbered matches a placeholder of SQLite, which has a number in a guarded statement. A column without a name is named
// by its expression, so the names would differ.
var numbered = regexp.MustCompile(`\?\d*`)
