package ledgerfunction_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

const (
	created     = "CREATE OR REPLACE FUNCTION " + name + "(wanted text, given bigint, number integer, nonce text, asked regclass) RETURNS boolean "
	plain       = " VOLATILE PARALLEL UNSAFE AS "
	turnCreated = "CREATE OR REPLACE FUNCTION " + trigger + "() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS "
	always      = "ALTER TABLE fencing_tokens ENABLE ALWAYS TRIGGER " + trigger
	turn        = "CREATE TRIGGER " + trigger + " AFTER UPDATE OR DELETE ON fencing_tokens FOR EACH ROW EXECUTE FUNCTION " + trigger + "()"
	dropTurn    = "DROP TRIGGER " + trigger + " ON fencing_tokens"
)

// recreated returns the statement that creates a function again with a change of its text.
func recreated(function, old, new string) string {
	return fmt.Sprintf(`DO $do$ DECLARE was text := pg_get_functiondef('%s'::regproc);
BEGIN ASSERT strpos(was, $old$%s$old$) > 0; EXECUTE replace(was, $old$%[2]s$old$, $new$%[3]s$new$); END $do$`, function, old, new)
}

// differing holds statements that change the function, or an object that the function relies on.
var differing = []struct {
	what       string
	statements []string
	says       string // part of the finding
}{
	{"body", []string{created + "LANGUAGE plpgsql" + plain + "'BEGIN RETURN true; END'"}, "The function "},
	{"one byte of the body", []string{recreated(name, "int8eq(held, given)", "int8le(held, given)")}, "The function "},
	{"a blank in the body", []string{recreated(name, "RETURN true;", "RETURN  true;")}, "The function "},
	{"ledger in the body", []string{"CREATE SCHEMA IF NOT EXISTS %[1]s_b", "CREATE TABLE IF NOT EXISTS %[1]s_b.fencing_tokens AS SELECT 'books'::text AS name, 7::bigint AS token",
		recreated(name, "FROM ONLY %[1]s.", "FROM ONLY %[1]s_b.")}, "The function "},
	{"percent sign in the body", []string{recreated(name, "RETURN true;", "RETURN 3 %% 2 = 1;")}, "The function "},
	{"language", []string{"DROP FUNCTION " + name, created + "LANGUAGE sql" + plain + "'SELECT true'"}, "The function "},
	{"another's body in another language", []string{"SET check_function_bodies = off", recreated(name, "LANGUAGE plpgsql", "LANGUAGE sql"), "RESET check_function_bodies"}, "The function "},
	{"names of the parameters", []string{strings.Replace(recreated(name, "wanted text, given bigint, number integer, nonce text", "nonce text, given bigint, number integer, wanted text"),
		"EXECUTE", "DROP FUNCTION "+name+"; EXECUTE", 1)}, "The function "},
	{"volatility", []string{"ALTER FUNCTION " + name + " STABLE"}, "The function "},
	{"owner's powers", []string{"ALTER FUNCTION " + name + " SECURITY DEFINER"}, "The function "},
	{"search path", []string{"ALTER FUNCTION " + name + " SET search_path = %[1]s, pg_catalog"}, "The function "},
	{"the catalogue's search path", []string{"ALTER FUNCTION " + name + " SET search_path = pg_catalog, pg_temp"}, "The function "},
	{"another setting", []string{"ALTER FUNCTION " + name + " SET row_security = off"}, "The function "},
	{"strict", []string{"ALTER FUNCTION " + name + " STRICT"}, "The function "},
	{"leakproof", []string{"ALTER FUNCTION " + name + " LEAKPROOF"}, "The function "},
	{"body of the other function", []string{"CREATE OR REPLACE FUNCTION " + sqltext.LedgerTurns + "() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END'"}, "The function "},
	{"call of another function", []string{"CREATE OR REPLACE FUNCTION %[1]s_turns_v1() RETURNS boolean LANGUAGE sql AS 'SELECT true'", recreated(name, "sqlfence_turns_v1", "%[1]s_turns_v1")}, "The function "},
	{"volatility of the other function", []string{"ALTER FUNCTION " + sqltext.LedgerTurns + " STABLE"}, "The function "},
	{"no other function", []string{"DROP FUNCTION " + sqltext.LedgerTurns}, "The function "},
	{"parallel", []string{"ALTER FUNCTION " + name + " PARALLEL SAFE"}, "The function "},

	{"trigger's body", []string{turnCreated + "'BEGIN RETURN NULL; END'"}, "the trigger "},
	{"one byte of the trigger's body", []string{recreated(trigger, "taken < 256", "taken < 255")}, "the trigger "},
	{"owner's powers of the trigger", []string{"ALTER FUNCTION " + trigger + " SECURITY DEFINER"}, "the trigger "},
	{"search path of the trigger", []string{"ALTER FUNCTION " + trigger + " RESET search_path"}, "the trigger "},
	{"trigger's function", []string{"CREATE FUNCTION lazy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'", dropTurn,
		strings.Replace(turn, "FUNCTION "+trigger, "FUNCTION lazy", 1), always}, "the trigger "},
	{"condition of the trigger", []string{dropTurn, strings.Replace(turn, "EXECUTE", "WHEN (false) EXECUTE", 1), always}, "the trigger "},
	{"events of the trigger", []string{dropTurn, strings.Replace(turn, "UPDATE OR DELETE", "INSERT OR DELETE", 1), always}, "the trigger "},
	{"columns of the trigger", []string{dropTurn, strings.Replace(turn, "UPDATE OR", "UPDATE OF name OR", 1), always}, "the trigger "},
	{"time of the trigger", []string{dropTurn, strings.Replace(turn, "AFTER", "BEFORE", 1), always}, "the trigger "},
	{"trigger of statements", []string{dropTurn, strings.Replace(turn, "EACH ROW", "EACH STATEMENT", 1), always}, "the trigger "},
	{"trigger that is off", []string{"ALTER TABLE fencing_tokens DISABLE TRIGGER " + trigger}, "the trigger "},
	{"trigger of replicas", []string{"ALTER TABLE fencing_tokens ENABLE REPLICA TRIGGER " + trigger}, "the trigger "},
	{"no trigger", []string{dropTurn}, "the trigger "},
	{"trigger of TRUNCATE that is off", []string{"ALTER TABLE fencing_tokens DISABLE TRIGGER " + sqltext.LedgerTruncateTrigger}, "the trigger "},
}

// If the stored function isn't the one that Setup installs, no guarded write succeeds, and verify.Check reports it.
// Setup replaces the function, unless PostgreSQL doesn't let a function of this name be replaced.
func TestLedgerFunctionThatDiffers(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, _, _ := installed(t, b)
		schema := schemaOf(t, sh)
		t.Cleanup(func() { _, _ = sh.Plain.Exec("DROP SCHEMA IF EXISTS " + schema + "_b CASCADE") })
		for i, c := range differing {
			if testing.Short() && b.Name == "pq" && i > 0 {
				break // pq's guards call it as pgx's do
			}
			t.Run(c.what, func(t *testing.T) {
				wantAsked(t, b, sh.Source, true)
				conn := one(t, sh)
				for _, query := range c.statements {
					exec(t, conn, strings.ReplaceAll(strings.ReplaceAll(query, "%[1]s", schema), "%%", "%"))
				}
				db := wantAsked(t, b, sh.Source, false)
				if found := findings(t, db); !strings.Contains(strings.Join(found, "\n"), c.says) {
					t.Errorf("verify.Check found %q, want %q", found, c.says)
				}
				if strings.HasPrefix(c.what, "names") {
					sh.Exec(t, "DROP FUNCTION "+name)
				}
				sh.Exec(t, tokens.LedgerFunction())
				if found := findings(t, db); len(found) > 0 {
					t.Errorf("after Setup, verify.Check found %v", found)
				}
			})
		}
		wantAsked(t, b, sh.Source, true)
	})
}

// The comparison works for a ledger in a schema of any name, also by WithSchema.
func TestLedgerFunctionOfAnySchema(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.Ledger())
		for _, suffix := range []string{" of the Shop", `"s`, "it's", `back\slash`, "50%", "%1$I", "%2$L", ".fencing_tokens"} {
			schema := schemaOf(t, sh) + suffix
			quoted := pg.Text.Quote(schema)
			sh.Exec(t, "CREATE SCHEMA "+quoted)
			t.Cleanup(func() { _, _ = sh.Plain.Exec("DROP SCHEMA " + quoted + " CASCADE") })
			named := sqlfence.WithSchema(quoted)
			first, _ := b.Counted(t, sh.Source, harness.Books(), named)
			if err := harness.NewStore(t, first).Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			sh.Exec(t, "INSERT INTO "+quoted+".fencing_tokens VALUES ('books', 8)")
			sh.Exec(t, "DELETE FROM books")
			sh.Exec(t, "INSERT INTO books (id, fence_token) VALUES (1, 0)")
			wantAsked(t, b, sh.Source, true, named)
			conn := one(t, sh)
			exec(t, conn, "SET search_path = "+quoted)
			exec(t, conn, recreated(name, "RETURN true;", "RETURN  true;"))
			wantAsked(t, b, sh.Source, false, named)
		}
	})
}

// wantAsked opens a pool. If want is set, its guards must call the function and refuse a stale write; else every write
// must be refused.
func wantAsked(t *testing.T, b harness.Base, source string, want bool, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, count := b.Counted(t, source, append(opts, harness.Books(sqlfence.Ledger()))...)
	if !want {
		write(t, db, 8, sqlfence.ErrNotSetUp)
		write(t, db, 7, sqlfence.ErrNotSetUp)
		return db
	}
	write(t, db, 8, nil)
	wantCalled(t, count)
	write(t, db, 7, sqlfence.ErrStale)
	return db
}

// one returns a pool of one connection by the base driver.
func one(t *testing.T, sh *harness.Shop) *sql.DB {
	t.Helper()
	db := sh.Raw(t, sh.Source)
	db.SetMaxOpenConns(1)
	return db
}

// findings returns verify.Check's findings about the ledger.
func findings(t *testing.T, db *sql.DB) (problems []string) {
	t.Helper()
	found, err := harness.Verify(t.Context(), db)
	if err != nil && !errors.As(err, new(*verify.Error)) {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Code == "wrong-ledger" {
			problems = append(problems, f.Problem)
		}
	}
	return problems
}
