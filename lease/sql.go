package lease

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// statements are the texts that the methods send. Each is atomic in itself, but
// for take, ledger and seen of SQLite, which share a transaction.
type statements struct {
	create string

	acquire, probe     sqltext.Floored // PostgreSQL; the second only explains the first
	take, ledger, seen string          // SQLite

	extend, release, undo, sweep string
	list, byKey, byID, ended     string
}

func statementsFor(d sqlfence.Dialect, notify bool) statements {
	s := statements{
		create: createSQLite,
		take:   strings.ReplaceAll(takeSQLite, "{floor}", sqltext.Start), ledger: ledgerSQLite,
		seen:   strings.ReplaceAll(seenSQLite, "{floor}", sqltext.Start),
		extend: extendSQLite, release: releaseSQLite, undo: undoSQLite, sweep: sweepSQLite,
		list: listSQLite, byKey: " AND key = ?", byID: " AND lock_id = ?",
		ended: "SELECT 1 FROM fencing_leases WHERE lock_id = ?",
	}
	if d == sqlfence.Postgres {
		s = statements{
			create:  createPostgres,
			acquire: sqltext.NewFloored(sqltext.Postgres, expand(acquirePostgres)),
			probe:   sqltext.NewFloored(sqltext.Postgres, "EXPLAIN "+expand(acquirePostgres)),
			extend:  extendPostgres, release: releasePostgres, undo: undoPostgres, sweep: sweepPostgres,
			list: listPostgres, byKey: " AND key = $1::text", byID: " AND lock_id = $1::text",
			ended: "SELECT 1 FROM fencing_leases WHERE lock_id = $1::text",
		}
		if notify {
			s.release = notifyPostgres
		}
	}
	s.byKey, s.byID, s.list = s.list+s.byKey, s.list+s.byID, s.list+" ORDER BY key"
	for _, text := range []*string{&s.take, &s.seen, &s.extend, &s.release, &s.undo, &s.sweep, &s.list, &s.byKey, &s.byID} {
		*text = expand(*text)
	}
	return s
}

var (
	aliveMacro = regexp.MustCompile(`\{(\w+) alive\}`)
	microMacro = regexp.MustCompile(`\{µs ([^}]+)\}`)
	turnMacro  = regexp.MustCompile(`\{turn ([^}]+)\}`)
)

// expand writes out what the texts have in common.
func expand(text string) string {
	text = strings.ReplaceAll(text, "{max}", strconv.FormatInt(sqlfence.MaxToken, 10))
	text = strings.ReplaceAll(text, "{now}", "CAST(round((julianday('now') - 2440587.5) * 86400000) AS integer)")
	text = strings.ReplaceAll(text, "{durable}", sqltext.Durable)
	text = strings.ReplaceAll(text, "{seen}", sqltext.Seen("$1::text"))
	text = strings.ReplaceAll(text, "{overtaken}", sqltext.Postgres.Raise("'"+overtaken+"'", "t.token"))
	text = turnMacro.ReplaceAllStringFunc(text, func(turn string) string {
		return sqltext.Postgres.Turn(turnMacro.FindStringSubmatch(turn)[1], false)
	})
	// Whoever can share the lock of a session knows that it has ended.
	text = aliveMacro.ReplaceAllString(text, "CASE WHEN ${1}.session IS NULL THEN true ELSE NOT pg_try_advisory_xact_lock_shared(${1}.session) END")
	return microMacro.ReplaceAllString(text, "(extract(epoch FROM $1) * 1000000)::bigint")
}

// query runs a statement and calls scan for each row.
func (l *Leases) query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return retry(func() error { return queryOnce(ctx, l.db, scan, query, args...) })
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func queryOnce(ctx context.Context, db querier, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.QueryContext(own.Context(ctx, query), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	// To the very end: a database may answer with a row first and then fail to commit.
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sendFloored sends a statement that holds the floor of the tokens.
func (l *Leases) sendFloored(ctx context.Context, f sqltext.Floored, send func(text string) error) error {
	found, err := l.timelines.Send(f, send, func(text string) error {
		_, err := l.exec(ctx, text)
		return err
	})
	if found {
		l.log().Warn("lease: " + sqltext.Untold)
	}
	return err
}

// exec runs a statement that gives no rows, and returns how many it changed.
func (l *Leases) exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = retry(func() error {
		result, err := l.db.ExecContext(own.Context(ctx, query), query, args...)
		if err == nil {
			n, err = result.RowsAffected()
		}
		return err
	})
	return n, err
}

// overtaken is what acquire raises where a newer token was issued meanwhile.
const overtaken = "sqlfence:lease:"

// retry sends a statement again that has changed nothing because others got on.
// Once the context ends the error is another.
func retry(send func() error) error {
	for {
		err := send()
		switch dberr.SQLState(err) {
		case dberr.SerializationFailure, dberr.DeadlockDetected:
		case dberr.InvalidText:
			if !strings.Contains(err.Error(), overtaken) {
				return err
			}
		default:
			return err
		}
	}
}

// mayHaveCommitted reports whether a statement may have committed that ended with
// err: unless the server itself says that it failed. What it, or a pooler before
// it, says of a connection that breaks tells nothing about the statement.
func mayHaveCommitted(err error) bool {
	code := dberr.SQLState(err)
	return code == "" && !isClosed(err) || code == dberr.CompletionUnknown ||
		strings.HasPrefix(code, dberr.ConnectionClass) || strings.HasPrefix(code, dberr.InterventionClass)
}

// isClosed reports whether the caller has closed the database: package sql sends
// nothing then, and has no value to compare the error with.
func isClosed(err error) bool {
	return strings.HasSuffix(err.Error(), "sql: database is closed")
}
