package orm_test

import (
	"context"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// ORMs with optimistic locking: the ORM's UPDATE increments a version column and compares it in WHERE, and the ORM
// reports a conflict if the UPDATE changes no row.

type xormLocked struct {
	ID     int64 `xorm:"'id' pk autoincr"`
	Price  int64
	Serial int64 `xorm:"version"`
}

func (xormLocked) TableName() string { return "books" }

// An ormLock sets the third book's price if its serial is the given one, and returns the number of rows.
type ormLock func(ctx context.Context, price, serial int64) (int64, error)

// eachORMLock runs test for each such ORM, on a database with the rules.
func eachORMLock(t *testing.T, test func(t *testing.T, s ormSerialShop, set ormLock), rules ...sqlfence.Rule) {
	t.Helper()
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMSerialShop(t, b)
		db := s.fenced(t, ormRule{rules: rules})
		for name, set := range map[string]ormLock{
			"gorm": func(ctx context.Context, price, serial int64) (int64, error) {
				res := openGorm(t, db).WithContext(ctx).Table("books").Where("id = 3 AND serial = ?", serial). // as its plugin optimisticlock
																Updates(map[string]any{"price": price, "serial": gorm.Expr("serial + 1")})
				return res.RowsAffected, res.Error
			},
			"xorm": func(ctx context.Context, price, serial int64) (int64, error) {
				return openXorm(t, s.fenced(t, ormRule{rules: rules})).Context(ctx).ID(3).Update(&xormLocked{Price: price, Serial: serial})
			},
		} {
			t.Run(name, func(t *testing.T) {
				s.version(t)
				test(t, s, set)
			})
		}
	})
}

// wantCounted fails the test unless the update counted want rows and returned no error.
func wantCounted(t *testing.T, want int64) func(n int64, err error) {
	return func(n int64, err error) {
		t.Helper()
		if n != want || err != nil {
			t.Errorf("%d rows, %v; want %d", n, err, want)
		}
	}
}

// The column that an ORM increments may be registered as Serial. Without WithSerial the ORM's own comparison decides;
// under WithSerial the UPDATE is refused, because it assigns the serial.
func TestORMSerialOfItsOwn(t *testing.T) {
	eachORMLock(t, func(t *testing.T, s ormSerialShop, set ormLock) {
		wantCounted(t, 1)(set(t.Context(), 31, 7))
		s.rows.WantVersions(t, "1:10#1 2:20#1 3:31#8")
		wantCounted(t, 0)(set(t.Context(), 32, 7))
		wantCounted(t, 1)(set(t.Context(), 31, 8)) // the price is unchanged
		_, err := set(harness.WithSerial(t, 9), 32, 9)
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		s.rows.WantVersions(t, "1:10#1 2:20#1 3:31#9")
	}, sqlfence.Serial("serial"))
}

// Under RowFence and under Ledger, an ORM may increment its own version column: sqlfence doesn't treat it as special.
func TestORMVersionsUnderAFence(t *testing.T) {
	for _, r := range ormRules[:2] {
		t.Run(r.name, func(t *testing.T) {
			eachORMLock(t, func(t *testing.T, s ormSerialShop, set ormLock) {
				s.exec(t, fmt.Sprintf("UPDATE fencing_tokens SET token = %d", ormMark))
				holding := func(token int64) context.Context { return sqlfence.WithFence(t.Context(), r.tokens(token)...) }
				wantCounted(t, 1)(set(holding(ormMark), 31, 7))
				wantCounted(t, 0)(set(holding(ormMark), 32, 7))
				_, err := set(holding(ormStale), 32, 8)
				harness.WantStale(t, err, ormStale, ormMark)
				wantCounted(t, 1)(set(holding(ormMark), 31, 8))
				s.rows.WantVersions(t, "1:10#1 2:20#1 3:31#9")
			}, r.rules...)
		})
	}
}
