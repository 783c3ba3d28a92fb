package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/Masterminds/squirrel"
	"github.com/doug-martin/goqu/v9"
	"github.com/go-jet/jet/v2/postgres"
	"github.com/gobuffalo/pop/v6"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/upper/db/v4"
	"github.com/upper/db/v4/adapter/postgresql"
	"xorm.io/xorm"
	"xorm.io/xorm/core"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// openings are the snippets of docs/compatibility.md by section. Each snippet updates the price of the first book.
var openings = map[string]func(ctx context.Context, db *sql.DB, dsn string) error{
	"xorm": openingXorm, "pop": openingPop, "upper/db": openingUpper,
	"squirrel": openingSquirrel, "goqu": openingGoqu, "jet": openingJet,
}

func TestOpenings(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Name != "pgx" {
			t.Skip("the snippets are for pgx")
		}
		s := newORMShop(t, b)
		for section, update := range openings {
			t.Run(section, func(t *testing.T) {
				do := func(ctx context.Context) (any, error) {
					return nil, update(ctx, s.fenced(t, ormRules[0]).DB, s.source) // xorm may close it
				}
				stale := s.do(t, do, ormMark, ormRules[0].tokens(ormStale)...)
				if !errors.Is(stale.err, sqlfence.ErrStale) || stale.rows != s.initial {
					t.Errorf("stale token: err = %v, the books are\n%s", stale.err, stale.rows)
				}
				fresh := s.do(t, do, ormFresh, ormRules[0].tokens(ormFresh)...)
				if fresh.err != nil || fresh.rows == s.initial {
					t.Errorf("fresh token: err = %v, the books are\n%s", fresh.err, fresh.rows)
				}
			})
		}
	})
}

// TestOpeningsAreDocumented fails if docs/compatibility.md has a line of Go that this file doesn't have.
func TestOpeningsAreDocumented(t *testing.T) {
	lines := make(map[string]bool)
	for line := range strings.Lines(readText(t, "opening_test.go")) {
		lines[codeOf(line)] = true
	}
	page := readText(t, "../../../../docs/compatibility.md")
	for section := range openings {
		_, text, found := strings.Cut(page, "\n## "+section+"\n")
		_, text, opened := strings.Cut(text, "```go\n")
		snippet, _, closed := strings.Cut(text, "```")
		if !found || !opened || !closed {
			t.Errorf("docs/compatibility.md has no snippet for %s", section)
		}
		for line := range strings.Lines(snippet) {
			if code := codeOf(line); !lines[code] {
				t.Errorf("%s: no test has %q", section, code)
			}
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// codeOf returns a line without its comment and alignment.
func codeOf(line string) string {
	code, _, _ := strings.Cut(line, " // ")
	return strings.Join(strings.Fields(code), " ")
}

type openedXorm struct {
	ID         int64 `xorm:"'id' pk autoincr"`
	Price      int64
	FenceToken int64 `xorm:"<-"`
}

func (openedXorm) TableName() string { return "books" }

func openingXorm(ctx context.Context, db *sql.DB, dsn string) error {
	engine, err := xorm.NewEngineWithDB("pgx", dsn, core.FromDB(db))
	if err != nil {
		return err
	}
	book := openedXorm{ID: 1, Price: 30}
	n, err := engine.Context(ctx).ID(book.ID).AllCols().Update(&book)
	if err == nil && n != 1 {
		return errors.New("no row")
	}
	return err
}

type openedPop struct {
	ID         int64  `db:"id"`
	Price      int64  `db:"price"`
	FenceToken *int64 `db:"fence_token" rw:"r"`
}

func (openedPop) TableName() string { return "books" }

var registerFenced = sync.OnceValue(func() error {
	err := sqlfence.Register("pgx-fenced", stdlib.GetDefaultDriver(),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	sqlx.BindDriver("pgx-fenced", sqlx.DOLLAR)
	return err
})

func openingPop(ctx context.Context, _ *sql.DB, dsn string) error {
	if err := registerFenced(); err != nil {
		return err
	}
	c, err := pop.NewConnection(&pop.ConnectionDetails{Dialect: "postgres", Driver: "pgx-fenced", URL: dsn})
	if err != nil {
		return err
	}
	err = c.Open()
	if err != nil {
		return err
	}
	book := openedPop{ID: 1, Price: 30}
	err = c.WithContext(ctx).Update(&book)
	return errors.Join(err, c.Close())
}

type openedUpper struct {
	ID         int64 `db:"id"`
	Price      int64 `db:"price"`
	FenceToken int64 `db:"fence_token,omitempty"`
}

func (*openedUpper) Store(sess db.Session) db.Store { return sess.Collection("books") }

func openingUpper(ctx context.Context, db *sql.DB, _ string) error {
	sess, err := postgresql.New(db)
	if err != nil {
		return err
	}
	book := openedUpper{ID: 1, Price: 30}
	err = sess.WithContext(ctx).Save(&book)
	return err
}

func openingSquirrel(ctx context.Context, db *sql.DB, _ string) error {
	sq := squirrel.StatementBuilder.PlaceholderFormat(squirrel.Dollar)
	_, err := sq.Update("books").Set("price", 30).Where(squirrel.Eq{"id": 1}).RunWith(db).ExecContext(ctx)
	return err
}

type openedGoqu struct {
	Price      int64  `db:"price"`
	FenceToken *int64 `db:"fence_token" goqu:"skipinsert,skipupdate"`
}

func openingGoqu(ctx context.Context, db *sql.DB, _ string) error {
	q := goqu.New("postgres", db)
	book := openedGoqu{Price: 30}
	_, err := q.Update("books").Prepared(true).Set(book).Where(goqu.C("id").Eq(1)).Executor().ExecContext(ctx)
	return err
}

// Books is what jet would generate.
var Books = func() (b struct {
	postgres.Table
	ID             postgres.ColumnInteger
	MutableColumns postgres.ColumnList
	FenceToken     postgres.ColumnInteger
}) {
	price := postgres.IntegerColumn("price")
	b.ID, b.FenceToken = postgres.IntegerColumn("id"), postgres.IntegerColumn("fence_token")
	b.MutableColumns = postgres.ColumnList{price, b.FenceToken}
	b.Table = postgres.NewTable("", "books", "", b.ID, price, b.FenceToken)
	return b
}()

func openingJet(ctx context.Context, db *sql.DB, _ string) error {
	book := jetBook{ID: 1, Price: 30}
	stmt := Books.UPDATE(Books.MutableColumns.Except(Books.FenceToken)).MODEL(book).WHERE(Books.ID.EQ(postgres.Int(1)))
	_, err := stmt.ExecContext(ctx, db)
	return err
}
