package mysql_test

import (
	"database/sql"
	"database/sql/driver"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Arguments that go-sql-driver/mysql accepts, and their form on the wire.

// With interpolateParams the driver writes the arguments into the text, and sends the server one query.
func TestMySQLInterpolateParams(t *testing.T) {
	interpolate := func(c *mysql.Config) { c.InterpolateParams = true }
	fenced, c := harness.MySQL.Counted(t, mysqlWith(t, harness.MySQLDatabase(t), interpolate))
	var text string
	if err := fenced.QueryRow("SELECT CONCAT(?, '?', ?)", `it's \ "`, int64(-5)).Scan(&text); err != nil || text != `it's \ "?-5` {
		t.Errorf("%s, %v", text, err)
	}
	if calls := c.Calls(); len(calls) != 1 || calls[0].Kind != "query" {
		t.Errorf("calls: %v, want one query", calls)
	}
	besideMySQL(t, interpolate, "1; <nil>; 1; <nil>; 42; ", func(t *testing.T, db *sql.DB) string {
		n, err := harness.Affected(db.Exec("INSERT INTO pens (id, price) VALUES (?, ?)", uint64(7), 42))
		m, err2 := harness.Prepared(t.Context(), db, "UPDATE pens SET price = price WHERE id = ? OR price = ?", func(s *sql.Stmt) (int64, error) {
			_, err := s.Exec(7, 42)
			return 1, err
		})
		return saw(n, err, m, err2, countRows(t, db, "SELECT price FROM pens WHERE id = ?", uint64(7)))
	})
}

// Arguments that only this driver takes: unsigned numbers above the range of int64, Valuers that return unsigned
// numbers, JSON, and values that the driver refuses.
func TestMySQLArguments(t *testing.T) {
	for _, change := range []func(*mysql.Config){nil, func(c *mysql.Config) { c.InterpolateParams = true }} {
		run := func(t *testing.T, db *sql.DB) string {
			var seen []any
			for _, arg := range []any{
				uint64(math.MaxUint64), uint64(1 << 63), uint32(7), unsigned(math.MaxUint64), jsonText(`{"a": 1}`),
				time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC), []byte(nil), true, struct{}{}, func() {},
			} {
				for _, way := range []func() (string, error){
					func() (s string, err error) {
						err = db.QueryRow("SELECT COALESCE(CAST(? AS CHAR), 'null')", arg).Scan(&s)
						return s, err
					},
					func() (s string, err error) {
						_, err = harness.Prepared(t.Context(), db, "SELECT COALESCE(CAST(? AS CHAR), 'null')", func(stmt *sql.Stmt) (int64, error) {
							return 0, stmt.QueryRow(arg).Scan(&s)
						})
						return s, err
					},
				} {
					s, err := way()
					seen = append(seen, s, err)
				}
			}
			_, err := db.Exec("INSERT INTO pens (id) VALUES (?)", uint64(math.MaxUint64-1))
			var id uint64
			err2 := db.QueryRow("SELECT id FROM pens").Scan(&id)
			_, err3 := db.Exec("INSERT INTO pens (id) VALUES (?)", sql.Named("id", 1))
			return saw(append(seen, err, id, err2, err3)...)
		}
		want := run(t, mysqlPens(t, change))
		if strings.Count(want, "18446744073709551615; ") != 4 || !strings.Contains(want, "unsupported type") {
			t.Errorf("the driver alone: %s", want)
		}
		besideMySQL(t, change, want, run)
	}
}

// unsigned is a Valuer whose value database/sql's own check would refuse.
type unsigned uint64

func (u unsigned) Value() (driver.Value, error) { return uint64(u), nil }

type jsonText string

func (j jsonText) Value() (driver.Value, error) { return []byte(j), nil }

func TestMySQLParseTime(t *testing.T) {
	for _, change := range []func(*mysql.Config){
		nil,
		func(c *mysql.Config) { c.ParseTime = true },
		func(c *mysql.Config) { c.ParseTime, c.Loc = true, time.FixedZone("", 3600) },
	} {
		run := func(t *testing.T, db *sql.DB) string {
			at := time.Date(2020, 1, 2, 3, 4, 5, 678000000, time.UTC)
			if _, err := db.Exec("INSERT INTO pens (made) VALUES (?)", at); err != nil {
				return saw(err)
			}
			direct := harness.Describe(db.Query("SELECT * FROM pens"))
			stmt, err := db.Prepare("SELECT * FROM pens WHERE made = ?")
			if err != nil {
				return saw(err)
			}
			defer stmt.Close()
			return saw(direct, harness.Describe(stmt.Query(at)))
		}
		besideMySQL(t, change, run(t, mysqlPens(t, change)), run)
	}
}

func TestMySQLLoadDataLocal(t *testing.T) {
	mysql.RegisterReaderHandler("pens", func() io.Reader { return strings.NewReader("1\t10\n2\t20\n3\t30\n") })
	t.Cleanup(func() { mysql.DeregisterReaderHandler("pens") })
	besideMySQL(t, nil, "3; <nil>; 60; ", func(t *testing.T, db *sql.DB) string {
		n, err := harness.Affected(db.Exec("LOAD DATA LOCAL INFILE 'Reader::pens' INTO TABLE pens (id, price)"))
		return saw(n, err, countRows(t, db, "SELECT COALESCE(SUM(price), 0) FROM pens"))
	})
	unknown := func(t *testing.T, db *sql.DB) string {
		_, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::nobody' INTO TABLE pens (id, price)")
		return saw(err)
	}
	besideMySQL(t, nil, unknown(t, mysqlPens(t, nil)), unknown)
}
