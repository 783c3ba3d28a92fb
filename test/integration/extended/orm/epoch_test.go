package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/uptrace/bun"
	"gorm.io/gorm"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// docs/epochs.md shows programs that store an epoch in a lease row. This file has each program twice: before the page's
// change, when the program only reads the row, and after the change.

var errLost = errors.New("the lease is lost")

// A jobLease is gorm's model of the lease row.
type jobLease struct {
	Name  string
	Epoch int64
}

// DBTX and Queries are what sqlc generates for the query of the lease row.
type DBTX interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

type Queries struct{ db DBTX }

func (q *Queries) WithTx(tx *sql.Tx) *Queries { return &Queries{db: tx} }

func (q *Queries) LeaseEpoch(ctx context.Context) (int64, error) {
	row := q.db.QueryRowContext(ctx, "SELECT epoch FROM job_leases WHERE name = 'month'")
	var epoch int64
	err := row.Scan(&epoch)
	return epoch, err
}

// newEpochs opens the ledger as the page does.
func newEpochs(t *testing.T, db *sql.DB) *tokens.Store {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := tokens.New(db)
	check(err) // ends the program
	check(store.Setup(ctx))
	return store
}

func incrementEpoch(ctx context.Context, db *sql.DB) (*sql.Tx, int64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, 0, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE job_leases SET epoch = epoch + 1 WHERE name = 'month'")
	var epoch int64
	if err == nil {
		err = tx.QueryRowContext(ctx, "SELECT epoch FROM job_leases WHERE name = 'month'").Scan(&epoch)
	}
	return tx, epoch, err
}

func takeOverUnfenced(ctx context.Context, db *sql.DB) (int64, error) {
	tx, epoch, err := incrementEpoch(ctx, db)
	if err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	return epoch, nil
}

func takeOver(ctx context.Context, db *sql.DB, store *tokens.Store) (int64, error) {
	tx, epoch, err := incrementEpoch(ctx, db)
	if err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	return epoch, store.Adopt(ctx, sqlfence.Token{Name: "month", Value: epoch})
}

type exec func(query string) error

// An epochProgram runs work in a transaction of the holder with the given epoch.
type epochProgram struct {
	library        string
	unfenced, held func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error
}

type epochShop struct {
	db    *sql.DB
	gorm  *gorm.DB
	bun   *bun.DB
	pool  *pgxpool.Pool // nil except on PostgreSQL
	store *tokens.Store
}

// inTx runs a check, and then work, in a transaction of database/sql.
func (s *epochShop) inTx(ctx context.Context, work func(exec) error, check func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := check(tx); err != nil {
		return err
	}
	if err := work(func(query string) error { _, err := tx.ExecContext(ctx, query); return err }); err != nil {
		return err
	}
	return tx.Commit()
}

// holdInSQL is the fenced program for database/sql and for sqlc, which uses database/sql's transactions.
func holdInSQL(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
	store := s.store
	return s.inTx(ctx, work, func(tx *sql.Tx) (err error) {
		err = store.Hold(ctx, tx, sqlfence.Token{Name: "month", Value: epoch})
		if err != nil {
			return err
		}
		return nil
	})
}

var epochPrograms = []epochProgram{{
	library: "database/sql",
	unfenced: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		return s.inTx(ctx, work, func(tx *sql.Tx) (err error) {
			var current int64
			err = tx.QueryRowContext(ctx, "SELECT epoch FROM job_leases WHERE name = 'month'").Scan(&current)
			if err == nil && current != epoch {
				err = errLost
			}
			if err != nil {
				return err
			}
			return nil
		})
	},
	held: holdInSQL,
}, {
	library: "pgx",
	unfenced: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var current int64
			err := tx.QueryRow(ctx, "SELECT epoch FROM job_leases WHERE name = 'month'").Scan(&current)
			if err == nil && current != epoch {
				err = errLost
			}
			if err != nil {
				return err
			}
			return work(func(query string) error { _, err := tx.Exec(ctx, query); return err })
		})
	},
	held: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		store := s.store
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			err := fencepgx.Hold(ctx, tx, store, sqlfence.Token{Name: "month", Value: epoch})
			if err != nil {
				return err
			}
			return work(func(query string) error { _, err := tx.Exec(ctx, query); return err })
		})
	},
}, {
	library: "gorm",
	unfenced: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		return s.gorm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			var lease jobLease
			err := tx.First(&lease, "name = ?", "month").Error
			if err == nil && lease.Epoch != epoch {
				err = errLost
			}
			if err != nil {
				return err
			}
			return work(func(query string) error { return tx.Exec(query).Error })
		})
	},
	held: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		store := s.store
		return s.gorm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			err := store.Hold(ctx, tx.Statement.ConnPool, sqlfence.Token{Name: "month", Value: epoch})
			if err != nil {
				return err
			}
			return work(func(query string) error { return tx.Exec(query).Error })
		})
	},
}, {
	library: "bun",
	unfenced: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		return s.bun.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			var current int64
			err := tx.NewSelect().Table("job_leases").Column("epoch").Where("name = ?", "month").Scan(ctx, &current)
			if err == nil && current != epoch {
				err = errLost
			}
			if err != nil {
				return err
			}
			return work(func(query string) error { _, err := tx.ExecContext(ctx, query); return err })
		})
	},
	held: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		return s.bun.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			err := s.store.Hold(ctx, tx.Tx, sqlfence.Token{Name: "month", Value: epoch})
			if err != nil {
				return err
			}
			return work(func(query string) error { _, err := tx.ExecContext(ctx, query); return err })
		})
	},
}, {
	library: "sqlc",
	unfenced: func(ctx context.Context, s *epochShop, epoch int64, work func(exec) error) error {
		queries := &Queries{db: s.db}
		return s.inTx(ctx, work, func(tx *sql.Tx) error {
			current, err := queries.WithTx(tx).LeaseEpoch(ctx)
			if err == nil && current != epoch {
				err = errLost
			}
			if err != nil {
				return err
			}
			return nil
		})
	},
	held: holdInSQL,
}}

func newEpochShop(t *testing.T, b harness.Base) *epochShop {
	t.Helper()
	dsn := b.DSN(t)
	s := &epochShop{db: b.Raw(t, dsn)}
	harness.MustExec(t, s.db, "CREATE TABLE job_leases (name varchar(20) PRIMARY KEY, epoch bigint NOT NULL)")
	harness.MustExec(t, s.db, "INSERT INTO job_leases VALUES ('month', 0)")
	harness.MustExec(t, s.db, "CREATE TABLE months (id bigint PRIMARY KEY, closed_by bigint NOT NULL)")
	harness.MustExec(t, s.db, "INSERT INTO months VALUES (1, 0)")
	db := &ormDB{DB: s.db, Base: b, source: dsn}
	s.gorm, s.bun = openGorm(t, db), openBun(db)
	s.store = newEpochs(t, s.db)
	if b.Dialect == sqlfence.Postgres {
		var err error
		if s.pool, err = pgxpool.New(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.pool.Close)
	}
	return s
}

const closedByFirst, closedBySecond = "UPDATE months SET closed_by = 1", "UPDATE months SET closed_by = 2"

func (s *epochShop) closedBy(t *testing.T) (holder int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), "SELECT closed_by FROM months").Scan(&holder); err != nil {
		t.Fatal(err)
	}
	return holder
}

// eachEpochProgram runs test for each library on PostgreSQL, and on MariaDB for the libraries that support MariaDB.
func eachEpochProgram(t *testing.T, sqlite bool, test func(t *testing.T, s *epochShop, p epochProgram)) {
	for _, b := range harness.Bases {
		if b.Dialect == sqlfence.SQLite && (!sqlite || b.Name != "mattn") {
			continue
		}
		for _, p := range epochPrograms {
			if p.library == "pgx" && b.Name != "pgx" {
				continue
			}
			t.Run(b.Name+"/"+p.library, func(t *testing.T) { test(t, newEpochShop(t, b), p) })
		}
	}
}

// A program that only reads the lease row overwrites its successor's write.
func TestLateWriteLandsWithoutHold(t *testing.T) {
	eachEpochProgram(t, false, func(t *testing.T, s *epochShop, p epochProgram) { // SQLite refuses a write after an old read
		first, err := takeOverUnfenced(t.Context(), s.db)
		if err != nil {
			t.Fatal(err)
		}
		err = p.unfenced(t.Context(), s, first, func(run exec) error {
			if _, err := takeOverUnfenced(t.Context(), s.db); err != nil {
				return err
			}
			if _, err := s.db.ExecContext(t.Context(), closedBySecond); err != nil {
				return err
			}
			return run(closedByFirst)
		})
		if err != nil || s.closedBy(t) != 1 {
			t.Errorf("closed by %d, %v; the late write should have landed", s.closedBy(t), err)
		}
	})
}

// With Hold, a holder that was replaced before its transaction is refused.
func TestLateHolderIsRefusedByEpochRecipe(t *testing.T) {
	eachEpochProgram(t, true, func(t *testing.T, s *epochShop, p epochProgram) {
		first, err := takeOver(t.Context(), s.db, s.store)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := takeOver(t.Context(), s.db, s.store); err != nil {
			t.Fatal(err)
		}
		err = p.held(t.Context(), s, first, func(run exec) error { return run(closedByFirst) })
		if !errors.Is(err, sqlfence.ErrStale) || s.closedBy(t) != 0 {
			t.Errorf("closed by %d, %v; want ErrStale", s.closedBy(t), err)
		}
	})
}

// With Hold, a successor that takes over while the holder pauses inside its transaction waits for that transaction. So
// the successor writes last, and the holder's next transaction is refused.
func TestTakeoverWaitsForEpochRecipe(t *testing.T) {
	eachEpochProgram(t, true, func(t *testing.T, s *epochShop, p epochProgram) {
		first, err := takeOver(t.Context(), s.db, s.store)
		if err != nil {
			t.Fatal(err)
		}
		var successor *harness.Task
		err = p.held(t.Context(), s, first, func(run exec) error {
			successor = harness.Go(func() error {
				_, err := takeOver(t.Context(), s.db, s.store)
				if err == nil {
					_, err = s.db.ExecContext(t.Context(), closedBySecond)
				}
				return err
			})
			select {
			case <-successor.Ended():
				return errors.New("the takeover didn't wait")
			case <-time.After(200 * time.Millisecond):
			}
			return run(closedByFirst)
		})
		if err := errors.Join(err, successor.Wait()); err != nil || s.closedBy(t) != 2 {
			t.Errorf("closed by %d, %v; want the successor's write", s.closedBy(t), err)
		}
		err = p.held(t.Context(), s, first, func(run exec) error { return run(closedByFirst) })
		if !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("%v; want ErrStale", err)
		}
	})
}

// TestEpochRecipesOfPage compares the page's code before and after each change with this file. The change may add at
// most 5 lines to a program.
func TestEpochRecipesOfPage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/epochs.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("epoch_test.go")
	if err != nil {
		t.Fatal(err)
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	blocks := regexp.MustCompile("(?s)```diff\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if want := 3; len(blocks) != want {
		t.Fatalf("the page has %d changes, want %d", len(blocks), want)
	}
	shared := 0
	for i, block := range blocks {
		var before, after strings.Builder
		added := 0
		for line := range strings.Lines(block[1]) {
			if !strings.HasPrefix(line, "+") {
				before.WriteString(line[1:])
			}
			if !strings.HasPrefix(line, "-") {
				after.WriteString(line[1:])
			}
			if strings.HasPrefix(line, "+") {
				added++
			}
		}
		for _, code := range []string{before.String(), after.String()} {
			if !strings.Contains(words(string(source)), words(code)) {
				t.Errorf("nothing here runs\n%s", code)
			}
		}
		if i < 2 {
			shared += added
		} else if shared+added > 5 {
			t.Errorf("%d added lines:\n%s", shared+added, block[1])
		}
	}
}
