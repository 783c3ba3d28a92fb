package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
)

// The statements for a migration, in SQLite.
func ExampleSealSQL() {
	books := sqlfence.Table{Name: "books", Resource: "books", FenceColumn: "fence_token"}
	statements, err := schema.SealSQL(sqlfence.SQLite, books, []string{"isbn"})
	if err != nil {
		panic(err)
	}
	fmt.Println(statements[len(statements)-1])
	// Output:
	// CREATE TRIGGER `sqlfence_seal_deleted_books` AFTER UPDATE ON `books` FOR EACH ROW WHEN NEW.`fence_token` < -1000000000000000 AND (NEW.`fence_token` IS NOT OLD.`fence_token` OR OLD.`rowid` IS NOT NEW.`rowid`) BEGIN
	// 	DELETE FROM `books` WHERE `rowid` = NEW.`rowid` AND `fence_token` = NEW.`fence_token`;
	// 	UPDATE `books` SET `fence_token` = -NEW.`fence_token` % 1000000000000000 WHERE `rowid` = NEW.`rowid` AND `fence_token` = NEW.`fence_token`;
	// END
}

// Every trigger that a seal creates is dropped by Unseal, and the other way round; names are
// never taken for anything else.
func TestSealSQLite(t *testing.T) {
	odd := sqlfence.Table{Name: "`it's {table} x`", Resource: "{row}", FenceColumn: "the {mark}", KeyColumn: "{new}", Ledger: true, SingleUse: true}
	sealing, err := schema.SealSQL(sqlfence.SQLite, odd, []string{"{stale}", "{ask NEW}"})
	if err != nil {
		t.Fatal(err)
	}
	unsealing, err := schema.UnsealSQL(sqlfence.SQLite, odd)
	if err != nil {
		t.Fatal(err)
	}
	drops := strings.Join(sealing, "\n")
	for _, stmt := range append(sealing, unsealing...) {
		if name, ok := strings.CutPrefix(stmt, "CREATE TRIGGER "); ok {
			name, _, _ = strings.Cut(name[1:], "`")
			if !strings.Contains(drops, "DROP TRIGGER IF EXISTS `"+name+"`\n") || !strings.Contains(strings.Join(unsealing, "\n"), "DROP TRIGGER IF EXISTS `"+name+"`\n") {
				t.Errorf("%s stays", name)
			}
		}
	}
	for _, want := range []string{"`it's {table} x`", "NEW.`the {mark}`", "way.`{ask NEW}` = NEW.`{ask NEW}`", "'{row}/' || CAST(OLD.`{new}` AS TEXT)", "'sqlfence: stale token for table it''s {table} x, which"} {
		if !strings.Contains(drops, want) {
			t.Errorf("no %s in %s", want, drops)
		}
	}

	odd.Lock.By = "editor"
	if _, err := schema.SealSQL(sqlfence.SQLite, odd); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("with EditLock: %v", err)
	}
}
