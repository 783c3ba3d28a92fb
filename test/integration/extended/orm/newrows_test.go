package orm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The application assigns the primary key of new rows under Key("id"), so each new row has its own token.

// A gormOwnKey book has a primary key that the database never generates, so gorm's INSERT lists the key column first.
type gormOwnKey struct {
	ID    int64 `gorm:"autoIncrement:false"`
	ISBN  string
	Title string
	Price int64
}

func (gormOwnKey) TableName() string { return "books" }

// creates are ways to insert book 4. The INSERTs of the ORMs in keyLast list the key column last.
var (
	creates = map[string]func(ctx context.Context, t *testing.T, db *ormDB) error{
		"gorm": func(ctx context.Context, t *testing.T, db *ormDB) error {
			return openGorm(t, db).WithContext(ctx).Create(&gormBook{ID: 4, ISBN: "i4", Price: 40}).Error
		},
		"gorm, autoIncrement:false": func(ctx context.Context, t *testing.T, db *ormDB) error {
			return openGorm(t, db).WithContext(ctx).Create(&gormOwnKey{ID: 4, ISBN: "i4", Price: 40}).Error
		},
		"ent": func(ctx context.Context, _ *testing.T, db *ormDB) error { // the call that ent's generated code makes
			return sqlgraph.CreateNode(ctx, entsql.OpenDB(db.dialectName(dialect.Postgres, dialect.SQLite, dialect.MySQL), db.DB), &sqlgraph.CreateSpec{
				Table: "books",
				ID:    &sqlgraph.FieldSpec{Column: "id", Type: field.TypeInt, Value: 4},
				Fields: []*sqlgraph.FieldSpec{
					{Column: "isbn", Type: field.TypeString, Value: "i4"}, {Column: "title", Type: field.TypeString, Value: ""}, {Column: "price", Type: field.TypeInt64, Value: 40},
				},
			})
		},
		"bun": func(ctx context.Context, _ *testing.T, db *ormDB) error {
			_, err := openBun(db).NewInsert().Model(&bunBook{ID: 4, ISBN: "i4", Price: 40}).Exec(ctx)
			return err
		},
		"xorm": func(ctx context.Context, t *testing.T, db *ormDB) error {
			_, err := openXorm(t, db).Context(ctx).Insert(&xormBook{ID: 4, ISBN: "i4", Price: 40})
			return err
		},
	}
	keyLast = []string{"gorm", "ent"}
)

// wantKeyLast fails the test unless the INSERT was refused because the key column is the last column in its list.
func wantKeyLast(t *testing.T, s *ormShop, got ormOutcome) {
	t.Helper()
	harness.WantError(t, got.err, sqlfence.ErrUnguardable)
	if got.rows != s.initial || !strings.Contains(fmt.Sprint(got.err), "name the key column first") {
		t.Errorf("%v, the books are\n%s", got.err, got.rows)
	}
}

// MySQL's ledger check reads the key as the row stores it. The check stands in the value of a later column, so an
// INSERT must not list the key column last.
func TestORMCreatesByKey(t *testing.T) {
	for _, r := range []ormRule{
		{name: "ledger", rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{name: "row fence", rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}},
	} {
		t.Run(r.name, func(t *testing.T) {
			harness.EachProgram(t, func(t *testing.T, b harness.Base) {
				s := newORMShop(t, b)
				for name, create := range creates {
					t.Run(name, func(t *testing.T) {
						got := s.do(t, func(ctx context.Context) (any, error) { return nil, create(ctx, t, s.fenced(t, r)) },
							ormFresh, sqlfence.Token{Name: "books/4", Value: ormFresh})
						if r.name == "ledger" && b.Dialect == sqlfence.MySQL && slices.Contains(keyLast, name) {
							wantKeyLast(t, s, got)
						} else if want := s.initial + "4 i4  40 0 false\n"; got.err != nil || got.rows != want {
							t.Errorf("%v, the books are\n%s", got.err, got.rows)
						}
					})
				}
			})
		})
	}
}

// gorm's Save of an unchanged record sends an UPDATE that changes no row. On MySQL gorm takes the row for missing and
// inserts the record.
func TestORMSavesByKey(t *testing.T) {
	first := int64(1)
	r := ormRule{rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}}
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMShop(t, b)
		save := func(record any) ormOutcome {
			return s.do(t, func(ctx context.Context) (any, error) {
				return nil, openGorm(t, s.fenced(t, r)).WithContext(ctx).Save(record).Error
			}, ormFresh, sqlfence.Token{Name: "books/2", Value: ormFresh})
		}
		if got := save(&gormBook{ID: 2, ISBN: "i2", Title: "two", Price: 20, PrequelID: &first}); b.Name == "mysql" {
			wantKeyLast(t, s, got)
		} else if got.err != nil || got.rows != s.initial {
			t.Errorf("%v, the books are\n%s", got.err, got.rows)
		}
		if got := save(&gormOwnKey{ID: 2, ISBN: "i2", Title: "two", Price: 20}); got.err != nil || got.rows != s.initial {
			t.Errorf("autoIncrement:false: %v, the books are\n%s", got.err, got.rows)
		}
	})
}
