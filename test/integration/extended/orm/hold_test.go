package orm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"gorm.io/gorm"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A nesting is an ORM's transaction, with a transaction nested in it, which is a savepoint. It calls before in the outer
// transaction, and within in the nested one, which is rolled back.
type nesting func(ctx context.Context, db *ormDB, before, within func(tx tokens.Tx) error) error

var errNested = errors.New("the nested transaction is rolled back")

var nestings = map[string]func(t *testing.T) nesting{
	"gorm": func(t *testing.T) nesting {
		return func(ctx context.Context, db *ormDB, before, within func(tx tokens.Tx) error) error {
			return openGorm(t, db).WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				if err := before(tx.Statement.ConnPool); err != nil {
					return err
				}
				err := tx.Transaction(func(tx *gorm.DB) error {
					return errors.Join(within(tx.Statement.ConnPool), errNested)
				})
				if !errors.Is(err, errNested) {
					return err
				}
				return tx.Exec("UPDATE months SET closed_by = closed_by + 1").Error
			})
		}
	},
	"gorm with prepared statements": func(t *testing.T) nesting {
		return func(ctx context.Context, db *ormDB, before, within func(tx tokens.Tx) error) error {
			prepared := openGorm(t, db).Session(&gorm.Session{PrepareStmt: true})
			return prepared.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				if err := before(tx.Statement.ConnPool); err != nil {
					return err
				}
				err := tx.Transaction(func(tx *gorm.DB) error {
					return errors.Join(within(tx.Statement.ConnPool), errNested)
				})
				if !errors.Is(err, errNested) {
					return err
				}
				return tx.Exec("UPDATE months SET closed_by = closed_by + 1").Error
			})
		}
	},
	"bun": func(*testing.T) nesting {
		return func(ctx context.Context, db *ormDB, before, within func(tx tokens.Tx) error) error {
			return openBun(db).RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				if err := before(tx.Tx); err != nil {
					return err
				}
				err := tx.RunInTx(ctx, nil, func(_ context.Context, tx bun.Tx) error {
					return errors.Join(within(tx.Tx), errNested)
				})
				if !errors.Is(err, errNested) {
					return err
				}
				_, err = tx.ExecContext(ctx, "UPDATE months SET closed_by = closed_by + 1")
				return err
			})
		}
	},
}

// The rollback of an ORM's nested transaction gives up the lock of a Hold in it, and the outer transaction can't be
// committed. It keeps the lock of a Hold in the outer transaction.
func TestHoldAndNestedTransactionsOfORMs(t *testing.T) {
	for _, b := range harness.Bases {
		for library, open := range nestings {
			t.Run(b.Name+"/"+library, func(t *testing.T) {
				dsn := b.DSN(t)
				db := &ormDB{DB: b.Fenced(t, dsn, harness.Books()), Base: b, source: dsn}
				harness.MustExec(t, db.DB, "CREATE TABLE months (id bigint PRIMARY KEY, closed_by bigint NOT NULL)")
				harness.MustExec(t, db.DB, "INSERT INTO months VALUES (1, 0)")
				store := newEpochs(t, db.DB)
				token := sqlfence.Token{Name: "month", Value: harness.IssueToken(t, store, "month")}
				hold := func(tx tokens.Tx) error { return store.Hold(t.Context(), tx, token) }
				nothing := func(tokens.Tx) error { return nil }
				if err := open(t)(t.Context(), db, hold, nothing); err != nil {
					t.Errorf("Hold in the outer transaction: %v", err)
				}
				err := open(t)(t.Context(), db, nothing, hold)
				if unlocks := b.Dialect != sqlfence.SQLite; unlocks != (err != nil) ||
					unlocks && !strings.Contains(err.Error(), "SAVEPOINT") {
					t.Errorf("Hold in the nested transaction: %v", err)
				}
			})
		}
	}
}
