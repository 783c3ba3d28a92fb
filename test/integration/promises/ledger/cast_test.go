package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// softened returns the data source name of a database with casts and operators of its own. These casts and operators
// return NULL where the built-in ones raise an error. To create them takes a superuser, and a new database, since a
// cast has no schema.
func softened(t *testing.T, b harness.Base) string {
	t.Helper()
	dsn := harness.PostgresDatabase(t)
	db := b.Raw(t, dsn)
	for _, query := range []string{
		"CREATE FUNCTION never(text) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT NULL::bigint'",
		"CREATE CAST (text AS bigint) WITH FUNCTION never(text)",
		"CREATE FUNCTION nothing(text, bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT NULL::text'",
		"CREATE OPERATOR || (LEFTARG = text, RIGHTARG = bigint, FUNCTION = nothing)",
	} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	var cast, joined sql.NullInt64
	if err := db.QueryRow("SELECT 'x'::text::bigint, length('x'::text || 1::bigint)").Scan(&cast, &joined); err != nil || cast.Valid || joined.Valid {
		t.Fatalf("casts and operators aren't softened: %v %v %v", cast, joined, err)
	}
	return dsn
}

// A database's own cast from text to bigint doesn't prevent the error that a guard raises.
func TestGuardsRaiseWhateverCastsTheDatabaseHas(t *testing.T) {
	const (
		create = `CREATE TABLE books (id bigint PRIMARY KEY, price integer DEFAULT 10, fence_token bigint, serial bigint,
			editedby text, editedsince timestamptz, editedexpiry timestamptz)`
		fill = `INSERT INTO books (id, fence_token, serial, editedby, editedsince, editedexpiry)
			VALUES (1, 9, 4, 'ada', now(), now() + interval '1 hour')`
	)
	rowFence, ledger := sqlfence.RowFence("fence_token"), sqlfence.Ledger()
	stale := func(ctx context.Context) context.Context {
		return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 8}, sqlfence.Token{Name: "books/1", Value: 8}, sqlfence.Token{Name: "books/2", Value: 1})
	}
	another := func(ctx context.Context) context.Context {
		return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/2", Value: 1})
	}
	unknown := func(ctx context.Context) context.Context {
		return sqlfence.WithFence(ctx, sqlfence.Token{Name: "nobody", Value: 8})
	}
	old := func(ctx context.Context) context.Context { return sqlfence.WithSerial(ctx, 3) }
	both := func(ctx context.Context) context.Context { return old(stale(ctx)) }
	bob := func(ctx context.Context) context.Context { return sqlfence.WithEditor(ctx, "bob") }
	as := func(f func(context.Context) context.Context, rules ...sqlfence.Rule) func(context.Context) (context.Context, []sqlfence.Rule) {
		return func(ctx context.Context) (context.Context, []sqlfence.Rule) { return f(ctx), rules }
	}
	rulesets := []struct {
		name string
		with func(context.Context) (context.Context, []sqlfence.Rule)
		want error
		skip string // kinds of write that this rule doesn't check
	}{
		{"row fence", as(stale, rowFence), sqlfence.ErrStale, ""},
		{"single use", as(stale, rowFence, sqlfence.SingleUse()), sqlfence.ErrStale, ""},
		{"ledger", as(stale, ledger), sqlfence.ErrStale, ""},
		{"both", as(stale, ledger, rowFence), sqlfence.ErrStale, ""},
		{"unknown name", as(unknown, ledger, sqlfence.Resource("nobody")), sqlfence.ErrUnknownName, ""},
		{"key", as(another, rowFence, sqlfence.Key("id")), sqlfence.ErrOutOfScope, ""},
		{"key, stale", as(stale, rowFence, sqlfence.Key("id")), sqlfence.ErrStale, ""},
		{"key by ledger", as(another, ledger, sqlfence.Key("id")), sqlfence.ErrOutOfScope, ""},
		{"serial", as(old, sqlfence.Serial("serial")), sqlfence.ErrConflict, "merge"},
		{"serial and both", as(both, sqlfence.Serial("serial"), rowFence, ledger), sqlfence.ErrStale, "merge"},
		{"edit lock", as(bob, sqlfence.EditLock("editedby", "editedsince", "editedexpiry")), sqlfence.ErrLocked, ""},
	}
	writes := []harness.Write{
		{Name: "update", Query: "UPDATE books SET price = 30 WHERE id = $1", Args: []any{1}},
		{Name: "delete", Query: "DELETE FROM books WHERE id = $1", Args: []any{1}},
		{Name: "upsert", Query: "INSERT INTO books (id, price) VALUES ($1, 30) ON CONFLICT (id) DO UPDATE SET price = excluded.price", Args: []any{1}},
		{Name: "merge that updates", Query: "MERGE INTO books USING (SELECT $1::bigint AS id) AS s ON books.id = s.id WHEN MATCHED THEN UPDATE SET price = 30", Args: []any{1}},
		{Name: "merge that deletes", Query: "MERGE INTO books USING (SELECT $1::bigint AS id) AS s ON books.id = s.id WHEN MATCHED THEN DELETE", Args: []any{1}},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no casts of one's own")
		}
		source := softened(t, b)
		plain := b.Raw(t, source)
		exec := func(query string) { t.Helper(); harness.MustExec(t, plain, query) }
		state := func() (s string) {
			t.Helper()
			if err := plain.QueryRow("SELECT COALESCE(string_agg(b::text, ' '), 'none') FROM books b").Scan(&s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		exec(create)
		exec("CREATE TABLE fencing_tokens (name text NOT NULL PRIMARY KEY, token bigint NOT NULL)")
		exec(tokens.LedgerFunction())
		exec("INSERT INTO fencing_tokens VALUES ('books', 9), ('books/1', 9), ('books/2', 1)")
		exec(fill)
		before := state()
		for _, r := range rulesets {
			ctx, rules := r.with(t.Context())
			db := b.Fenced(t, source, harness.Books(rules...))
			for _, w := range writes {
				if r.skip != "" && strings.HasPrefix(w.Name, r.skip) || harness.Lacks(t, plain, w.Query) {
					continue
				}
				for _, f := range harness.Forms[:4] {
					_, err := f.Run(ctx, db, w)
					ofKeys := errors.Is(err, sqlfence.ErrOutOfScope) && strings.HasPrefix(r.name, "key")
					if !errors.Is(err, r.want) && !ofKeys {
						t.Errorf("%s, %s, %s: %v, want %v", r.name, w.Name, f.Name, err, r.want)
					}
					if after := state(); after != before {
						t.Errorf("%s, %s, %s: a stale write landed: %s became %s", r.name, w.Name, f.Name, before, after)
						exec("DELETE FROM books")
						exec(fill)
						before = state()
					}
				}
			}
		}
		_, err := b.Fenced(t, source, harness.Books(ledger)).ExecContext(stale(t.Context()), "INSERT INTO books (id) VALUES (2)")
		harness.WantError(t, err, sqlfence.ErrStale)
	})
}

// A database's own cast doesn't weaken the check by which a lease never gets a token below the newest one.
func TestLeaseIsOvertakenWhateverCastsTheDatabaseHas(t *testing.T) {
	for _, b := range harness.Chosen(harness.Bases[:2]) {
		t.Run(b.Name, func(t *testing.T) {
			harness.NeedPostgres(t)
			db := b.Raw(t, softened(t, b))
			harness.MustExec(t, db, "CREATE TABLE fencing_tokens (name text UNIQUE, token bigint)") // may be NULL
			leases := harness.NewLeases(t, db)
			tx := harness.Begin(t.Context(), t, db, sql.LevelDefault)
			// This holds the turn, as another issuer of the key's first tokens would.
			const turn = "SELECT pg_advisory_xact_lock(hashtextextended(concat('sqlfence:', 'jobs'), 0))"
			if _, err := tx.Exec(turn); err != nil {
				t.Fatal(err)
			}
			acquired := make(chan *lease.Lease, 1)
			go func() {
				l, err := leases.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience))
				if err != nil {
					t.Error(err)
				}
				acquired <- l
			}()
			harness.Eventually(t, "the one who waits for its turn", func() (waits bool) {
				_ = db.QueryRow("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))").Scan(&waits)
				return waits
			})
			if _, err := tx.Exec("INSERT INTO fencing_tokens VALUES ('jobs', 5)"); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if l := <-acquired; l != nil {
				harness.WantToken(t, l, "jobs", 6)
			}
			harness.WantLedger(t, db, "jobs=6")
		})
	}
}

// A fence column is refused if its type can't distinguish neighbouring tokens, or if the database doesn't compare it as
// a number.
func TestFenceColumnsOfOtherTypesAreRefused(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite's guard reads the mark as an integer")
		}
		for _, typ := range []string{"real", "double precision", "numeric", "bigint", "integer", "smallint"} {
			sh := harness.Setting{Base: b}.Shop(t, sqlfence.RowFence("fence_token"))
			sh.Exec(t, "ALTER TABLE books ALTER fence_token TYPE "+typ)
			sh.Reset(t, 9)
			integer := slices.Contains([]string{"bigint", "integer", "smallint"}, typ)
			for _, w := range harness.RowWrites {
				unchanged := sh.Unchanged(t)
				_, err := harness.Forms[0].Run(harness.Holding(t, 10), sh.DB, w)
				if integer && err != nil {
					t.Errorf("%s, %s: %v", typ, w.Name, err)
				}
				if !integer {
					harness.WantError(t, err, sqlfence.ErrUnguardable)
					if harness.SQLState(err) != "42883" {
						t.Errorf("%s, %s: the driver's own error is lost: %v", typ, w.Name, err)
					}
					unchanged()
				}
				sh.Reset(t, 9)
			}
		}
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
		sh.Exec(t, "ALTER TABLE fencing_tokens ALTER token TYPE real")
		sh.Reset(t, 16777217) // this type stores 16777216
		_, err := harness.Forms[0].Run(harness.Holding(t, 16777216), sh.DB, harness.RowWrites[0])
		harness.WantError(t, err, sqlfence.ErrUnguardable)
	})
}
