package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// ErrNotSetUp: the database lacks what a guard or one of sqlfence's packages needs: a
// column of a registered table, a table of sqlfence's own, or privileges on one. A
// [SetupError] says which, and the SQL that adds it. Nothing was changed.
var ErrNotSetUp = errors.New("sqlfence: the database is not set up")

// A SetupError reports what the database lacks. It is [ErrNotSetUp] and wraps the base
// driver's error. In [Observe] mode the event has it, and the statement is run as it was
// written.
type SetupError struct {
	refusedAs[isNotSetUp]

	Missing string // such as "column fence_token of table books"

	// SQL adds it: ALTER TABLE, CREATE TABLE or GRANT. In a GRANT, <role> stands for the
	// role that the application connects as.
	SQL string

	// Remedy, if it isn't empty, says what to do before SQL is thought of: one of sqlfence's tables is, or may be,
	// in another schema than those in which the session looks, and a second one would split what it keeps.
	Remedy string

	Err error // the base driver's
}

func (e *SetupError) Error() string {
	remedy := e.Remedy
	if remedy == "" {
		remedy = "run: " + e.SQL
	}
	return fmt.Sprintf("%v: missing %s; %s: %v", ErrNotSetUp, e.Missing, remedy, e.Err)
}

// Unwrap returns the base driver's error.
func (e *SetupError) Unwrap() error { return e.Err }

// explain returns the error of a guarded statement as a SetupError if it says that
// something of the guard's is missing; else as it is.
func (e *execution) explain(ctx context.Context, err error) error {
	if err == nil || len(e.plan.Tables) == 0 {
		return err
	}
	tables := make([]setuperr.Table, 0, len(e.plan.Tables)+1)
	for i := range e.plan.Tables {
		t, db := e.table(i), e.state.settings.profile.database
		tables = append(tables, t.needs(db, e.asked.query))
		if t.rules.Ledger {
			tables = append(tables, setuperr.Ledger(db.text(), e.state.settings.schema, ledgerPrivileges(db.text())))
		}
	}
	ask := func(query string) ([]string, error) {
		rows, err := (*asking)(e.state).Query(ctx, query)
		found := make([]string, len(rows))
		for i := range rows {
			found[i] = rows[i][0]
		}
		return found, err
	}
	if missing, ok := setuperr.Find(err, ask, tables...); ok {
		return &SetupError{Missing: missing.Name, SQL: missing.SQL, Remedy: missing.Remedy, Err: err}
	}
	return e.explainRule(err)
}

// ledgerPrivileges are what the guard of a statement needs on the ledger.
func ledgerPrivileges(d sqltext.Dialect) string {
	if lock := d.LockPrivilege(); lock != "" {
		return "SELECT, " + lock
	}
	return "SELECT"
}

// explainRule returns an UnguardableError where the database has refused what the guard has
// added, because of a rule of the table's or of a setting; else the error as it is.
func (e *execution) explainRule(err error) error {
	for i := range e.plan.Tables {
		t := e.table(i)
		for _, column := range []string{t.rules.FenceColumn, t.rules.Serial, t.rules.Lock.By, t.rules.Key} {
			if dberr.IsAssignedTwice(err, column) {
				return refusedBy(err, t, assignsTwice)
			}
		}
	}
	if !dberr.IsWithByRule(err) || strings.Contains(strings.ToLower(e.read.query), "with") {
		return err
	}
	for i := range e.plan.Tables {
		if t := e.table(i); t.rules.Ledger {
			return refusedBy(err, t, "a rule makes several statements of this one, which PostgreSQL does only without WITH, "+
				"where the ledger is asked; guard the table by RowFence, or write a trigger instead of the rule")
		}
	}
	return err
}

// needs returns what the guard of a statement needs of the table. A column that the
// statement names itself may be missing for another reason.
func (t *table) needs(db database, query string) setuperr.Table {
	needs := setuperr.Table{Name: t.rules.Name, SQL: t.name}
	var read, written []string
	add := func(column, typ string, writes bool) {
		if column == "" {
			return
		}
		sql := identifier(db, column)
		read = append(read, sql)
		if writes {
			written = append(written, sql)
		}
		if typ != "" && !strings.Contains(strings.ToLower(query), strings.ToLower(column)) {
			needs.Columns = append(needs.Columns, setuperr.Column{Name: column, SQL: sql, Type: typ})
		}
	}
	add(t.rules.FenceColumn, "bigint NOT NULL DEFAULT 0", true)
	add(t.rules.Serial, "bigint NOT NULL DEFAULT 1", true)
	add(t.rules.Lock.By, "text", false)
	add(t.rules.Lock.Since, db.timeType(), false)
	add(t.rules.Lock.Expiry, db.timeType(), false)
	add(t.rules.Key, "", false)
	if len(read) > 0 {
		needs.Privileges = "SELECT (" + strings.Join(read, ", ") + ")"
	}
	if len(written) > 0 {
		list := " (" + strings.Join(written, ", ") + ")"
		needs.Privileges += ", INSERT" + list + ", UPDATE" + list
	}
	return needs
}

var plainIdentifier = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// identifier writes a name as it is where no database would read it otherwise, unless it
// is a keyword; else in the database's quotes.
func identifier(db database, name string) string {
	if plainIdentifier.MatchString(name) {
		return name
	}
	return db.text().Quote(name)
}
