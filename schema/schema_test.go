package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// Each folder begins with the ledger, and has what the tools look for in the names and texts.
func TestFilesSuitMigrationTools(t *testing.T) {
	for _, folder := range []string{"postgres", "sqlite", "mysql"} {
		names, err := fs.Glob(Files, folder+"/*")
		if err != nil || len(names) < 4 || names[0] != folder+"/00001_fencing_tokens.up.sql" || !slices.Contains(names, folder+"/atlas.sum") {
			t.Errorf("%s has %q, %v", folder, names, err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(Files, name)
			if err != nil || strings.HasSuffix(name, ".sql") && !strings.HasPrefix(string(text), "-- +goose Up\n") {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
}

var procedure = regexp.MustCompile(`(?s)PROCEDURE %1\$s\.(\w+)\((.*?)\)\n[^\n]*\$procedure\$(.*?)\$procedure\$`)

// Package catalogue recognises each procedure that the files create.
func TestProcedureHashes(t *testing.T) {
	found := make(map[string]string)
	for _, text := range []string{pg.CreateTokenProcedures, pg.CreateLeaseProcedures} {
		for _, p := range procedure.FindAllStringSubmatch(text, -1) {
			found[p[1]] = fmt.Sprintf("%x", sha256.Sum256([]byte(p[2]+"\n"+p[3])))
		}
	}
	if !maps.Equal(found, pg.ProcedureHashes) {
		t.Errorf("the files have %v, verify.Check has %v", found, pg.ProcedureHashes)
	}
}

// The DO's text is quoted with a tag that no name in the text contains.
func TestDollarQuotes(t *testing.T) {
	for _, column := range []string{"fence", `"$add$"`, `"$add$ $add_add$"`} {
		texts, err := AddFenceSQL(sqlfence.Postgres, "books", column)
		if err != nil || len(texts) != 1 {
			t.Fatalf("%q, %v", texts, err)
		}
		tag := texts[0][len("DO "):strings.IndexByte(texts[0], '\n')]
		if strings.Count(texts[0], tag) != 2 || !strings.HasSuffix(texts[0], tag) {
			t.Errorf("%s: the tag is %s in\n%s", column, tag, texts[0])
		}
	}
}

// unknownDriver is a driver that sqlfence doesn't know.
type unknownDriver struct{}

func (unknownDriver) Open(string) (driver.Conn, error)             { return nil, driver.ErrBadConn }
func (unknownDriver) Connect(context.Context) (driver.Conn, error) { return nil, driver.ErrBadConn }
func (d unknownDriver) Driver() driver.Driver                      { return d }

func TestInvalid(t *testing.T) {
	for _, db := range []*sql.DB{nil, sql.OpenDB(unknownDriver{})} {
		if err := AddFence(t.Context(), db, "books", "fence_token"); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("err = %v, want ErrInvalid", err)
		}
	}
	if _, err := AddFenceSQL(0, "books", "fence_token"); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("err = %v, want ErrInvalid", err)
	}
}

// The errors of a server that would have to copy the table.
func TestExplainMySQL(t *testing.T) {
	for number, copies := range map[uint16]bool{1845: true, 1846: true, 4092: true, 1142: false} {
		err := explainMySQL(&mysqlError{Number: number, Message: "no"})
		var cause *mysqlError
		if strings.Contains(err.Error(), "copy the table") != copies || !errors.As(err, &cause) {
			t.Errorf("%d: %v", number, err)
		}
	}
}

// mysqlError is like the error of go-sql-driver/mysql.
type mysqlError struct {
	Number  uint16
	Message string
}

func (e *mysqlError) Error() string { return e.Message }

// SQLite's tables can't be sealed, and the error names the page that explains this.
func TestSealOnSQLite(t *testing.T) {
	db, err := sqlfence.OpenDB(new(fakedb.DB), sqlfence.WithDialect(sqlfence.SQLite))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, sqlErr := SealSQL(db)
	_, planErr := SealPlan(t.Context(), db)
	for _, err := range []error{Seal(t.Context(), db), Unseal(t.Context(), db), sqlErr, planErr} {
		if !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "docs/sealed.md") {
			t.Error(err)
		}
	}
}
