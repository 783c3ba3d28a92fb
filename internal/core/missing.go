package core

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// explain returns a SetupError if err, of a guarded statement, means that the database lacks an object or privilege
// that the guard needs. It returns an UnguardableError if a column's type, a rule of CREATE RULE or a setting is the
// cause, and otherwise err.
func (e *Execution) explain(ctx context.Context, err error) error {
	if err == nil || len(e.plan.Tables) == 0 {
		return err
	}
	tables := make([]setuperr.Table, 0, len(e.plan.Tables)+1)
	for i := range e.plan.Tables {
		t, db := e.table(i), e.conn.settings.profile.Database
		tables = append(tables, t.needs(db, e.request.Query))
		if t.Rules.ClaimOf.Name != "" {
			tables = append(tables, t.needsClaims(db))
		}
		if t.HasLedger() {
			tables = append(tables, setuperr.Ledger(db.Text, e.conn.settings.schema, ledgerPrivileges(db.Text)))
		}
	}
	if missing, ok := setuperr.Find(err, e.asker(ctx), tables...); ok {
		return e.registry.factory.Missing(missing, err)
	}
	var by *outdated
	if errors.As(err, &by) && by.fact == session.Function {
		return &outdated{e.missingFunction(ctx, err), by.fact} // the function may be in another schema now
	}
	if typed := e.explainType(ctx, err); typed != nil {
		return typed
	}
	return e.explainRule(err)
}

// asker returns an Asker, which sends queries to the server for details that an error doesn't contain.
func (e *Execution) asker(ctx context.Context) setuperr.Asker {
	return func(query string) ([]string, error) {
		rows, err := (*queryable)(e.conn).Query(ctx, query)
		found := make([]string, len(rows))
		for i := range rows {
			found[i] = rows[i][0]
		}
		return found, err
	}
}

// missingFunction returns the error of a guarded statement if the function that checks the ledger is missing. err is
// the database's error, or nil if nothing was sent.
func (e *Execution) missingFunction(ctx context.Context, err error) error {
	s := e.conn.settings
	return s.factory.Missing(setuperr.LedgerFunction(s.profile.Database.Text, s.schema, e.asker(ctx)), err)
}

// explainType returns an UnguardableError if one of the guard's numbers doesn't fit the type of its column; else nil.
// The type can't be queried in a transaction that the error has ended.
func (e *Execution) explainType(ctx context.Context, err error) error {
	noInteger := e.conn.settings.profile.Database.Session.NoInteger
	if noInteger == nil || !dberr.IsTypeMismatch(err) {
		return nil
	}
	for i := range e.plan.Tables {
		t := e.table(i)
		for _, column := range []string{t.Rules.FenceColumn, t.Rules.Serial, t.Rules.Claim} {
			if column == "" {
				continue
			}
			rows, failed := (*queryable)(e.conn).Query(ctx, noInteger(t.spelled, column))
			typ := ""
			switch {
			case failed == nil && len(rows) == 1:
				typ = "is of type " + rows[0][0]
			case failed != nil && dberr.IsTypeMismatchOf(err, column, e.read.Query):
				typ = "isn't of an integer type"
			default:
				continue
			}
			return t.factory.Unguardable(Unguarded{Table: t.Name, Column: column, Offset: -1, Reason: fmt.Sprintf(
				"the column %q %s, and tokens and versions are integers; alter it to bigint, or "+
					"register another column",
				column, typ)}, err)
		}
	}
	return nil
}

// needsClaims returns the guard's requirements on the table that has the claims.
func (t *Table) needsClaims(db *dialect.Database) setuperr.Table {
	of := t.Rules.ClaimOf
	key, claim := identifier(db, of.Key), identifier(db, of.Claim)
	privileges := "SELECT (" + key + ", " + claim + ")"
	if lock := db.Text.Capabilities().LockPrivilege; lock != "" {
		privileges += ", " + lock + " (" + claim + ")"
	}
	return setuperr.Table{Name: of.Name, SQL: t.ClaimOf, Privileges: privileges}
}

// ledgerPrivileges are the privileges that a guard needs on the ledger.
func ledgerPrivileges(d sqltext.Dialect) string {
	if lock := d.Capabilities().LockPrivilege; lock != "" {
		return "SELECT, " + lock
	}
	return "SELECT"
}

// explainRule returns an UnguardableError if the database refused the guard's fragment because of a table's rule of
// PostgreSQL (CREATE RULE) or because of MariaDB's sql_mode; else err.
func (e *Execution) explainRule(err error) error {
	for i := range e.plan.Tables {
		t := e.table(i)
		for _, column := range []string{t.Rules.FenceColumn, t.Rules.Serial, t.Rules.Lock.By, t.Rules.Key,
			t.Rules.Claim} {
			if dberr.IsAssignedTwice(err, column) {
				return t.unguardable(err, assignsTwice)
			}
		}
	}
	if !dberr.IsWithByRule(err) || strings.Contains(strings.ToLower(e.read.Query), "with") {
		return err
	}
	for i := range e.plan.Tables {
		if t := e.table(i); t.Rules.Ledger {
			return t.unguardable(err, "a rule makes several statements of this one, which PostgreSQL does only "+
				"without WITH, where the ledger is asked; guard the table by RowFence, or write a trigger instead "+
				"of the rule")
		}
	}
	return err
}

// needs returns the guard's requirements on the table. Its Columns omit a column that the statement names itself,
// because such a column may be missing for another reason.
func (t *Table) needs(db *dialect.Database, query string) setuperr.Table {
	needs := setuperr.Table{Name: t.Rules.Name, SQL: t.Name}
	if find := db.Session.Unalterable; find != nil {
		needs.Unalterable = find(t.spelled)
	}
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
	add(t.Rules.FenceColumn, "bigint NOT NULL DEFAULT 0", true)
	add(t.Rules.Serial, "bigint NOT NULL DEFAULT 1", true)
	add(t.Rules.Claim, "bigint NOT NULL DEFAULT 0", false)
	add(t.Rules.Lock.By, "text", false)
	add(t.Rules.Lock.Since, db.Errors.TimeType, false)
	add(t.Rules.Lock.Expiry, db.Errors.TimeType, false)
	add(t.Rules.Key, "", false)
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

// identifier returns a name unquoted if every database reads it unchanged, keywords aside; else in the database's
// quotes.
func identifier(db *dialect.Database, name string) string {
	if plainIdentifier.MatchString(name) {
		return name
	}
	return db.Text.Quote(name)
}
