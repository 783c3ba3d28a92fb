package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/verify"
)

// A step of a deployment: the program that is running doesn't notice.
func ExampleAddFence() {
	db, err := sql.Open("pgx", "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := schema.AddFence(ctx, db, "books", "fence_token"); err != nil {
		log.Print(err)
	}
}

// A step of a deployment, when all programs that write to the table have the rule Sealed.
func ExampleSeal() {
	db, err := sqlfence.Open("pgx", "postgres://localhost/shop",
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := schema.Seal(ctx, db); err != nil {
		log.Fatal(err) // it may be run again
	}
	found, err := verify.Check(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range found {
		fmt.Println(f)
	}
}

func ExampleAddFenceSQL() {
	texts, err := schema.AddFenceSQL(sqlfence.MySQL, "books", "fence_token")
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range texts {
		fmt.Println(text + ";")
	}
	// Output:
	// SET @sqlfence_lock_wait_timeout = @@SESSION.lock_wait_timeout;
	// SET SESSION lock_wait_timeout = 1;
	// ALTER TABLE `books` ADD COLUMN `fence_token` bigint NOT NULL DEFAULT 0, ALGORITHM=INSTANT;
	// SET SESSION lock_wait_timeout = @sqlfence_lock_wait_timeout;
}

func ExampleFiles() {
	names, err := fs.Glob(schema.Files, "sqlite/*.sql")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// sqlite/00001_fencing_tokens.up.sql
	// sqlite/00002_fencing_leases.up.sql
	// sqlite/00003_rowlocks.up.sql
	// sqlite/00004_ledger_triggers.up.sql
}
