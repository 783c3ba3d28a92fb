package settings_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// settings are the settings, by database, that a data source name or a hook of the pool may set for each session.
var settings = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"default_transaction_read_only=on", "row_security=off", "statement_timeout=1", "lock_timeout=1",
		"standard_conforming_strings=off", "escape_string_warning=off", "backslash_quote=on",
		"default_transaction_isolation=read uncommitted", "default_transaction_isolation=repeatable read",
		"default_transaction_isolation=serializable", "default_transaction_deferrable=on",
		"DateStyle=German", "DateStyle=SQL, DMY", "DateStyle=Postgres, MDY", "IntervalStyle=iso_8601", "IntervalStyle=sql_standard",
		"TimeZone=Pacific/Kiritimati", "TimeZone=America/New_York", "bytea_output=escape", "extra_float_digits=-15",
		"client_encoding=LATIN1", "client_encoding=SQL_ASCII", "client_encoding=EUC_JP", "lc_messages=de_DE.utf8", "lc_messages=C",
		"lc_time=C", "lc_numeric=C", "transform_null_equals=on", "quote_all_identifiers=on", "array_nulls=off",
		"check_function_bodies=off", "client_min_messages=debug5", "client_min_messages=error", "plan_cache_mode=force_generic_plan",
		"plan_cache_mode=force_custom_plan", "enable_seqscan=off", "enable_indexscan=off", "enable_nestloop=off", "jit_above_cost=0",
		"force_parallel_mode=on", "session_replication_role=replica", "synchronous_commit=off", "xmlbinary=hex",
		"default_table_access_method=heap", "work_mem=64kB", "idle_in_transaction_session_timeout=10000",
	},
	sqlfence.MySQL: {
		"sql_select_limit=1", "sql_select_limit=0", "max_statement_time=0.0001", "sql_safe_updates=1", "group_concat_max_len=4",
		"tx_isolation='READ-UNCOMMITTED'", "tx_isolation='READ-COMMITTED'", "tx_isolation='SERIALIZABLE'", "tx_read_only=1",
		"autocommit=0", "completion_type=1", "time_zone='-07:30'", "time_zone='+12:59'",
		"lc_messages=de_DE", "lc_messages=ja_JP", "lc_time_names=de_DE", "lock_wait_timeout=1", "innodb_lock_wait_timeout=1",
		"max_join_size=1", "sql_big_selects=0", "div_precision_increment=0", "character_set_results=NULL",
		"character_set_results=utf16", "character_set_client=latin1", "character_set_connection=latin1",
		"collation_connection=utf8mb4_bin", "collation_connection=utf8mb4_turkish_ci", "foreign_key_checks=0", "unique_checks=0",
		"sql_auto_is_null=1", "sql_quote_show_create=0", "max_sort_length=64", "sql_notes=0", "default_storage_engine=MyISAM",
		"timestamp=2147480000", "timestamp=1000000000", "default_storage_engine=MEMORY", "explicit_defaults_for_timestamp=0", "max_recursive_iterations=0",
		"low_priority_updates=1", "join_cache_level=0", "big_tables=1", "insert_id=77", "last_insert_id=77",
		"innodb_snapshot_isolation=1", "system_versioning_asof='2000-01-01'", "sql_mode=''", "sql_mode='ANSI'", "sql_mode='ORACLE'",
		"sql_mode='TRADITIONAL'", "sql_mode='NO_BACKSLASH_ESCAPES'", "sql_mode='EMPTY_STRING_IS_NULL'",
		"sql_mode='SIMULTANEOUS_ASSIGNMENT'", "sql_mode='PAD_CHAR_TO_FULL_LENGTH'", "sql_mode='NO_UNSIGNED_SUBTRACTION'",
		"sql_mode='MSSQL'", "sql_mode='IGNORE_SPACE'", "sql_mode='HIGH_NOT_PRECEDENCE'", "sql_mode='REAL_AS_FLOAT'",
		"sql_mode='ONLY_FULL_GROUP_BY'", "sql_mode='NO_ZERO_DATE'", "sql_mode='TIME_ROUND_FRACTIONAL'",
	},
	sqlfence.SQLite: {
		"query_only=1", "case_sensitive_like=1", "foreign_keys=1", "recursive_triggers=1", "reverse_unordered_selects=1",
		"full_column_names=1", "short_column_names=0", "count_changes=1", "empty_result_callbacks=1", "legacy_alter_table=1",
		"trusted_schema=0", "ignore_check_constraints=1", "defer_foreign_keys=1", "read_uncommitted=1", "automatic_index=0",
		"cache_size=1", "busy_timeout=0", "temp_store=2", "secure_delete=1", "writable_schema=1", "cell_size_check=1",
	},
}

// limits are the settings under which an answer may differ, because the server or a guard refuses. The values are
// texts, of the server's errors or of sqlfence's. A different answer must contain one of these texts.
var limits = map[string][]string{
	// Under these settings the server refuses writes, or ends a statement after some time.
	"default_transaction_read_only=on": {"in a read-only transaction"},
	"tx_read_only=1":                   {"READ ONLY transaction"},
	"query_only=1":                     {"readonly database"},
	"statement_timeout=1":              {"(57014)", "SQLSTATE 57014"},
	"lock_timeout=1":                   {"(55P03)", "SQLSTATE 55P03"},
	"max_statement_time=0.0001":        {"max_statement_time exceeded", "time limit of the session"}, // the latter by Setup
	// Under these settings the server refuses statements with several rows or names, and a setting in a chained
	// transaction.
	"max_join_size=1":    {"use SET SQL_BIG_SELECTS=1"},
	"sql_safe_updates=1": {"You are using safe update mode"},                      // statements with several names
	"completion_type=1":  {"can't be changed while a transaction is in progress"}, // the lock of a row
	// Under these settings the server would misread a guard, so sqlfence refuses.
	"sql_mode='SIMULTANEOUS_ASSIGNMENT'": {"unguardable"},
	"sql_mode='ORACLE'":                  {"unguardable"},
	"character_set_results=utf16":        {"unguardable", "invalid syntax", "Error 1059", "wrong-server"}, // numbers unreadable
	// The server quotes names in the definitions of triggers and functions, which sqlfence compares with its own. So
	// sqlfence doesn't recognize the ledger's function, and Delete is refused.
	"quote_all_identifiers=on": {"wrong-ledger", "missing or of another version", "not set up"},
	"count_changes=1":          {"ok 0"}, // mattn's own result
}

// set returns the statement that a hook of the pool sends for a setting.
func set(d sqlfence.Dialect, setting string) string {
	name, value, _ := strings.Cut(setting, "=")
	switch d {
	case sqlfence.Postgres:
		return "SET " + name + " = '" + value + "'"
	case sqlfence.SQLite:
		return "PRAGMA " + setting
	}
	return "SET SESSION " + setting
}

// inDSN returns a data source name with a setting, or false if the driver accepts none in it.
func inDSN(t *testing.T, b harness.Base, dsn, setting string) (string, bool) {
	name, value, _ := strings.Cut(setting, "=")
	switch {
	case b.Dialect == sqlfence.Postgres:
		return dsn + "&" + name + "=" + url.PathEscape(value), true
	case b.Dialect == sqlfence.MySQL:
		return harness.MySQLWith(t, dsn, func(c *mysql.Config) {
			c.Params = maps.Clone(c.Params)
			if c.Params == nil {
				c.Params = make(map[string]string)
			}
			c.Params[name] = value
		}), true
	case b.DriverName == "sqlite":
		return dsn + "&_pragma=" + name + "(" + value + ")", true
	}
	return "", false
}

// A hooked connector sends statements on each new connection, as a hook of a pool does.
type hooked struct {
	base       driver.Driver
	dsn, query string
}

func (h hooked) Driver() driver.Driver { return h.base }
func (h hooked) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := h.base.Open(h.dsn)
	if err != nil {
		return nil, err
	}
	if x, ok := c.(driver.ExecerContext); ok {
		if _, err = x.ExecContext(ctx, h.query, nil); !errors.Is(err, driver.ErrSkip) {
			return c, err
		}
	}
	s, err := c.Prepare(h.query)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	x, ok := s.(driver.StmtExecContext)
	if !ok {
		return nil, fmt.Errorf("%T has no ExecContext", s)
	}
	_, err = x.ExecContext(ctx, nil)
	return c, err
}

// sentinels are sqlfence's errors, by the words that answers use for them.
var sentinels = map[string]error{
	"stale": sqlfence.ErrStale, "not issued": sqlfence.ErrNotIssued, "no fence": sqlfence.ErrNoFence, "out of scope": sqlfence.ErrOutOfScope,
	"unguardable": sqlfence.ErrUnguardable, "unknown name": sqlfence.ErrUnknownName, "conflict": sqlfence.ErrConflict, "gone": sqlfence.ErrGone,
	"locked": sqlfence.ErrLocked, "unknown outcome": sqlfence.ErrUnknownOutcome, "standby": sqlfence.ErrStandby, "not set up": sqlfence.ErrNotSetUp,
	"invalid": sqlfence.ErrInvalid, "held": lease.ErrHeld, "limit": sqlfence.ErrTokenLimit,
}

// answer describes an error of sqlfence by its kind, and other errors by their texts.
func answer(err error) string {
	if err == nil {
		return "ok"
	}
	var kinds []string
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			kinds = append(kinds, name)
		}
	}
	slices.Sort(kinds)
	if len(kinds) == 0 {
		return "error: " + err.Error()
	}
	return strings.Join(kinds, ", ")
}

// A world is a database with the objects of a program that uses sqlfence, and another client's session.
type world struct {
	harness.Base
	dsn   string
	plain *sql.DB // the driver alone
	other *sql.DB // fenced, with the server's default settings
	rules []sqlfence.Option
}

func newWorld(t *testing.T, b harness.Base) *world {
	t.Helper()
	w := &world{Base: b, dsn: b.DSN(t)}
	w.plain = b.Raw(t, w.dsn)
	w.rules = []sqlfence.Option{harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()), sqlfence.WithTable("invoice", sqlfence.RowFence("fence_token"))}
	if b.Networked() {
		w.rules = append(w.rules, sqlfence.WithTable("vault", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	}
	for _, create := range []string{
		"CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL, fence_token bigint)",
		"CREATE TABLE vault (id integer PRIMARY KEY, price integer NOT NULL, fence_token bigint NOT NULL DEFAULT 0)",
		"CREATE TABLE invoice (id integer PRIMARY KEY, total integer NOT NULL, serial bigint NOT NULL DEFAULT 1, editedby varchar(40), " +
			"editedsince " + b.TimeType() + ", editedexpiry " + b.TimeType() + ", fence_token bigint)",
		"INSERT INTO books (id, price) VALUES (1, 10), (2, 10)",
		"INSERT INTO vault (id, price) VALUES (1, 10), (2, 10)",
		"INSERT INTO invoice (id, total) VALUES (7, 10)",
	} {
		harness.MustExec(t, w.plain, create)
	}
	w.other = b.Fenced(t, w.dsn, w.rules...)
	return w
}

// inTx sends a write in a transaction, and returns how many rows it has changed.
func inTx(ctx context.Context, db *sql.DB, query string) (n int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	res, err := tx.ExecContext(ctx, query)
	if err != nil {
		return 0, err
	}
	if n, err = res.RowsAffected(); err != nil {
		return 0, err
	}
	return n, tx.Commit()
}

// A step is one call of a program, and its answer.
type step struct{ name, answer string }

// run is a program that uses all of sqlfence on db. It returns the answer to each call.
func (w *world) run(t *testing.T, db *sql.DB) (steps []step) {
	t.Helper()
	note := func(name string, err error, values ...any) {
		said := answer(err)
		if err == nil && len(values) > 0 {
			said += " " + fmt.Sprint(values...)
		}
		steps = append(steps, step{name, said})
	}
	ctx := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	must := func(err error) {
		t.Helper()
		if err != nil && (strings.Contains(err.Error(), "has an error in its body") || strings.Contains(err.Error(), "seal was interrupted")) {
			t.Skipf("a session's max_statement_time has ended DDL, and MariaDB's other sessions see half of the triggers: %v", err)
		}
		if err != nil {
			t.Fatalf("%v, after %v", err, steps)
		}
	}
	store, plain := harness.NewStore(t, db), harness.NewStore(t, w.other)
	note("setup of tokens", store.Setup(ctx()))
	must(plain.Setup(ctx()))
	leases, err := lease.New(db, lease.WithDefaults(lease.TTL(time.Hour)))
	must(err)
	note("setup of leases", leases.Setup(ctx()))
	others := harness.NewLeases(t, w.other)

	issued, err := store.Issue(ctx(), "books")
	note("issue", err, issued.Value)
	for issued.Value < 1 {
		issued, err = plain.Issue(ctx(), "books")
		must(err)
	}
	write := func(name string, token int64, query string) {
		c := ctx()
		if token > 0 {
			c = harness.Holding(t, token)
		}
		n, err := inTx(c, db, query) // the setting may turn autocommit off
		note(name, err, n)
	}
	write("first write", 1, "UPDATE books SET price = 11 WHERE id = 1")
	write("insert", 1, "INSERT INTO books (id, price) VALUES (3, 10)")
	write("without a token", 0, "UPDATE books SET price = 66 WHERE id = 1")
	write("not issued", 9, "UPDATE books SET price = 66 WHERE id = 1")
	_, err = plain.Issue(ctx(), "books")
	must(err)
	_, err = w.other.ExecContext(harness.Holding(t, 2), "UPDATE books SET price = 12 WHERE id = 1")
	must(err)
	write("stale in the row", 1, "UPDATE books SET price = 66 WHERE id = 1")
	write("stale in the ledger", 1, "UPDATE books SET price = 66 WHERE id = 2")
	write("stale delete", 1, "DELETE FROM books WHERE id = 3")
	write("stale insert", 1, "INSERT INTO books (id, price) VALUES (4, 66)")
	write("current", 2, "UPDATE books SET price = 13 WHERE id = 2")
	c, err := store.Current(ctx(), "books")
	note("current token", err, c.Value)
	note("check of a stale token", store.Check(ctx(), sqlfence.Token{Name: "books", Value: 1}))
	many, err := store.IssueMany(ctx(), "many/a", "many/b")
	note("many", err, len(many))
	n := 0
	for _, err = range store.List(ctx(), "book") {
		n++
	}
	note("list", err, n)
	note("adopt", store.Adopt(ctx(), sqlfence.Token{Name: "foreign", Value: 40}))
	note("adopt a stale one", store.Adopt(ctx(), sqlfence.Token{Name: "books", Value: 1}))

	_, err = plain.IssueMany(ctx(), "tree/a", "tree/b")
	must(err)
	retires, err := store.Retires(ctx(), "tree")
	note("retires", err, len(retires))
	var left []string
	harness.Eventually(t, "no transaction uses the names any more", func() bool {
		left, err = store.Delete(ctx(), "tree/a", "tree/b", "tree/c")
		return err != nil || len(left) == 0
	})
	note("delete", err, len(left))
	_, err = store.Repair(ctx(), 30)
	note("repair", err)
	if err != nil {
		_, err = plain.Repair(ctx(), 30)
		must(err)
	}
	repaired, err := plain.Current(ctx(), "books")
	note("repaired", err, repaired.Value)

	l, ok, err := leases.TryAcquire(ctx(), "own")
	note("lease", err, ok)
	if ok && err == nil {
		_, taken, err := others.TryAcquire(ctx(), "own")
		note("another's attempt", err, taken)
		_, err = leases.Extend(ctx(), l.LockID(), 2*time.Hour)
		note("extend", err)
		locked, err := leases.IsLocked(ctx(), "own")
		note("is locked", err, locked)
		note("release", l.Release(ctx()))
	}
	harness.MustAcquire(t, others, "others")
	_, ok, err = leases.TryAcquire(ctx(), "others")
	note("lease of another", err, ok)
	harness.MustAcquire(t, others, "more")
	all, err := leases.List(ctx())
	note("list of leases", err, len(all))
	info, found, err := leases.Lookup(ctx(), "others")
	note("lookup", err, found, info.Token.Value)

	table, err := rowlock.New(db, "invoice")
	must(err)
	theirs, err := rowlock.New(w.other, "invoice")
	must(err)
	edit := func(user string) rowlock.Edit { return rowlock.Edit{ID: 7, Serial: 1, User: user} }
	_, err = table.Request(ctx(), edit("ada"))
	note("row lock", err)
	if err == nil {
		_, err = theirs.Request(ctx(), edit("bob"))
		note("another's request", err)
		_, err = table.Renew(ctx(), edit("ada"))
		note("renew", err)
		note("release of the row", table.Release(ctx(), 7, "ada"))
	}
	_, _ = w.plain.Exec("UPDATE invoice SET editedby = NULL")
	_, err = theirs.Request(ctx(), edit("bob"))
	must(err)
	_, err = table.Request(ctx(), edit("ada"))
	note("row lock of another", err)

	if w.Networked() {
		note("seal", schema.Seal(ctx(), db))
		must(schema.Seal(ctx(), w.other))
		_, err = w.plain.Exec("UPDATE vault SET price = 66 WHERE id = 1")
		if err == nil {
			t.Error("a bare client wrote to the sealed table")
		}
		vault := func(name string, token int64) {
			send := func() (err error) {
				_, err = inTx(sqlfence.WithFence(ctx(), sqlfence.Token{Name: "vault", Value: token}), db, "UPDATE vault SET price = 15 WHERE id = 1")
				return err
			}
			err := send()
			if temporary := (interface{ Temporary() bool })(nil); errors.As(err, &temporary) && temporary.Temporary() {
				err = send() // only the other pool has sealed the table, and db looks again before this write
			}
			note(name, err)
		}
		vault("sealed", 5)
		_, err = w.other.ExecContext(sqlfence.WithFence(ctx(), sqlfence.Token{Name: "vault", Value: 6}), "UPDATE vault SET price = 16 WHERE id = 1")
		must(err)
		vault("sealed, stale", 5)
	}
	findings, err := harness.Verify(ctx(), db)
	var codes []string
	for _, f := range findings {
		if f.Level >= slog.LevelWarn && f.Code != "setting" && f.Code != "several-ledgers" {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	note("verify", err, codes)
	return steps
}

// isShort reports whether under a setting the server may end any statement. A later call then finds what the statement
// has left out: MariaDB may even end a COMMIT that succeeds.
func isShort(setting string) bool {
	return strings.HasPrefix(setting, "statement_timeout=") || strings.HasPrefix(setting, "max_statement_time=")
}

// Whatever a data source name or a hook of the pool sets, each call of the program has the answer that it has without
// the setting, or an error that names the obstacle. Under a setting that ends statements this holds until the first
// such error. No stale write succeeds.
func TestAnswersUnderEachSetting(t *testing.T) {
	harness.EachDriver(t, func(t *testing.T, b harness.Base) {
		b.AsWritten = true
		usual := newWorld(t, b)
		want := make(map[string]string)
		for _, s := range usual.run(t, usual.other) {
			want[s.name] = s.answer
		}
		for _, setting := range settings[b.Dialect] {
			for _, way := range []string{"DSN", "hook"} {
				// The strictest setting of all: the server returns no row of a query without a LIMIT.
				if setting != "sql_select_limit=0" && !harness.Keep(t, setting+" by "+way) {
					continue
				}
				t.Run(setting+" by "+way, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, b)
					db := w.under(t, setting, way)
					defer func() {
						var wrong int
						if err := w.plain.QueryRow("SELECT COUNT(*) FROM books WHERE price = 66").Scan(&wrong); err != nil || wrong > 0 {
							t.Errorf("%d stale writes landed, %v", wrong, err)
						}
					}()
					for _, s := range w.run(t, db) {
						if s.answer == want[s.name] {
							continue
						}
						if !slices.ContainsFunc(limits[setting], func(says string) bool { return strings.Contains(s.answer, says) }) {
							t.Errorf("%s: %s, by default %s", s.name, s.answer, want[s.name])
						} else if isShort(setting) {
							break
						}
					}
				})
			}
		}
	})
}

// under opens the database in sessions with a setting. If the driver alone doesn't work with it, the test is skipped.
func (w *world) under(t *testing.T, setting, way string) *sql.DB {
	t.Helper()
	if way == "hook" {
		if w.Name == harness.Native.Name {
			t.Skip("fencepgx has the data source name")
		}
		base := hooked{w.plain.Driver(), w.dsn, set(w.Dialect, setting)}
		bare := sql.OpenDB(base)
		defer bare.Close()
		if err := bare.Ping(); err != nil {
			t.Skipf("the driver alone: %v", err)
		}
		db, err := sqlfence.OpenDB(base, append([]sqlfence.Option{sqlfence.WithDialect(w.Dialect)}, w.rules...)...)
		return harness.CloseAtEnd(t, db, err)
	}
	dsn, ok := inDSN(t, w.Base, w.dsn, setting)
	if !ok {
		t.Skip("the driver takes no setting in its data source name")
	}
	if err := w.Raw(t, dsn).Ping(); err != nil {
		t.Skipf("the driver alone: %v", err)
	}
	return w.Fenced(t, dsn, w.rules...)
}
