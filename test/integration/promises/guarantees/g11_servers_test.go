package guarantees_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// A pretender makes a server look like another server, by replacing parts of the connections' queries.
type pretender struct {
	base driver.Driver
	dsn  string
	as   *strings.Replacer
}

func (p pretender) Open(string) (driver.Conn, error) { return p.Connect(context.Background()) }
func (p pretender) Driver() driver.Driver            { return p }
func (p pretender) Connect(context.Context) (driver.Conn, error) {
	c, err := p.base.Open(p.dsn)
	return pretending{c, p.as}, err
}

type pretending struct {
	driver.Conn
	as *strings.Replacer
}

func (c pretending) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, c.as.Replace(query), args)
}

func (c pretending) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, c.as.Replace(query), args)
}

func (c pretending) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, c.as.Replace(query))
}

func (c pretending) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c pretending) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// pretend opens a shop on a server that replacements in the queries make look like another server.
func pretend(t *testing.T, sh *harness.Shop, rules []sqlfence.Rule, replaced []string, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	opts = append([]sqlfence.Option{sqlfence.WithDialect(sh.Dialect), harness.Books(rules...)}, opts...)
	db, err := sqlfence.OpenDB(pretender{sh.Raw(t, sh.Source).Driver(), sh.Source, strings.NewReplacer(replaced...)}, opts...)
	return harness.CloseAtEnd(t, db, err)
}

// unraised are pairs of text and replacement, for each database. In the queries that prove the raise, the replacement
// returns a value, as it would on a server that folds the raise away, or that doesn't check the range of results.
var unraised = []string{
	"pg_catalog.int8in(pg_catalog.textout(", "pg_catalog.length(pg_catalog.concat(",
	"json_extract('{}', ", "printf('%s', ",
	"(18446744073709551615 + GREATEST(1, IS_FREE_LOCK(RPAD(", "(1 + GREATEST(1, LENGTH(RPAD(",
}

// allRules are rules whose guards throw errors.
var allRules = map[string][]sqlfence.Rule{
	"row fence": {sqlfence.RowFence("fence_token")},
	"ledger":    {sqlfence.Ledger()},
	"key":       {sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
	"serial":    {sqlfence.Serial("version")},
	"edit lock": {sqlfence.EditLock("editedby", "editedsince", "editedexpiry")},
}

// On a server where the guards' raise doesn't raise an error, no rule and no way of sending lets a guarded write
// through, and a database with verify.OnConnect isn't opened.
func TestG11AServerThatDoesNotRaise(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 9)
		sh.Exec(t, "CREATE TABLE "+others+" (n integer)")
		unchanged := sh.Unchanged(t)
		for name, rules := range allRules {
			db := pretend(t, sh, rules, unraised)
			ctx := sqlfence.WithSerial(sqlfence.WithFence(harness.Holding(t, 8), sqlfence.Token{Name: "books/1", Value: 8}), 1)
			for _, f := range b.Forms() {
				for _, w := range harness.RowWrites[:2] { // not every rule guards an upsert
					wantRefused(t, name+", "+w.Name+" by "+f.Name, "", func() error { _, err := f.Run(ctx, db, w.As(b.Dialect)); return err })
				}
			}
			opened := pretend(t, sh, rules, unraised, verify.OnConnect())
			if err := opened.PingContext(t.Context()); !errors.Is(err, sqlfence.ErrNotSetUp) || !strings.Contains(err.Error(), "wrong-server") {
				t.Errorf("%s: verify.OnConnect opens it: %v", name, err)
			}
			found, err := verify.Check(t.Context(), db)
			if err != nil || len(found) != 1 || found[0].Code != "wrong-server" || found[0].Level != slog.LevelError {
				t.Errorf("%s: verify.Check finds %v, %v", name, found, err)
			}
			reported := 0
			observed := pretend(t, sh, rules, unraised, sqlfence.WithMode(sqlfence.Observe), sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
				if refused := (*sqlfence.UnguardableError)(nil); errors.As(e.Err, &refused) && strings.Contains(refused.Reason, "server") {
					reported++
				}
			}, sqlfence.WouldRefuse))
			if _, err := observed.ExecContext(ctx, "UPDATE books SET price = price WHERE id = 1"); err != nil || reported != 1 {
				t.Errorf("%s, observed: %v, %d events", name, err, reported)
			}
			if _, err := db.Exec("UPDATE " + others + " SET n = 2"); err != nil {
				t.Errorf("another table: %v", err)
			}
		}
		unchanged()
	})
}

// others is a table that no rule names.
const others = "g11_others"

func wantRefused(t *testing.T, what, server string, write func() error) {
	t.Helper()
	err := write()
	var refused *sqlfence.UnguardableError
	var temporary interface{ Temporary() bool }
	if !errors.As(err, &refused) || !errors.Is(err, sqlfence.ErrUnguardable) || refused.Server != server || !strings.Contains(refused.Reason, "server") || !errors.As(err, &temporary) || temporary.Temporary() {
		t.Errorf("%s: %v, want a refusal of the server %q", what, err, server)
	}
}

// Other products that speak a database's protocol are refused by their names, at a connection's first guarded write,
// unless the application takes the risk.
func TestG11ServersAreRefusedByName(t *testing.T) {
	version := func(d sqlfence.Dialect, says string) []string {
		if d == sqlfence.Postgres {
			says, extension, _ := strings.Cut(says, "|")
			return []string{"pg_catalog.version()", "'" + says + "'::text", "pg_catalog.pg_extension", "(SELECT '" + extension + "' AS extname)"}
		}
		says, comment, _ := strings.Cut(says, "|")
		comment, variable, _ := strings.Cut(comment, "|")
		return []string{"VERSION()", "_utf8mb4'" + says + "'", "SHOW VARIABLES WHERE", "SELECT 'version_comment', '" + comment +
			"' UNION ALL SELECT 'sql_mode', '' UNION ALL SELECT 'sql_select_limit', '10000' UNION ALL SELECT 'character_set_client', 'utf8mb4' UNION ALL SELECT '" + variable +
			"', '' UNION ALL SELECT Variable_name, '' FROM (SELECT '' AS Variable_name) AS v WHERE 1 = 0 AND"}
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if servers[b.Dialect] == nil {
			t.Skip("it is in the process")
		}
		sh := harness.NewShop(t, b)
		sh.Reset(t, 7)
		eachServer(b.Dialect, func(says, name string) {
			rules := []sqlfence.Rule{sqlfence.RowFence("fence_token")}
			write := func(db *sql.DB) error {
				_, err := db.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 9 WHERE id = 1")
				return err
			}
			db := pretend(t, sh, rules, version(b.Dialect, says))
			if name == "" {
				if err := write(db); err != nil {
					t.Errorf("%s: %v", says, err)
				}
				return
			}
			wantRefused(t, says, name, func() error { return write(db) })
			taken := pretend(t, sh, rules, version(b.Dialect, says), sqlfence.WithUntestedServer(strings.ToLower(name)))
			if err := write(taken); err != nil {
				t.Errorf("%s, with its risk taken: %v", says, err)
			}
			wantRefused(t, says+", another's risk is taken", name, func() error {
				return write(pretend(t, sh, rules, version(b.Dialect, says), sqlfence.WithUntestedServer("another")))
			})
			unproven := pretend(t, sh, rules, append(version(b.Dialect, says), unraised...), sqlfence.WithUntestedServer(name))
			wantRefused(t, says+", which doesn't raise", "", func() error { return write(unproven) })
			found, err := verify.Check(t.Context(), db)
			if err != nil || len(found) != 1 || found[0].Code != "wrong-server" || !strings.Contains(found[0].Remedy, name) {
				t.Errorf("%s: verify.Check finds %v, %v", says, found, err)
			}
		})
	})
}

// On MySQL and MariaDB the version query is sent alone. A proxy that answers it with its own version is refused by name,
// although the server behind it throws the guards' errors. A proxy that calls itself Vitess must pass errors on as vtgate
// does.
func TestG11AProxyIsRefusedByName(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.MySQL {
			t.Skip("no version query is sent alone")
		}
		sh := harness.NewShop(t, b)
		sh.Reset(t, 7)
		for front, name := range map[string]string{"8.0.30-Proxy": "Proxy", "8.4.0-tidb-proxy": "TiDB", "8.4.6-Vitess": ""} {
			replaced := []string{"SELECT @@version, @@version_comment", "SELECT '" + front + "', ''"}
			write := func(opts ...sqlfence.Option) error {
				db := pretend(t, sh, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, replaced, opts...)
				_, err := db.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 9 WHERE id = 1")
				return err
			}
			wantRefused(t, front, name, func() error { return write() })
			if err := write(sqlfence.WithUntestedServer("proxy"), sqlfence.WithUntestedServer("tidb")); (err == nil) != (name != "") {
				t.Errorf("%s, with its risk taken: %v", front, err)
			}
		}
	})
}

// The server query doesn't disturb a transaction that sqlfence didn't begin, and returns the same result inside it.
func TestG11InATransactionOfAStatement(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 7)
		for name, replaced := range map[string][]string{"raises": {"\x00", ""}, "doesn't raise": unraised} {
			c, err := pretend(t, sh, []sqlfence.Rule{sqlfence.RowFence("fence_token")}, replaced).Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{"BEGIN", "UPDATE books SET price = 77 WHERE id = 2"} {
				if _, err := c.ExecContext(sqlfence.Bypass(t.Context(), "begins"), query); err != nil {
					t.Fatal(err)
				}
			}
			_, err = c.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 78 WHERE id = 1")
			if name == "raises" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if name != "raises" {
				wantRefused(t, name, "", func() error { return err })
			}
			if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			var price int
			if err := sh.Raw(t, sh.Source).QueryRow("SELECT price FROM books WHERE id = 2").Scan(&price); err != nil || price != 77 {
				t.Errorf("%s: the transaction didn't live on: %d, %v", name, price, err)
			}
			sh.Exec(t, "UPDATE books SET price = 1 WHERE id = 2")
		}
	})
}
