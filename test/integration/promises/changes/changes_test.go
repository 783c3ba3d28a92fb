package changes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// Each committed write raises its table's count. A read and a rollback don't change the count.
func TestCountRisesAtEachCommittedWrite(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		for _, query := range []string{
			"INSERT INTO books (id, price) VALUES (4, 10), (5, 10)",
			"UPDATE books SET price = 11 WHERE id = 1",
			"UPDATE books SET price = price + 1",
			"DELETE FROM books WHERE id = 4",
			"DELETE FROM books",
			"INSERT INTO books (id, price) SELECT 1, 10",
		} {
			wantRaised(t, counter, query, func() { exec(t, db, query) })
		}
		wantSame(t, counter, "a rollback", func() {
			tx := begin(t, db, 0)
			exec(t, tx, "UPDATE books SET price = 12 WHERE id = 1")
			_ = tx.Rollback()
		})
		wantSame(t, counter, "a failure", func() {
			if _, err := db.Exec("INSERT INTO books (id, price) VALUES (9, 10), (1, 10)"); err == nil {
				t.Error("two rows have one key")
			}
		})
		wantSame(t, counter, "another table", func() { exec(t, db, "INSERT INTO pens (id, price) VALUES (1, 10)") })
		wantSame(t, counter, "a second Setup", func() { counting(t, db, "books", "pens") })
		wantRaised(t, counter, "a part of a transaction", func() {
			tx := begin(t, db, 0)
			exec(t, tx, "UPDATE books SET price = 12 WHERE id = 1")
			exec(t, tx, "SAVEPOINT s")
			exec(t, tx, "UPDATE books SET price = 13 WHERE id = 1")
			exec(t, tx, "ROLLBACK TO SAVEPOINT s")
			commit(t, tx)
		})
		wantRaised(t, counter, "what follows a part that was rolled back", func() {
			tx := begin(t, db, 0)
			exec(t, tx, "SAVEPOINT s")
			exec(t, tx, "UPDATE books SET price = 14 WHERE id = 1")
			exec(t, tx, "ROLLBACK TO SAVEPOINT s")
			exec(t, tx, "UPDATE books SET price = 15 WHERE id = 1")
			commit(t, tx)
		})
		both := count(t, counter, "books", "pens")
		if books, pens := count(t, counter, "books"), count(t, counter, "pens"); both != books+pens {
			t.Errorf("the count of both is %d, want %d + %d", both, books, pens)
		}
	})
}

// A table without a counter has no count, rather than a constant count.
func TestNotSetUp(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		wantNotSetUp := func(what, table string) {
			t.Helper()
			_, err := counter.Count(t.Context(), "pens", table)
			var setup *sqlfence.SetupError
			if !errors.Is(err, sqlfence.ErrNotSetUp) || !errors.As(err, &setup) || !strings.Contains(setup.Missing, table) {
				t.Errorf("%s: %v, want ErrNotSetUp of %s", what, err, table)
			}
		}
		exec(t, db, "CREATE TABLE cars (id int PRIMARY KEY)")
		wantNotSetUp("without Setup", "cars")
		wantNotSetUp("without the table", "boats")
		exec(t, db, "ALTER TABLE books RENAME TO tomes")
		wantNotSetUp("renamed", "books")
		exec(t, db, createBooks)
		wantNotSetUp("another one of its name", "books")
		err := counter.Setup(t.Context(), "books")
		if b.Dialect == sqlfence.Postgres { // in PostgreSQL each table has its own trigger names
			if err != nil {
				t.Fatal(err)
			}
			if books, tomes := count(t, counter, "books"), count(t, counter, "tomes"); books == tomes {
				t.Errorf("two tables have the count %d", books)
			}
		} else if err == nil || !strings.Contains(err.Error(), "another table") {
			t.Errorf("err = %v, want that the triggers are another table's", err)
		}
		before := count(t, counter, "pens")
		exec(t, db, "DROP TABLE pens")
		exec(t, db, "CREATE TABLE pens (id int PRIMARY KEY, price int NOT NULL)")
		if _, err := counter.Count(t.Context(), "pens"); !errors.Is(err, sqlfence.ErrNotSetUp) {
			t.Errorf("created anew: %v, want ErrNotSetUp", err)
		}
		counting(t, db, "pens")
		if after := count(t, counter, "pens"); after <= before {
			t.Errorf("created anew: the count was %d, and is %d; want more", before, after)
		}
	})
}

func TestInvalid(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		counter := setup(t, b.Raw(t, b.DSN(t)))
		for _, tables := range [][]string{nil, {""}, {"books", "a b"}} {
			_, err := counter.Count(t.Context(), tables...)
			harness.WantError(t, err, sqlfence.ErrInvalid)
			harness.WantError(t, counter.Setup(t.Context(), tables...), sqlfence.ErrInvalid)
			for _, err := range counter.Watch(t.Context(), time.Millisecond, tables...) {
				harness.WantError(t, err, sqlfence.ErrInvalid)
				if !errors.Is(err, sqlfence.ErrInvalid) {
					break
				}
			}
		}
		for _, err := range counter.Watch(t.Context(), 0, "books") {
			harness.WantError(t, err, sqlfence.ErrInvalid)
		}
		if err := counter.Setup(t.Context(), "boats"); err == nil {
			t.Error("a table that isn't there is counted")
		}
	})
}

// Through a fenced database Setup may create objects that other clients may not create.
func TestFencedSetupCreatesItsObjects(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		b.AsWritten = true // or the Base would change the texts of verify.Check's queries
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		exec(t, plain, "CREATE TABLE books (id int PRIMARY KEY, price int NOT NULL, fence_token bigint NOT NULL DEFAULT 0)")
		exec(t, plain, "INSERT INTO books (id, price) VALUES (1, 10)")
		db := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		counter := counting(t, db, "books")
		ctx := harness.Holding(t, 5)
		wantRaised(t, counter, "a guarded write", func() {
			if _, err := db.ExecContext(ctx, "UPDATE books SET price = 11 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
		})
		wantSame(t, counter, "a stale write", func() {
			_, err := db.ExecContext(harness.Holding(t, 4), "UPDATE books SET price = 12 WHERE id = 1")
			harness.WantStale(t, err, 4, 5)
		})
		for _, query := range []string{"UPDATE fencing_changes SET n = 0", "DELETE FROM fencing_changes", "DROP TABLE fencing_changes"} {
			_, err := db.ExecContext(ctx, query)
			harness.WantError(t, err, sqlfence.ErrUnguardable)
		}
		found, err := verify.Check(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if strings.Contains(f.String(), "changes") {
				t.Error(f)
			}
		}
	})
}

// Two programs that set up the same tables at once both succeed.
func TestSetupAtOnce(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		exec(t, db, createBooks)
		ended := make(chan error, 4)
		for range cap(ended) {
			go func() {
				counter, err := changes.New(db)
				if err == nil {
					err = counter.Setup(t.Context(), "books")
				}
				ended <- err
			}()
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// Watch yields the first count, each change, and errors.
func TestWatchYieldsEachCount(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		step, last := 0, int64(0)
		for n, err := range counter.Watch(t.Context(), time.Millisecond, "books", "pens") {
			switch {
			case step == 3 && err == nil:
				continue // two of Watch's queries may have seen the second change
			case step < 3 && (err != nil || n <= last), step == 3 && (n != 0 || !errors.Is(err, sqlfence.ErrNotSetUp)):
				t.Fatalf("step %d: %d, %v after %d", step, n, err, last)
			}
			last = n
			step++
			switch step {
			case 1:
				exec(t, db, "UPDATE books SET price = 11 WHERE id = 1")
			case 2:
				exec(t, db, "INSERT INTO pens (id, price) VALUES (1, 10)")
			case 3:
				exec(t, db, "DROP TABLE pens")
			case 4:
				return
			}
		}
		t.Error("Watch has ended")
	})
}
