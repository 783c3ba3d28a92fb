package orm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	migratedb "github.com/golang-migrate/migrate/v4/database"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Migration tools on a database with a registered table. Changing the table must be refused without Bypass, and must
// succeed under Bypass.

// A migrator is a tool that creates and changes tables.
type migrator struct {
	name    string
	modules []string
	bases   []string

	// create creates the table books; change adds the column price to books. Both may run again, and then change
	// nothing.
	create, change func(ctx context.Context, t *testing.T, db *ormDB) error

	onePiece   bool // create and change run the same migration, so the test drops the column between them
	ownContext bool // the tool accepts no context, so its database is opened with WithoutGuards
}

var migrators = []migrator{gormMigrator, entMigrator, bunMigrator, gooseMigrator, migrateMigrator}

const migrationReason = "adding a column"

func TestORMMigrations(t *testing.T) {
	ran := 0
	for _, m := range migrators {
		t.Run(m.name, func(t *testing.T) {
			harness.EachProgram(t, func(t *testing.T, b harness.Base) {
				if !slices.Contains(m.bases, b.Name) {
					t.Skip("not a driver of this tool")
				}
				migrateOnBase(t, m, b)
				ran++
			})
		})
	}
	all := 0
	for _, m := range migrators {
		all += len(m.bases)
	}
	if ran < all {
		t.Skipf("%d of %d tools and drivers have run: the page isn't compared", ran, all)
	}
	harness.InCompatibility(t, "migrations", migrationTable(t))
}

func migrateOnBase(t *testing.T, m migrator, b harness.Base) {
	source := ormSource(t, b)
	plain := &ormDB{b.Raw(t, source), b, source}
	var bypassed []sqlfence.Event
	observer := func(_ context.Context, e sqlfence.Event) {
		if e.Kind == sqlfence.Bypassed {
			bypassed = append(bypassed, e)
		}
	}
	open := func(more ...sqlfence.Option) *ormDB {
		options := append(more, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithObserver(observer))
		return &ormDB{b.Fenced(t, source, options...), b, source}
	}
	// byTheBook bypasses the guards as docs/migrations.md recommends.
	byTheBook := func(step func(context.Context, *testing.T, *ormDB) error) error {
		if m.ownContext {
			return step(t.Context(), t, open(sqlfence.WithoutGuards(migrationReason)))
		}
		return step(sqlfence.Bypass(t.Context(), migrationReason), t, open())
	}

	for range 2 { // the second run has nothing to create
		if err := m.create(t.Context(), t, open()); err != nil {
			t.Fatalf("create: %v", err)
		}
	}
	if m.onePiece {
		if _, err := plain.Exec("ALTER TABLE books DROP COLUMN price"); err != nil {
			t.Fatal(err)
		}
	}

	wantMigrationRefused(t, m.change(t.Context(), t, open()))
	if _, err := plain.Exec("SELECT price FROM books"); err == nil {
		t.Error("the column is there after a refusal")
	}
	bypassed = nil
	if err := byTheBook(m.change); err != nil {
		t.Fatalf("change: %v", err)
	}
	if !slices.ContainsFunc(bypassed, func(e sqlfence.Event) bool {
		return e.Reason == migrationReason && strings.Contains(e.Query, "price")
	}) {
		t.Errorf("the observer was told %v", bypassed)
	}
	if err := m.change(t.Context(), t, open()); err != nil {
		t.Errorf("change, nothing to do: %v", err)
	}

	if _, err := plain.Exec(fmt.Sprintf("INSERT INTO books (id, isbn, title, price, fence_token) VALUES (1, 'i1', 'one', 10, %d)", ormMark)); err != nil {
		t.Fatal(err)
	}
	_, err := open().ExecContext(harness.Holding(t, ormStale), "UPDATE books SET price = 11 WHERE id = 1")
	harness.WantStale(t, err, ormStale, ormMark)
	if _, err = open().ExecContext(harness.Holding(t, ormFresh), "UPDATE books SET price = 11 WHERE id = 1"); err != nil {
		t.Errorf("after the migration: %v", err)
	}
}

// wantMigrationRefused fails the test unless err is ErrUnguardable and its text recommends Bypass.
func wantMigrationRefused(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "Bypass") {
		t.Errorf("err = %v, want it to name Bypass", err)
	}
	// golang-migrate's error type has no Unwrap method, so the original error is read from its field.
	var byValue migratedb.Error
	var byPointer *migratedb.Error
	switch {
	case errors.As(err, &byValue):
		err = byValue.OrigErr
	case errors.As(err, &byPointer):
		err = byPointer.OrigErr
	}
	if !errors.Is(err, sqlfence.ErrUnguardable) {
		t.Errorf("err = %#v, want ErrUnguardable", err)
	}
}

func migrationTable(t *testing.T) string {
	var out strings.Builder
	out.WriteString("|  | version | drivers | creates the table; nothing to do | changes it | changes it under `Bypass` |\n")
	out.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	for _, m := range migrators {
		var versions []string
		for _, module := range m.modules {
			versions = append(versions, module+" "+harness.ModuleVersion(t, module))
		}
		bypasses := "yes"
		if m.ownContext {
			bypasses = "by `WithoutGuards`, as it takes no context"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | yes | refused | %s |\n", m.name, strings.Join(versions, "<br>"), strings.Join(m.bases, ", "), bypasses)
	}
	return out.String()
}
