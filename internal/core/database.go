package core

import (
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/verify"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A database has the facts that this package needs about one, except its SQL, which
// package rewrite knows.
type database interface {
	dialect() rewrite.Dialect

	// text is the SQL that sqlfence's packages share.
	text() sqltext.Dialect

	// session is how its server is asked what guards rely on.
	session() session.Dialect

	// catalogue is how its catalogue is asked.
	catalogue() verify.Database

	// remote reports whether it is reached over a connection that can be lost.
	remote() bool

	// answered reports whether err is the database's answer to a statement, or to a
	// COMMIT, that failed and was undone. It isn't if the session ended with it.
	answered(err error) bool

	// keepsTx reports whether the server may have the transaction open still, in a session that
	// goes on, after a COMMIT or ROLLBACK that failed with err.
	keepsTx(err error) bool

	// errorEndsTx reports whether an error ends the transaction that it occurs in.
	errorEndsTx() bool

	// goesOnAfterRollback reports whether the server, once it has rolled back a transaction because of
	// a deadlock or the like, commits each statement behind that by itself.
	goesOnAfterRollback() bool

	// leftNothing reports whether a failed statement has changed nothing, and its
	// transaction is as it was. In doubt it is false.
	leftNothing(f failure) bool

	// storesBytesAsText reports whether bytes are stored in a column of text as the
	// text that they spell.
	storesBytesAsText() bool

	// choosesKey reports whether a new row may get another key than this one, which the
	// database chooses.
	choosesKey(key string) bool

	// countsReturning reports whether drivers count the rows that a statement with
	// RETURNING wrote when it is run by Exec.
	countsReturning() bool

	// timeType is the type of a column that holds a lock's time.
	timeType() string

	// checksArgCount reports whether a driver that returns -1 from NumInput refuses
	// a wrong number of arguments for numbered placeholders itself.
	checksArgCount() bool
}

// databases holds one of each.
var databases = [...]database{
	basedriver.PostgreSQL - 1: postgres{},
	basedriver.SQLite - 1:     sqlite{},
	basedriver.MySQL - 1:      mysql{},
}

// databaseOf returns the database that speaks d.
func databaseOf(d rewrite.Dialect) (database, bool) {
	for _, db := range databases {
		if db.dialect() == d {
			return db, true
		}
	}
	return nil, false
}

// A failure is a statement that failed in the base driver or in the database.
type failure struct {
	err     error
	query   string // as the application wrote it
	byGuard bool   // err is what a guard raised
	inTx    bool
	saved   bool // a savepoint stands before it
	aborts  bool // the statement said OR ABORT
}

type postgres struct{}

func (postgres) dialect() rewrite.Dialect   { return rewrite.Postgres }
func (postgres) text() sqltext.Dialect      { return pg.Text }
func (postgres) session() session.Dialect   { return session.Postgres }
func (postgres) catalogue() verify.Database { return verify.Postgres }
func (postgres) remote() bool               { return true }
func (postgres) errorEndsTx() bool          { return true }
func (postgres) goesOnAfterRollback() bool  { return false }
func (postgres) storesBytesAsText() bool    { return false } // they may become \x3432, by column and driver
func (postgres) choosesKey(string) bool     { return false }
func (postgres) countsReturning() bool      { return true }
func (postgres) timeType() string           { return "timestamptz" }
func (postgres) checksArgCount() bool       { return true }

func (postgres) answered(err error) bool {
	code := dberr.SQLState(err)
	return code != "" && code != dberr.ProtocolViolation && !dberr.IsSessionEnd(err)
}

// Without a savepoint a failed statement has left nothing if the server says so;
// an error without a code may be the driver's, about an answer that it can't read.
func (postgres) leftNothing(f failure) bool {
	return f.saved || !f.inTx && dberr.SQLState(f.err) != ""
}

func (postgres) keepsTx(error) bool { return false }

type sqlite struct{}

func (sqlite) dialect() rewrite.Dialect   { return rewrite.SQLite }
func (sqlite) text() sqltext.Dialect      { return lite.Text }
func (sqlite) session() session.Dialect   { return session.SQLite }
func (sqlite) catalogue() verify.Database { return verify.SQLite }
func (sqlite) remote() bool               { return false }
func (sqlite) errorEndsTx() bool          { return false }
func (sqlite) goesOnAfterRollback() bool  { return false }
func (sqlite) storesBytesAsText() bool    { return true }
func (sqlite) choosesKey(string) bool     { return false }
func (sqlite) countsReturning() bool      { return false }
func (sqlite) timeType() string           { return "integer" }
func (sqlite) checksArgCount() bool       { return false }

func (sqlite) answered(err error) bool {
	_, ok := dberr.SQLiteCode(err)
	return ok
}

func (sqlite) keepsTx(error) bool { return false } // of a busy file the application may try again

// Rows may stay changed, or the transaction be undone, by OR FAIL and OR ROLLBACK,
// also where a table declares them, and by the RAISE of a trigger.
func (sqlite) leftNothing(f failure) bool {
	if f.byGuard {
		return true
	}
	query := strings.ToLower(f.query)
	return dberr.LeftNothing(f.err, f.aborts) && !strings.Contains(query, "fail") && !strings.Contains(query, "rollback")
}

type mysql struct{}

func (mysql) dialect() rewrite.Dialect   { return rewrite.MySQL }
func (mysql) text() sqltext.Dialect      { return my.Text }
func (mysql) session() session.Dialect   { return session.MySQL }
func (mysql) catalogue() verify.Database { return verify.MySQL }
func (mysql) remote() bool               { return true }
func (mysql) errorEndsTx() bool          { return false }
func (mysql) goesOnAfterRollback() bool  { return true }
func (mysql) storesBytesAsText() bool    { return true }
func (mysql) countsReturning() bool      { return false }
func (mysql) timeType() string           { return "bigint" } // microseconds since 1970
func (mysql) checksArgCount() bool       { return true }

func (mysql) answered(err error) bool {
	number, ok := dberr.MySQLNumber(err)
	return ok && (number == nodeNotReady || !dberr.IsSessionEnd(err))
}

// nodeNotReady: a Galera node outside of its group's majority executes nothing, not even a
// ROLLBACK, and keeps its sessions.
const nodeNotReady = 1047

// keepsTx: nodeNotReady is the one that is known to, and others may.
func (mysql) keepsTx(err error) bool { return !dberr.IsRolledBack(err) }

// choosesKey: where AUTO_INCREMENT makes the key, 0 stands for the next one, and an empty text is
// 0 unless sql_mode is strict.
func (mysql) choosesKey(key string) bool { return key == "0" || key == "" }

// A deadlock's error has rolled back the transaction, and so have some others: not those about
// what isn't there, or is another role's.
func (mysql) leftNothing(f failure) bool {
	if f.byGuard {
		return true
	}
	if _, ok := dberr.MySQLNumber(f.err); !ok || dberr.IsSessionEnd(f.err) {
		return false
	}
	switch dberr.SQLState(f.err) {
	case dberr.UndefinedColumn, dberr.UndefinedTable, dberr.InsufficientPrivilege:
		return true
	}
	return !f.inTx
}

// A profile has the facts about a base driver and its database.
type profile struct {
	database
	basedriver.Driver
}

// DialectOf returns the dialect of a known driver, which v is or wraps.
func DialectOf(v any) (rewrite.Dialect, bool) {
	p, ok := profileOf(v)
	if !ok {
		return 0, false
	}
	return p.dialect(), true
}

// IsDialect reports whether there is such a dialect.
func IsDialect(d rewrite.Dialect) bool {
	_, ok := databaseOf(d)
	return ok
}

// resolve returns the profile for a driver. The options may name its dialect, as d;
// 0 is for none.
func resolve(d rewrite.Dialect, bases ...any) (profile, error) {
	for _, base := range bases {
		p, ok := profileOf(base)
		switch {
		case !ok:
		case d != 0 && d != p.dialect():
			return profile{}, fmt.Errorf("the driver %T speaks %v, not %v", base, p.dialect(), d)
		default:
			return p, nil
		}
	}
	db, ok := databaseOf(d)
	if !ok {
		return profile{}, fmt.Errorf("unknown driver %T; name its dialect with WithDialect", bases[0])
	}
	return profile{database: db}, nil
}

// profileOf returns the profile of a known driver, which v is or wraps.
func profileOf(v any) (profile, bool) {
	d, ok := basedriver.Find(v)
	if !ok {
		return profile{}, false
	}
	return profile{databases[d.Server-1], d}, true
}
