package setup_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// A two is two schemas of PostgreSQL, or two databases of MySQL. The table books is in home. Sessions may find names in
// other, by the search path or as the current database.
type two struct {
	harness.Base
	plain          *sql.DB // finds names at home
	home, other    string  // as SQL
	atHome, astray string  // data source names
	use            string  // a statement after which a session finds names in other
}

// eachTwo runs test on two schemas of every base that has schemas.
func eachTwo(t *testing.T, test func(t *testing.T, w two)) {
	harness.EachDriver(t, func(t *testing.T, b harness.Base) {
		w := two{Base: b}
		switch b.Dialect {
		case sqlfence.Postgres:
			w.atHome = harness.PostgresDatabase(t)
			w.home, w.other, w.use = "public", `"Ten"`, `SET search_path = "Ten"`
			w.astray = w.atHome + "&search_path=%22Ten%22"
			w.plain = w.Raw(t, w.atHome)
			harness.MustExec(t, w.plain, `CREATE SCHEMA "Ten"`)
		case sqlfence.MySQL:
			w.Base = harness.MySQL // this Base sends texts unchanged
			w.atHome, w.astray = w.DSN(t), w.DSN(t)
			w.plain = w.Raw(t, w.atHome)
			w.home, w.other = currentDatabase(t, w.plain), currentDatabase(t, w.Raw(t, w.astray))
			w.use = "USE " + w.other
		default:
			t.Skip("each file has a ledger of its own")
		}
		harness.MustExec(t, w.plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, fence_token bigint NOT NULL DEFAULT 0)")
		harness.MustExec(t, w.plain, "INSERT INTO books (id) VALUES (1)")
		test(t, w)
	})
}

func currentDatabase(t *testing.T, db *sql.DB) (name string) {
	t.Helper()
	if err := db.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

// books registers the table at home under Ledger.
func (w two) books() sqlfence.Option {
	return sqlfence.WithTable(w.home+".books", sqlfence.Ledger(), sqlfence.Resource("books"))
}

func (w two) store(t *testing.T, db *sql.DB) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (w two) update() string { return "UPDATE " + w.home + ".books SET price = 20 WHERE id = 1" }

// A session finds names in another schema. A user who follows its errors doesn't create a second ledger, in which a
// stale write would pass.
func TestErrorsDontLeadToASecondLedger(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		ctx := t.Context()
		harness.NewLeases(t, w.plain) // also creates the leases' tables
		first := w.store(t, w.plain)
		a, err := first.Issue(ctx, "books")
		if err != nil {
			t.Fatal(err)
		}
		stray := w.Fenced(t, w.astray, w.books())
		holding := sqlfence.WithFence(ctx, a)
		write := func(db harness.Runner) error { _, err := db.ExecContext(holding, w.update()); return err }
		leases, err := lease.New(stray, harness.Patient())
		if err != nil {
			t.Fatal(err)
		}
		for name, do := range map[string]func() error{
			"write":   func() error { return write(stray) },
			"prepare": func() error { _, err := stray.PrepareContext(holding, w.update()); return err },
			"issue":   func() error { _, err := w.store(t, stray).Issue(ctx, "books"); return err },
			"adopt":   func() error { return w.store(t, stray).Adopt(ctx, a) },
			"ensure":  func() error { return w.store(t, stray).Ensure(ctx, "books") },
			"acquire": func() error { _, _, err := leases.TryAcquire(ctx, "books"); return err },
		} {
			err := do()
			if name == "prepare" && err == nil {
				continue // MySQL's driver sends the text at the execution
			}
			w.wantNamed(t, name, err)
		}
		tx, err := stray.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := write(tx); !errors.Is(err, sqlfence.ErrNotSetUp) || !strings.Contains(err.Error(), "WithSchema") {
			t.Errorf("in a transaction: %v", err)
		}

		// With the schema that the error names, writes and tokens work.
		named := w.Fenced(t, w.astray, w.books(), sqlfence.WithSchema(w.home))
		if err := write(named); err != nil {
			t.Errorf("with the schema: %v", err)
		}
		b, err := w.store(t, named).Issue(ctx, "books")
		if err != nil || b.Value <= a.Value {
			t.Errorf("issued %v after %v: %v", b, a, err)
		}
		if err := write(named); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("a late write: %v, want ErrStale", err)
		}
	})
}

// wantNamed checks that an error names the ledger's schema, and advises no other schema.
func (w two) wantNamed(t *testing.T, what string, err error) {
	t.Helper()
	var setup *sqlfence.SetupError
	if !errors.As(err, &setup) || setup.Remedy == "" || !strings.Contains(setup.Remedy, w.home) && !strings.Contains(setup.Remedy, " and others") || !strings.Contains(setup.Remedy, "WithSchema") ||
		strings.Contains(err.Error(), "CREATE TABLE") {
		t.Errorf("%s: %v, want an error that names %s", what, err, w.home)
	}
}

// All of sqlfence's tables are in the option's schema, in whatever schema the session finds names.
func TestWithSchema(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		ctx := t.Context()
		harness.MustExec(t, w.plain, "CREATE TABLE invoice (id integer PRIMARY KEY, serial bigint NOT NULL DEFAULT 1, editedby "+w.textType()+", editedsince "+w.TimeType()+", editedexpiry "+w.TimeType()+")")
		harness.MustExec(t, w.plain, "INSERT INTO invoice (id) VALUES (7)")
		var dbs []*sql.DB
		var sent []string
		watch := sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { sent = append(sent, e.Sent) }, sqlfence.Refused)
		for _, dsn := range []string{w.atHome, w.astray} {
			dbs = append(dbs, w.Fenced(t, dsn, w.books(), sqlfence.WithSchema(w.other), watch))
		}
		for i, db := range append(dbs, dbs...) {
			store := w.store(t, db)
			if err := store.Setup(ctx); err != nil {
				t.Fatal(err)
			}
			if err := store.RecordIssuers(ctx); err != nil {
				t.Fatal(err)
			}
			token, err := store.Issue(ctx, "books")
			for issued, err := range store.ListIssued(ctx, "books") {
				if err != nil || issued.By == "" || issued.Token != token {
					t.Errorf("recorded %+v, %v", issued, err)
				}
			}
			if err != nil || token.Value != int64(i+1) {
				t.Fatalf("issued %v, %v: want %d", token, err, i+1)
			}
			if again, err := store.Current(ctx, "books"); again != token || err != nil {
				t.Errorf("current: %v, %v", again, err)
			}
			for j, other := range dbs {
				if _, err := other.ExecContext(sqlfence.WithFence(ctx, token), w.update()); err != nil {
					t.Errorf("%d by %d: %v", i, j, err)
				}
				if token.Value--; token.Value > 0 {
					if _, err := other.ExecContext(sqlfence.WithFence(ctx, token), w.update()); !errors.Is(err, sqlfence.ErrStale) {
						t.Errorf("%d by %d, a stale token: %v", i, j, err)
					}
				}
				token.Value++
			}
			if err := store.Adopt(ctx, token); err != nil {
				t.Error(err)
			}
			if _, err := store.Repair(ctx, token.Value); err != nil {
				t.Error(err)
			}
			w.useLeases(t, db)
			w.useLocks(t, db)
			if _, err := verify.Check(ctx, db); err != nil {
				t.Error(err)
			}
		}
		for _, table := range []string{"fencing_tokens", "fencing_leases", "rowlocks"} {
			var n int
			if err := w.plain.QueryRow("SELECT COUNT(*) FROM " + w.other + "." + table).Scan(&n); err != nil {
				t.Error(err)
			}
			if err := w.plain.QueryRow("SELECT COUNT(*) FROM " + w.home + "." + table).Scan(&n); err == nil {
				t.Errorf("there is a table %s in %s, too", table, w.home)
			}
		}
		if w.Dialect == sqlfence.Postgres { // this pool has installed the function, so its guards call it
			if last := sent[len(sent)-1]; !strings.Contains(last, w.other+".sqlfence_newest_") || !strings.Contains(last, w.other+".fencing_tokens") {
				t.Errorf("the guard is in %s", last)
			}
		}
		harness.MustExec(t, w.plain, "DROP TABLE "+w.other+".fencing_tokens")
		_, err := dbs[0].ExecContext(sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 1}), w.update())
		if setup := (*sqlfence.SetupError)(nil); !errors.As(err, &setup) || !strings.Contains(setup.SQL, strings.Trim(w.other, `"`)) {
			t.Errorf("without the ledger: %v", err)
		}
	})
}

func (w two) textType() string {
	if w.Dialect == sqlfence.MySQL {
		return "varchar(100)"
	}
	return "text"
}

// useLeases takes, extends, lists and releases leases.
func (w two) useLeases(t *testing.T, db *sql.DB) {
	t.Helper()
	leases := harness.NewLeases(t, db)
	l := harness.MustAcquire(t, leases, "fencing_tokens") // a key that is the name of a table
	if err := l.Extend(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
	if list, err := leases.List(t.Context()); err != nil || len(list) != 1 || list[0].Key != "fencing_tokens" {
		t.Errorf("listed %v, %v", list, err)
	}
	harness.MustRelease(t, l)
	if _, err := leases.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// useLocks locks a row and frees it.
func (w two) useLocks(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx := t.Context()
	m, err := rowlock.NewManager(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Setup(ctx); err != nil {
		t.Fatal(err)
	}
	invoice, err := rowlock.New(db, w.home+".invoice", rowlock.WithManager(m))
	if err != nil {
		t.Fatal(err)
	}
	if err := invoice.Check(ctx); err != nil {
		t.Error(err)
	}
	edit := rowlock.Edit{ID: 7, Serial: 1, User: "ada", Session: "s1"}
	if _, err := invoice.Request(ctx, edit); err != nil {
		t.Fatal(err)
	}
	if held, err := m.Locks(ctx, rowlock.Filter{}); err != nil || len(held) != 1 {
		t.Errorf("locks: %v, %v", held, err)
	}
	if err := invoice.Release(ctx, 7, "ada"); err != nil {
		t.Error(err)
	}
}

// WithSchema is refused with a name that no schema can have, on SQLite, and with two different names.
func TestWithSchemaIsChecked(t *testing.T) {
	for _, test := range []struct {
		driver string
		names  []string
		want   string
	}{
		{"postgres", []string{"ten"}, ""},
		{"postgres", []string{`"Ten"`, `"Ten"`}, ""},
		{"mysql", []string{"Ten"}, ""},
		{"postgres", []string{""}, "without a name"},
		{"postgres", []string{"ten", "eleven"}, "twice"},
		{"postgres", []string{"shop.ten"}, "one part"},
		{"postgres", []string{"ten; DROP"}, "WithSchema"},
		{"sqlite3", []string{"main"}, "each file"},
	} {
		opts := []sqlfence.Option{}
		for _, name := range test.names {
			opts = append(opts, sqlfence.WithSchema(name))
		}
		db, err := sqlfence.Open(test.driver, "", opts...)
		if err == nil {
			_ = db.Close()
		}
		if (err != nil) != (test.want != "") || err != nil && (!errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s, %q: %v, want %q", test.driver, test.names, err, test.want)
		}
	}
}

// verify.Check reports several ledgers, unless an option selects the ledger.
func TestVerifyFindsSeveralLedgers(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		ctx := t.Context()
		find := func(dsn, code string, opts ...sqlfence.Option) []string {
			all, err := verify.Check(ctx, w.Fenced(t, dsn, append(opts, w.books())...))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range all {
				if f.Code == code {
					found = append(found, f.Problem+" "+f.Remedy)
				}
			}
			return found
		}
		if err := w.store(t, w.plain).Setup(ctx); err != nil {
			t.Fatal(err)
		}
		if found := find(w.astray, "missing-ledger"); len(found) != 1 || !strings.Contains(found[0], w.home) || !strings.Contains(found[0], "WithSchema") {
			t.Errorf("of one in another schema: %q", found)
		}
		if found := slices.Concat(find(w.atHome, "several-ledgers"), find(w.astray, "missing-ledger", sqlfence.WithSchema(w.home))); len(found) > 0 {
			t.Errorf("of the one: %q", found)
		}
		if err := w.store(t, w.Raw(t, w.astray)).Setup(ctx); err != nil {
			t.Fatal(err)
		}
		if found := find(w.astray, "several-ledgers"); len(found) != 1 || !strings.Contains(found[0], w.home) {
			t.Errorf("of two: %q", found)
		}
		if found := find(w.astray, "several-ledgers", sqlfence.WithSchema(w.home)); len(found) > 0 {
			t.Errorf("of two, with the option: %q", found)
		}
	})
}

// A session that resolves another ledger gets refusals of statements that need the ledger, including those of
// sqlfence's packages, until the session is back. With the option such a session works.
func TestSessionsDontMoveToAnotherLedger(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		ctx := t.Context()
		for _, dsn := range []string{w.atHome, w.astray} {
			store := w.store(t, w.Raw(t, dsn))
			if err := store.Setup(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Issue(ctx, "books"); err != nil {
				t.Fatal(err)
			}
		}
		newer, err := w.store(t, w.plain).Issue(ctx, "books")
		if err != nil {
			t.Fatal(err)
		}
		stale := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: newer.Value - 1})
		for _, named := range []bool{false, true} {
			opts := []sqlfence.Option{w.books()}
			if named {
				opts = append(opts, sqlfence.WithSchema(w.home))
			}
			db := w.Fenced(t, w.atHome, opts...)
			db.SetMaxOpenConns(1)
			wantWrite := func(when string, want error) {
				t.Helper()
				if _, err := db.ExecContext(stale, w.update()); !errors.Is(err, want) {
					t.Errorf("%s, with the option %t: a stale write: %v, want %v", when, named, err, want)
				}
			}
			moved := sqlfence.ErrUnguardable
			if named {
				moved = sqlfence.ErrStale
			}
			wantWrite("at home", sqlfence.ErrStale)
			harness.MustExec(t, db, w.use)
			wantWrite("moved", moved)
			if token, err := w.store(t, db).Current(ctx, "books"); errors.Is(err, sqlfence.ErrUnguardable) == named || named && token != newer {
				t.Errorf("moved, with the option %t: current is %v, %v", named, token, err)
			}
			harness.MustExec(t, db, strings.Replace(w.use, w.other, w.home, 1))
			wantWrite("back", sqlfence.ErrStale)
			if w.Dialect != sqlfence.Postgres {
				continue
			}
			harness.MustExec(t, db, "SELECT set_config('search_path', '\"Ten\"', false)")
			wantWrite("moved by a function", moved)
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{"SET LOCAL search_path = public", w.update()} {
				if _, err := tx.ExecContext(sqlfence.WithFence(ctx, newer), query); err != nil {
					t.Errorf("%s: %v", query, err)
				}
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			wantWrite("moved again by the end of a transaction", moved)
			harness.MustExec(t, db, "RESET ALL")
			wantWrite("reset", sqlfence.ErrStale)
		}
	})
}

// A guarded multi-statement string may move its session by its other statements, like an unguarded string.
func TestGuardedTextsMoveSessions(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		if w.Dialect != sqlfence.Postgres {
			t.Skip("no text of several statements is guarded")
		}
		ctx := t.Context()
		for _, dsn := range []string{w.atHome, w.astray} { // in both the token is 1
			store := w.store(t, w.Raw(t, dsn))
			if err := store.Setup(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Issue(ctx, "books"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.store(t, w.plain).Issue(ctx, "books"); err != nil {
			t.Fatal(err)
		}
		harness.MustExec(t, w.plain, "CREATE TABLE pens (id integer PRIMARY KEY, fence_token bigint NOT NULL DEFAULT 0)")
		db := w.Fenced(t, w.atHome, w.books(), sqlfence.WithTable("public.pens", sqlfence.RowFence("fence_token")))
		db.SetMaxOpenConns(1)
		holding := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 1}, sqlfence.Token{Name: "public.pens", Value: 1})
		if _, err := db.ExecContext(holding, `SELECT set_config('search_path', '"Ten"', false); INSERT INTO public.pens (id) VALUES (1)`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(holding, w.update()); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("a stale write that finds the other ledger: %v, want ErrUnguardable", err)
		}
	})
}
