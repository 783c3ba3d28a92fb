package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// openInvoices returns a database with the table invoice, with the unlocked rows 7 and 8, at noon. The database is a
// fake that sqlfence takes for SQLite.
func openInvoices() *sql.DB {
	db, err := sqlfence.OpenDB(newDesk(sqlfence.SQLite).DB, sqlfence.WithDialect(sqlfence.SQLite))
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// Ada edits an invoice. Bob learns this before he begins, and edits the invoice after her.
func ExampleTable() {
	db := openInvoices() // with the columns that the package's documentation names
	defer db.Close()
	ctx := context.Background()

	invoices, err := rowlock.New(db, "invoice")
	if err != nil {
		log.Fatal(err)
	}
	var total int
	edit := rowlock.Edit{ID: 7, User: "ada"}
	lock, err := invoices.LoadLocked(ctx, edit, "total", &total)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.By, "edits version", lock.Serial, "with a total of", total)

	_, err = invoices.LoadLocked(ctx, rowlock.Edit{ID: 7, User: "bob"}, "total", &total)
	var locked *sqlfence.LockedError
	if errors.As(err, &locked) {
		fmt.Println("bob has to wait for", locked.By, "until", locked.Expiry.Format(time.TimeOnly))
	}

	edit.Serial = lock.Serial
	err = invoices.SaveRelease(ctx, edit, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = ?, serial = serial + 1 WHERE id = ?", 120, 7)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	lock, err = invoices.LoadLocked(ctx, rowlock.Edit{ID: 7, User: "bob"}, "total", &total)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.By, "edits version", lock.Serial, "with a total of", total)
	// Output:
	// ada edits version 1 with a total of 100
	// bob has to wait for ada until 12:10:00
	// bob edits version 2 with a total of 120
}

// A lock lasts for its term unless it is renewed, and is given back at the end.
func ExampleTable_Request() {
	db := openInvoices()
	defer db.Close()
	ctx := context.Background()

	invoices, err := rowlock.New(db, "invoice", rowlock.WithTTL(5*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	edit := rowlock.Edit{ID: 7, Serial: 1, User: "ada"} // ada has seen version 1
	lock, err := invoices.Request(ctx, edit)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("until", lock.Expiry.Format(time.TimeOnly))

	edit.TTL = time.Hour
	lock, err = invoices.Renew(ctx, edit)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("until", lock.Expiry.Format(time.TimeOnly))

	_, err = invoices.Request(ctx, rowlock.Edit{ID: 7, Serial: 1, User: "bob"})
	fmt.Println(err)

	if err := invoices.Release(ctx, 7, "ada"); err != nil {
		log.Fatal(err)
	}
	free, err := invoices.Lockable(ctx, 7, "bob")
	fmt.Println("free for bob:", free, err)
	// Output:
	// until 12:05:00
	// until 13:00:00
	// sqlfence: row is locked: table "invoice": by "ada" since 2025-03-01T12:00:00Z until 2025-03-01T13:00:00Z
	// free for bob: true <nil>
}

// A save of an old version is refused before the work is done, and the error shows both versions.
func ExampleTable_SaveKeep() {
	db := openInvoices()
	defer db.Close()
	ctx := context.Background()

	invoices, err := rowlock.New(db, "invoice")
	if err != nil {
		log.Fatal(err)
	}
	work := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = ?, serial = serial + 1 WHERE id = ?", 120, 7)
		return err
	}
	edit := rowlock.Edit{ID: 7, Serial: 1, User: "ada"}
	lock, err := invoices.SaveKeep(ctx, edit, work)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("saved as version", lock.Serial)

	_, err = invoices.SaveKeep(ctx, edit, work) // still from version 1
	var conflict *sqlfence.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println("edited version", conflict.Expected, "but there is", conflict.Current)
	}

	var total int
	lock, err = invoices.LoadLocked(ctx, edit, "total", &total)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("changed:", lock.Serial != edit.Serial, "- go on from version", lock.Serial, "with a total of", total)
	// Output:
	// saved as version 2
	// edited version 1 but there is 2
	// changed: true - go on from version 2 with a total of 120
}

// A Manager lists the users' locks, and frees the locks that a session has left.
func ExampleManager() {
	db := openInvoices()
	defer db.Close()
	ctx := context.Background()

	manager, err := rowlock.NewManager(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := manager.Setup(ctx); err != nil { // creates the table rowlocks
		log.Fatal(err)
	}
	invoices, err := rowlock.New(db, "invoice", rowlock.WithManager(manager))
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []int{7, 8} {
		if _, err := invoices.Request(ctx, rowlock.Edit{ID: id, Serial: 1, User: "ada", Session: "window 1"}); err != nil {
			log.Fatal(err)
		}
	}
	locks, err := manager.Locks(ctx, rowlock.Filter{User: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range locks {
		fmt.Println(l.User, "edits", l.Table, l.Row, "in", l.Session)
	}
	freed, err := manager.FreeSession(ctx, "window 1") // ada has closed this window
	fmt.Println("freed:", freed, err)
	// Output:
	// ada edits invoice [7] in window 1
	// ada edits invoice [8] in window 1
	// freed: 2 <nil>
}
