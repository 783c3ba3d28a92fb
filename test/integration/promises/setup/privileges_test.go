package setup_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A part is a role's work, with the privileges that docs/privileges.md lists for it: privileges of the application, and
// privileges that sqlfence adds.
type part struct {
	name       string
	rules      []sqlfence.Rule // of books
	own, added []string        // of GRANT
	needless   string          // the one of added that MySQL doesn't require
	do         func(*role, context.Context) error
}

var parts = []part{
	{"writer, row fence", []sqlfence.Rule{sqlfence.RowFence("fence_token")},
		[]string{"SELECT (id, price) ON books", "INSERT (id, price) ON books", "UPDATE (price) ON books", "DELETE ON books"},
		[]string{"SELECT (fence_token) ON books", "INSERT (fence_token) ON books", "UPDATE (fence_token) ON books"}, "", (*role).write},
	{"writer, ledger", []sqlfence.Rule{sqlfence.Ledger()},
		[]string{"SELECT (id, price) ON books", "INSERT (id, price) ON books", "UPDATE (price) ON books", "DELETE ON books"},
		[]string{"SELECT ON fencing_tokens", "UPDATE ON fencing_tokens"}, "UPDATE ON fencing_tokens", (*role).write},
	{"issuer", nil, nil,
		[]string{"SELECT ON fencing_tokens", "INSERT ON fencing_tokens", "UPDATE ON fencing_tokens"}, "", (*role).issue},
	{"lease holder", nil, nil,
		[]string{"SELECT ON fencing_tokens", "INSERT ON fencing_tokens", "UPDATE ON fencing_tokens",
			"SELECT ON fencing_leases", "INSERT ON fencing_leases", "UPDATE ON fencing_leases"}, "", (*role).lease},
	{"editor", nil, []string{"SELECT ON invoice"},
		[]string{"UPDATE (editedby, editedsince, editedexpiry) ON invoice",
			"SELECT ON rowlocks", "INSERT ON rowlocks", "UPDATE ON rowlocks", "DELETE ON rowlocks"}, "", (*role).edit},
	{"reader", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}, []string{"SELECT (id, price) ON books"},
		[]string{"SELECT ON fencing_tokens", "SELECT ON fencing_leases"}, "", (*role).read},
	{"deleter", nil, nil, []string{"SELECT ON fencing_tokens", "INSERT ON fencing_tokens", "UPDATE ON fencing_tokens", "DELETE ON fencing_tokens"}, "", (*role).delete},
	{"administrator", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, nil,
		[]string{"SELECT ON books", "UPDATE ON books", "SELECT ON fencing_tokens", "INSERT ON fencing_tokens", "UPDATE ON fencing_tokens",
			"SELECT ON fencing_leases", "DELETE ON fencing_leases"}, "", (*role).administer},
}

// Each part succeeds with just its privileges, Setup included: none may create anything. Without any privilege that
// sqlfence adds the part fails, and the error has a GRANT that repairs this.
func TestPrivileges(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.SQLite {
			t.Skip("no roles in SQLite")
		}
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) {
				if b.Dialect == sqlfence.MySQL {
					p.added = slices.DeleteFunc(slices.Clone(p.added), func(privilege string) bool { return privilege == p.needless })
				}
				r := newRole(t, b, p)
				if err := p.do(r, t.Context()); err != nil {
					t.Fatalf("with just its privileges: %v", err)
				}
				for _, privilege := range p.added {
					harness.MustExec(t, r.owner, "REVOKE "+privilege+" FROM "+r.name)
					err := p.do(r, t.Context())
					var setup *sqlfence.SetupError
					if errors.As(err, &setup) && !strings.Contains(strings.ReplaceAll(setup.SQL, "'", ""), " TO "+strings.ReplaceAll(r.name, "'", "")) {
						t.Errorf("without %s: %s doesn't name the role %s", privilege, setup.SQL, r.name)
					}
					if !errors.As(err, &setup) || !strings.HasPrefix(setup.SQL, "GRANT ") {
						t.Fatalf("without %s: %v, want a GRANT", privilege, err)
					}
					harness.MustExec(t, r.owner, strings.ReplaceAll(setup.SQL, "<role>", r.name))
					if err := p.do(r, t.Context()); err != nil {
						t.Fatalf("without %s, after %s: %v", privilege, setup.SQL, err)
					}
					r.grantOnly(t, slices.Concat(p.own, p.added))
				}
			})
		}
	})
}

// A role has a database open, with only the privileges that it was granted.
type role struct {
	name      string
	revoke    string // revokes all privileges on tables from the role
	owner, db *sql.DB

	source, ownerSource string
	token               sqlfence.Token
	writes              int64
	keys                int
}

func newRole(t *testing.T, b harness.Base, p part) *role {
	t.Helper()
	sh := harness.NewShop(t, b)
	r := &role{name: "sqlfence_" + strings.ToLower(rand.Text()), owner: sh.Plain}
	harness.NewLeases(t, r.owner)
	sh.Exec(t, "CREATE TABLE invoice (id integer PRIMARY KEY, serial bigint NOT NULL DEFAULT 1, editedby text, editedsince "+b.TimeType()+", editedexpiry "+b.TimeType()+")")
	sh.Exec(t, "INSERT INTO invoice (id) VALUES (7)")
	m, err := rowlock.NewManager(r.owner)
	if err == nil {
		err = m.Setup(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	store := harness.NewStore(t, r.owner)
	r.token = sqlfence.Token{Name: "books", Value: harness.IssueToken(t, store, "books")}
	source := sh.Source + "&role=" + r.name
	create, drop := "CREATE ROLE "+r.name, "DROP OWNED BY "+r.name+"; DROP ROLE "+r.name
	r.revoke = "DO $$ BEGIN EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM " + r.name + "', current_schema()); END $$"
	if b.Dialect == sqlfence.MySQL {
		user := r.name[:20] // MySQL accepts 32 letters
		source = harness.MySQLWith(t, sh.Source, func(c *mysql.Config) { c.User, c.Passwd = user, "secret" })
		r.name = user + "@'127.0.0.1'"
		create, drop = "CREATE USER "+r.name+" IDENTIFIED BY 'secret'", "DROP USER "+r.name
		r.revoke = "REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + r.name
	}
	harness.MustExec(t, r.owner, create)
	t.Cleanup(func() {
		if _, err := r.owner.ExecContext(context.WithoutCancel(t.Context()), drop); err != nil {
			t.Error(err)
		}
	})
	if b.Dialect == sqlfence.Postgres {
		harness.MustExec(t, r.owner, "DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO "+r.name+"', current_schema()); END $$")
	}
	r.grantOnly(t, slices.Concat(p.own, p.added))
	r.source, r.ownerSource = source, sh.Source
	r.db = b.Fenced(t, source, harness.Books(p.rules...))
	return r
}

// grantOnly grants the role these privileges and revokes all others.
func (r *role) grantOnly(t *testing.T, privileges []string) {
	t.Helper()
	harness.MustExec(t, r.owner, r.revoke)
	for _, privilege := range privileges {
		harness.MustExec(t, r.owner, "GRANT "+privilege+" TO "+r.name)
	}
}

func (r *role) write(ctx context.Context) error {
	r.writes++
	ctx = sqlfence.WithFence(ctx, r.token)
	for _, query := range []string{
		"INSERT INTO books (id, price) VALUES ($1, 10)",
		"UPDATE books SET price = 20 WHERE id = $1",
		"DELETE FROM books WHERE id = $1",
	} {
		if _, err := r.db.ExecContext(ctx, query, r.writes); err != nil {
			return err
		}
	}
	return nil
}

func (r *role) issue(ctx context.Context) error {
	store, err := tokens.New(r.db)
	if err != nil {
		return err
	}
	if err := store.Setup(ctx); err != nil {
		return err
	}
	token, err := store.Issue(ctx, "pens")
	if err != nil {
		return err
	}
	return errors.Join(store.Ensure(ctx, "papers"), store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: token.Value + 5}))
}

func (r *role) lease(ctx context.Context) error {
	leases, err := lease.New(r.db, harness.Patient())
	if err != nil {
		return err
	}
	if err := leases.Setup(ctx); err != nil {
		return err
	}
	for _, options := range [][]lease.Term{{lease.TTL(time.Hour)}, {lease.Ephemeral()}} {
		r.keys++ // a new key, because MySQL requires fewer privileges for one in the ledger
		held, ok, err := leases.TryAcquire(ctx, fmt.Sprint("jobs", r.keys), options...)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("the lease is held")
		}
		if err := held.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *role) edit(ctx context.Context) error {
	m, err := rowlock.NewManager(r.db)
	if err != nil {
		return err
	}
	invoice, err := rowlock.New(r.db, "invoice", rowlock.WithManager(m))
	if err != nil {
		return err
	}
	if err := m.Setup(ctx); err != nil {
		return err
	}
	if _, err := invoice.Request(ctx, rowlock.Edit{ID: 7, Serial: 1, User: "ada"}); err != nil {
		return err
	}
	if _, err := m.Locks(ctx, rowlock.Filter{}); err != nil {
		return err
	}
	return invoice.Release(ctx, 7, "ada")
}

func (r *role) read(ctx context.Context) error {
	store, err := tokens.New(r.db)
	if err != nil {
		return err
	}
	leases, err := lease.New(r.db, harness.Patient())
	if err != nil {
		return err
	}
	if _, err := store.Current(ctx, "books"); err != nil {
		return err
	}
	if _, err := leases.List(ctx); err != nil {
		return err
	}
	_, err = r.db.ExecContext(ctx, "SELECT id, price FROM books")
	return err
}

func (r *role) delete(ctx context.Context) error {
	store, err := tokens.New(r.db)
	if err != nil {
		return err
	}
	if _, err = store.Issue(ctx, "jobs/1"); err == nil {
		_, err = store.Delete(ctx, "jobs/1")
	}
	return err
}

func (r *role) administer(ctx context.Context) error {
	store, err := tokens.New(r.db)
	if err != nil {
		return err
	}
	leases, err := lease.New(r.db, harness.Patient())
	if err != nil {
		return err
	}
	if _, err := store.Repair(ctx, 100); err != nil {
		return err
	}
	if _, err := store.Rotate(ctx, "books", tokens.Mark{Table: "books", Column: "fence_token"}); err != nil {
		return err
	}
	_, err = leases.Sweep(ctx)
	return err
}
