package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// valueColumns are the columns for values, by name, with their types.
var valueColumns = map[string]string{
	"a": "bigint unsigned", "b": "bit(12)", "c": "json", "d": "decimal(20,4)", "e": "enum('x','y','')", "f": "set('x','y','z')", "g": "datetime(6)", "h": "date", "i": "timestamp(6) NULL",
	"j": "varbinary(20)", "k": "blob", "l": "varchar(8)", "m": "year", "n": "double", "o": "tinyint", "p": "time(3)", "q": "float", "r": "char(4) NOT NULL DEFAULT 'z'", "s": "int unsigned NOT NULL DEFAULT 7",
}

// argument returns a value that some of the columns can't hold.
func (r random) argument() any {
	moment := time.Date(2024, 3, 31, 1, 30, 0, 123456789, time.UTC).Add(time.Duration(r.IntN(100)) * time.Hour)
	values := []any{nil, int64(-1), int64(0), int64(1), uint64(1<<63 + 5), uint64(1<<64 - 1), int64(-1 << 63), int64(300), 1.5, -2.25e10, 1e300, true, false, "", "x", "y,z", "4x", "it's", `a\b`, "é", "日本語", "x\x00y", "12345678901234567890",
		"123.45678", "2024-02-30", "0000-00-00", "0000-00-00 00:00:00", "2024-05-06 07:08:09.654321", "12:34:56.789", "[1, 2]", `{"a": "b'c"}`, "null", []byte("x"), []byte{0, 1, 0xFF}, []byte(`{"k": 1}`), []byte{}, []byte(nil), moment, moment.In(time.FixedZone("", 5*3600)), time.Time{}, "1970-01-01 00:00:00"}
	return values[r.IntN(len(values))]
}

// An answer holds a write's visible results, and the rows afterwards.
type answer struct {
	err, counts, warnings, rows string
}

var rowNumber = regexp.MustCompile(`at row \d+`)

// unnumbered returns the answer without the row numbers in errors, because the server also counts the ledger's row.
func (a answer) unnumbered() answer {
	a.err, a.warnings = rowNumber.ReplaceAllString(a.err, "at row"), rowNumber.ReplaceAllString(a.warnings, "at row")
	return a
}

// answered runs a write in a transaction that is rolled back.
func answered(t *testing.T, ctx context.Context, db *sql.DB, query string, args []any) (a answer) {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		a.err = err.Error()
	} else {
		affected, err1 := result.RowsAffected()
		id, err2 := result.LastInsertId()
		a.counts = fmt.Sprint(affected, err1, id, err2)
	}
	a.warnings = dump(t, tx, "SHOW WARNINGS")
	a.rows = dump(t, tx, "SELECT id, fence_token IS NULL, HEX(a), HEX(b), HEX(c), d, HEX(e), HEX(f), g, h, UNIX_TIMESTAMP(i), HEX(j), HEX(k), HEX(l), m, n, o, p, q, HEX(r), s FROM vals ORDER BY id = 1 DESC, id = 2 DESC, id")
	return a
}

func dump(t *testing.T, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string) string {
	t.Helper()
	rows, err := q.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	var b strings.Builder
	for rows.Next() {
		row, to := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		for _, v := range row {
			fmt.Fprintf(&b, "%s|", v)
		}
		b.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// valueWrite writes a random UPDATE, INSERT or upsert with arguments.
func (r random) valueWrite() (query string, args []any) {
	names := strings.Split("abcdefghijklmnopqrs", "")
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+r.IntN(3)]
	var items []string
	for _, n := range names {
		items = append(items, n+" = ?")
		args = append(args, r.argument())
	}
	set := strings.Join(items, ", ")
	ignore := r.pick("", "", "", "IGNORE ")
	switch r.IntN(5) {
	case 4:
		return "INSERT " + ignore + "INTO vals (" + strings.Join(names, ", ") + ", id) VALUES (" + strings.Repeat("?, ", len(names)) + "3)", args
	case 0:
		return "INSERT " + ignore + "INTO vals SET id = 3, " + set, args
	case 1:
		return "INSERT " + ignore + "INTO vals (id, " + strings.Join(names, ", ") + ") VALUES (3" + strings.Repeat(", ?", len(names)) + ")", args
	case 2:
		return "INSERT INTO vals (id, l) VALUES (" + r.pick("1", "3") + ", 'new') ON DUPLICATE KEY UPDATE " + set, args
	}
	return "UPDATE " + ignore + "vals SET " + set + r.pick("", " WHERE id = 1", " WHERE id IN (1, 2) ORDER BY id"), args
}

// With the current token a guarded write stores the same values, and reports the same count and warnings, as without a
// guard.
func TestValuesBesideBare(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	var columns []string
	for _, n := range strings.Split("abcdefghijklmnopqrs", "") {
		columns = append(columns, n+" "+valueColumns[n])
	}
	exec(t, plain, "CREATE TABLE vals (id bigint AUTO_INCREMENT PRIMARY KEY, "+strings.Join(columns, ", ")+", fence_token bigint) ENGINE=InnoDB CHARACTER SET utf8mb4")
	exec(t, plain, "INSERT INTO vals (id, a, l, fence_token) VALUES (1, 1, 'one', 5), (2, 2, 'two', 5)")
	exec(t, plain, "INSERT INTO fencing_tokens VALUES ('vals', 5)")
	ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "vals", Value: 5})
	for _, m := range modes {
		for _, zoned := range []bool{false, true} {
			t.Run(fmt.Sprint(m.name, ", zoned ", zoned), func(t *testing.T) {
				cfg, _ := mysql.ParseDSN(m.with(t, dsn))
				if zoned {
					cfg.ParseTime, cfg.Loc = true, time.FixedZone("", -7*3600)
					if cfg.Params == nil {
						cfg.Params = map[string]string{}
					}
					cfg.Params["time_zone"] = "'-07:00'"
				}
				bare := open(t, cfg.FormatDSN())
				fenced := map[string]*sql.DB{}
				for name, rules := range map[string][]sqlfence.Rule{"row": {sqlfence.RowFence("fence_token")}, "ledger": {sqlfence.Ledger()}, "both": {sqlfence.RowFence("fence_token"), sqlfence.Ledger()}} {
					db, err := sqlfence.Open("mysql", cfg.FormatDSN(), sqlfence.WithTable("vals", rules...))
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
					fenced[name] = db
				}
				r := random{rand.New(rand.NewPCG(3, 1))}
				warned, failed := 0, 0
				for range harness.Rounds(t, 150) {
					query, args := r.valueWrite()
					want := answered(t, context.Background(), bare, query, args).unnumbered()
					if want.warnings != "" {
						warned++
					}
					if want.err != "" {
						failed++
					}
					for name, db := range fenced {
						if name == "ledger" && strings.HasSuffix(query, "?, 3)") {
							continue // MySQL converts the argument differently inside the ledger's check
						}
						got := answered(t, ctx, db, query, args)
						if strings.HasPrefix(name, "row") || name == "both" { // a new row stores the token
							got.rows = strings.ReplaceAll(got.rows, "3|0|", "3|1|")
						}
						if got = got.unnumbered(); got != want {
							t.Errorf("%s: %s %#v\n got %+v\nwant %+v", name, query, args, got, want)
						}
					}
				}
				t.Logf("%d warned, %d failed", warned, failed)
			})
		}
	}
}
