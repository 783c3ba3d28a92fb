package statements_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// An INSERT that names no columns is guarded where the fence column is the one behind its
// values.
func TestInsertWithoutColumns(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Exec(t, "CREATE TABLE more (id integer, isbn text, price integer, writer bigint)")
		s.Exec(t, "INSERT INTO more VALUES (21, 'i21', 4, 0), (22, 'i22', 4, 0)")
		type insertion struct {
			query string
			args  []any
			want  string
		}
		inserts := []insertion{
			{"INSERT INTO books VALUES (7, 'i7', 30, 0)", nil, "7:30@5"},
			{"INSERT INTO books VALUES ($1, $2, $3, $4)", []any{7, "i7", 30, 0}, "7:30@5"},
			{"INSERT INTO books AS b VALUES (7, 'i7', 30, 0), (8, 'i8', 31, 0), (9, 'i9', 32, 0)", nil, "7:30@5 8:31@5 9:32@5"},
			{"INSERT INTO books SELECT id, isbn, price, writer FROM more AS m WHERE price = $1", []any{4}, "21:4@5 22:4@5"},
			{"INSERT INTO books WITH x AS (SELECT 7 AS a) SELECT a, 'i7', 30, count(*) FROM x GROUP BY a", nil, "7:30@5"},
			{"INSERT INTO books SELECT 7, 'i7', 30, 0 UNION SELECT 8, 'i8', 31, 0 UNION ALL VALUES (9, 'i9', 32, 0)", nil, "7:30@5 8:31@5 9:32@5"},
			{"INSERT INTO books VALUES (1, 'i1', 30, 0) ON CONFLICT (id) DO UPDATE SET price = excluded.price RETURNING id", nil, "1:30@5"},
			{"INSERT INTO books VALUES (1, 'i1', 30, 0) ON CONFLICT DO NOTHING", nil, "1:10@5"},
		}
		if b.Dialect == sqlfence.Postgres {
			inserts = append(inserts,
				insertion{"WITH x AS (INSERT INTO books VALUES (7, 'i7', 30, 0) RETURNING *) SELECT * FROM x", nil, "7:30@5"},
				insertion{"MERGE INTO books USING (VALUES (7)) AS s(id) ON books.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'i7', 30, $1)", []any{0}, "7:30@5"})
		}
		for _, insert := range inserts {
			s.Reset(t, 5)
			for name, run := range harness.Ways {
				t.Run(insert.query+" by "+name, func(t *testing.T) {
					s.Exec(t, "DELETE FROM books WHERE id > 3")
					if err := run(harness.Holding(t, 5), s.DB, insert.query, insert.args...); err != nil {
						t.Fatal(err)
					}
					if got := " " + s.State(t, true) + " "; !strings.Contains(got, " "+insert.want+" ") {
						t.Errorf("books are%s, want%s among them", got, insert.want)
					}
				})
			}
		}
	})
}

// Where it isn't, nothing is inserted, and the error says to name the columns. It wraps what
// the database said.
func TestInsertWithoutColumnsMisplaced(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 5)
		s.Exec(t, "CREATE TABLE pens2 (id integer, isbn text, fence_token bigint, price integer)")
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")),
			sqlfence.WithTable("pens2", sqlfence.RowFence("fence_token"), sqlfence.Resource("books")))
		unchanged := s.Unchanged(t)
		for _, query := range []string{
			"INSERT INTO books VALUES (7, 'i7', 30, 0, 5)", // all, with the token
			"INSERT INTO books VALUES (7, 'i7', 30)",
			"INSERT INTO books VALUES (7, 'i7')",
			"INSERT INTO books SELECT 7, 'i7', 30",
			"INSERT INTO books SELECT 7, 'i7', 30, 0, 0, 0",
			"INSERT INTO pens2 VALUES (7, 'i7', 5)",
			"INSERT INTO pens2 VALUES (7)",
			"INSERT INTO pens2 SELECT 7, 'i7', 5",
		} {
			for name, run := range harness.Ways {
				var refused *sqlfence.UnguardableError
				err := run(harness.Holding(t, 5), db, query)
				if !errors.As(err, &refused) || refused.Unwrap() == nil || !strings.Contains(refused.Reason, `"fence_token"`) {
					t.Errorf("%s by %s: %v, want an UnguardableError by the database", query, name, err)
				}
			}
		}
		unchanged()
		var pens int
		if err := s.Plain.QueryRowContext(t.Context(), "SELECT count(*) FROM pens2").Scan(&pens); err != nil || pens != 0 {
			t.Errorf("%d pens were inserted, %v", pens, err)
		}
	})
}

// Any table, and any number of values: either each column has what the base driver alone
// would store there and the fence column the token, or nothing is inserted.
func TestInsertWithoutColumnsIntoAnyTable(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")))
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		guarded := 0
		for n := range 250 {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			table := randomTable(random, b.Dialect)
			ctx := sqlfence.Bypass(t.Context(), "test")
			for _, query := range table.create {
				if _, err := conn.ExecContext(ctx, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			query, given, counted := table.insert(random)
			_, err := conn.ExecContext(harness.Holding(t, 5), query)
			want := table.fits(given) && (counted || table.whole)
			if want != (err == nil) || err != nil && !errors.Is(err, sqlfence.ErrUnguardable) {
				t.Errorf("%d: %s; %s: %v, fits: %v", n, strings.Join(table.create, "; "), query, err, want)
			}
			if wrong := table.wrong(ctx, t, conn, given); wrong != "" {
				t.Errorf("%d: %s; %s: %s", n, strings.Join(table.create, "; "), query, wrong)
			}
			if err == nil {
				guarded++
			}
		}
		if guarded < 20 {
			t.Errorf("only %d of 250 were inserted", guarded)
		}
	})
}

// An anyTable is one whose columns stand in any order.
type anyTable struct {
	create  []string
	columns []string // that values are for, without those that are generated
	whole   bool     // a row has values for all of them
}

func randomTable(random *rand.Rand, d sqlfence.Dialect) *anyTable {
	columns := []string{"a integer DEFAULT 5", `"B" integer`, "c integer DEFAULT 1"}[:1+random.IntN(3)]
	columns = slices.Concat(columns, []string{"fence_token bigint DEFAULT 0"})
	var dropped []string
	for _, extra := range []string{"gone", "lost"} {
		if random.IntN(3) == 0 {
			columns = append(columns, extra+" integer")
			dropped = append(dropped, extra)
		}
	}
	random.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	generated := random.IntN(3) == 0
	at := random.IntN(len(columns) + 1)
	if generated && d == sqlfence.Postgres {
		at = len(columns) // before others no value could stand in its place
	}
	if generated {
		columns = slices.Insert(columns, at, "made integer GENERATED ALWAYS AS (7) STORED")
	}
	t := &anyTable{create: []string{"DROP TABLE IF EXISTS books", "CREATE TABLE books (" + strings.Join(columns, ", ") + ")"}, whole: d == sqlfence.SQLite}
	for _, name := range dropped {
		t.create = append(t.create, "ALTER TABLE books DROP COLUMN "+name)
	}
	for _, column := range columns {
		name, _, _ := strings.Cut(column, " ")
		if !slices.Contains(dropped, name) && name != "made" {
			t.columns = append(t.columns, name)
		}
	}
	if random.IntN(3) == 0 {
		t.create = append(t.create, "ALTER TABLE books ADD COLUMN added integer DEFAULT 2")
		if !generated || d != sqlfence.Postgres {
			t.columns = append(t.columns, "added")
		}
	}
	return t
}

// insert returns an INSERT of rows with the values 101, 102 and so on, and how many there
// are; counted says whether the text shows that.
func (a *anyTable) insert(random *rand.Rand) (query string, given int, counted bool) {
	given = 1 + random.IntN(len(a.columns))
	if a.whole && random.IntN(2) == 0 {
		given = max(1, len(a.columns)-1)
	}
	values := make([]string, given)
	for i := range values {
		values[i] = fmt.Sprint(101 + i)
	}
	row := strings.Join(values, ", ")
	of := random.IntN(6)
	return []string{
		"INSERT INTO books VALUES (" + row + ")",
		"INSERT INTO books SELECT DISTINCT " + row + " * 1",
		"INSERT INTO books VALUES (" + row + "), (" + row + ")",
		"INSERT INTO books SELECT " + row,
		"INSERT INTO books SELECT " + row + " UNION ALL VALUES (" + row + "), (" + row + ")",
		"INSERT INTO books SELECT x.* FROM (SELECT " + row + ") AS x",
	}[of], given, of != 5
}

// fits reports whether the value behind so many others is for the fence column.
func (a *anyTable) fits(given int) bool {
	return given < len(a.columns) && a.columns[given] == "fence_token" && (!a.whole || given == len(a.columns)-1)
}

// wrong says what is stored that shouldn't be.
func (a *anyTable) wrong(ctx context.Context, t *testing.T, conn *sql.Conn, given int) string {
	t.Helper()
	conditions := []string{"fence_token = 5"}
	for i, name := range a.columns[:given] {
		if name != "fence_token" {
			conditions = append(conditions, fmt.Sprintf("%s = %d", name, 101+i))
		}
	}
	for _, name := range a.columns[given:] {
		if defaults := map[string]int{"a": 5, "c": 1, "added": 2}; defaults[name] > 0 {
			conditions = append(conditions, fmt.Sprintf("%s = %d", name, defaults[name]))
		}
	}
	var wrong int
	query := "SELECT count(*) FROM books WHERE NOT COALESCE(" + strings.Join(conditions, " AND ") + ", false)"
	if err := conn.QueryRowContext(ctx, query).Scan(&wrong); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if wrong > 0 {
		return fmt.Sprintf("%d rows not as %s", wrong, conditions)
	}
	return ""
}
