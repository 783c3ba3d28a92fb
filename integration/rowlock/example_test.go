package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// Ada edits an invoice; Bob is told so before he begins, and comes after her.
func ExampleTable() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := sql.Open("sqlite", filepath.Join(dir, "invoices.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, stmt := range []string{
		`CREATE TABLE invoice (id integer PRIMARY KEY, total integer, serial integer NOT NULL DEFAULT 1,
			editedby text, editedsince integer, editedexpiry integer)`,
		`INSERT INTO invoice (id, total) VALUES (7, 100)`,
	} {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			log.Fatal(err)
		}
	}

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
		fmt.Println("bob has to wait for", locked.By)
	}

	edit.Serial = lock.Serial
	err = invoices.SaveRelease(ctx, edit, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = ?, serial = serial + 1 WHERE id = 7", 120)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = invoices.Request(ctx, rowlock.Edit{ID: 7, Serial: 1, User: "bob"})
	fmt.Println(err)
	lock, err = invoices.LoadLocked(ctx, rowlock.Edit{ID: 7, User: "bob"}, "total", &total)
	fmt.Println(lock.By, "edits version", lock.Serial, "with a total of", total, err)
	// Output:
	// ada edits version 1 with a total of 100
	// bob has to wait for ada
	// sqlfence: serial conflict: table "invoice": expected serial 1, but it is 2
	// bob edits version 2 with a total of 120 <nil>
}
