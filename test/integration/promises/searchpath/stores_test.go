package searchpath_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// Tokens, leases, row locks and counts of changes work beside an application's own operators, functions and types, and
// verify.Check has no finding.
func TestStoresBesideAnApplicationsOperators(t *testing.T) {
	for _, b := range harness.Bases[:2] {
		t.Run(b.Name, func(t *testing.T) {
			h := newHostile(t, b)
			h.exec(t, booksTable)
			db := h.Raw(t, h.dsn)
			try := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			h.setUp(t)
			h.tokens(t, db, try)
			h.leases(t, db, try)
			h.rowLocks(t, db, try)
			h.changes(t, db, try)

			fenced := h.Fenced(t, h.dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger(),
				sqlfence.Serial("serial"), sqlfence.Sealed()))
			try("AddFence", schema.AddFence(t.Context(), fenced, "books", "another"))
			try("Seal", schema.Seal(t.Context(), fenced))
			findings, err := verify.Check(t.Context(), fenced)
			try("Verify", err)
			for _, f := range findings {
				if f.Code != "setting" {
					t.Errorf("verify.Check: %v", f)
				}
			}
			try("Unseal", schema.Unseal(t.Context(), fenced))
		})
	}
}

// setUp creates sqlfence's objects in a session that finds pg_catalog first, as with migration files.
func (h *hostile) setUp(t *testing.T) {
	t.Helper()
	store := harness.NewStore(t, h.owned, tokens.WithProcedures())
	leases, err := lease.New(h.owned, lease.WithProcedures())
	if err != nil {
		t.Fatal(err)
	}
	manager, err := rowlock.NewManager(h.owned)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(context.Context) error{"tokens": store.Setup,
		"lease": leases.Setup, "rowlock": manager.Setup} {
		if err := set(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := store.RecordIssuers(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (h *hostile) tokens(t *testing.T, db *sql.DB, try func(string, error)) {
	t.Helper()
	ctx := t.Context()
	store := harness.NewStore(t, db, tokens.WithProcedures())
	for range 2 {
		try("Setup", store.Setup(ctx))
	}
	want := func(what string, got sqlfence.Token, err error, value int64) {
		t.Helper()
		if err != nil || got.Value != value {
			t.Errorf("%s: %v, %v; want %d", what, got, err, value)
		}
	}
	for i := int64(1); i <= 2; i++ {
		for _, name := range []string{"books", "pens"} {
			token, err := store.Issue(ctx, name)
			want("Issue", token, err, i)
		}
	}
	many, err := store.IssueMany(ctx, "books", "pens", "new")
	try("IssueMany", err)
	for i, token := range many {
		want("IssueMany", token, nil, []int64{3, 3, 1}[i])
	}
	try("Adopt", store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 9}))
	token, err := store.Current(ctx, "books")
	want("Current", token, err, 9)
	token, err = store.Current(ctx, "pens")
	want("Current", token, err, 3)
	try("Ensure", store.Ensure(ctx, "books", "ink"))
	if err := store.Check(ctx, sqlfence.Token{Name: "books", Value: 8}); err == nil {
		t.Error("Check of a token that was replaced")
	}
	n := 0
	for _, err := range store.ListIssued(ctx, "") {
		try("ListIssued", err)
		n++
	}
	if n != 4 {
		t.Errorf("ListIssued: %d names", n)
	}
	left, err := store.Delete(ctx, "ink")
	if err != nil || len(left) > 0 {
		t.Errorf("Delete: %v, %v", left, err)
	}
	_, err = store.Retires(ctx, "new")
	try("Retires", err)
	_, err = store.Rotate(ctx, "new")
	try("Rotate", err)
	_, err = store.Repair(ctx, 20)
	try("Repair", err)
	token, err = store.Issue(ctx, "books")
	want("Issue after Repair", token, err, 21)
	if _, err := db.ExecContext(ctx, "CALL sqlfence_issue('books')"); err != nil {
		t.Errorf("the procedure: %v", err)
	}
	token, err = store.Current(ctx, "books")
	want("the procedure", token, err, 22)
}

func (h *hostile) leases(t *testing.T, db *sql.DB, try func(string, error)) {
	t.Helper()
	ctx := t.Context()
	leases, err := lease.New(db, lease.WithProcedures())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		try("lease Setup", leases.Setup(ctx))
	}
	held, ok, err := leases.TryAcquire(ctx, "job", lease.TTL(time.Hour), lease.Resume("ada"))
	if err != nil || !ok {
		t.Fatalf("TryAcquire: %v, %v", ok, err)
	}
	if _, ok, err := leases.TryAcquire(ctx, "job"); err != nil || ok {
		t.Errorf("TryAcquire of a lease that is held: %v, %v", ok, err)
	}
	other, ok, err := leases.TryAcquire(ctx, "other", lease.MinHold(time.Second))
	if err != nil || !ok {
		t.Fatalf("TryAcquire of another key: %v, %v", ok, err)
	}
	try("Extend", held.Extend(ctx, time.Hour))
	info, found, err := leases.Lookup(ctx, "job")
	if err != nil || !found || info.Key != "job" {
		t.Errorf("Lookup: %v, %v, %v", info, found, err)
	}
	if _, found, err := leases.Lookup(ctx, "nothing"); err != nil || found {
		t.Errorf("Lookup of a key without a lease: %v, %v", found, err)
	}
	all, err := leases.List(ctx)
	if err != nil || len(all) != 2 {
		t.Errorf("List: %v, %v", all, err)
	}
	_, err = leases.Sweep(ctx)
	try("Sweep", err)
	try("Release", other.Release(ctx))
	try("Release", held.Release(ctx))
	if held, ok, err := leases.TryAcquire(ctx, "job", lease.Ephemeral()); err != nil || !ok {
		t.Errorf("TryAcquire of a lease that is free: %v, %v", ok, err)
	} else {
		try("Release", held.Release(ctx))
	}
	h.exec(t, "DROP DOMAIN hostile.text") // the procedure's variables have this type
	_, err = db.ExecContext(ctx, "CALL sqlfence_lease_acquire('third', 'ada', 10)")
	try("the lease's procedure", err)
}

func (h *hostile) rowLocks(t *testing.T, db *sql.DB, try func(string, error)) {
	t.Helper()
	ctx := t.Context()
	// The procedure compares the key by its type's operator.
	h.exec(t, "DROP OPERATOR hostile.= (integer, integer)")
	h.exec(t, `CREATE TABLE home.invoice (id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1,
		editedby pg_catalog.text, editedsince timestamp with time zone, editedexpiry timestamp with time zone);
		INSERT INTO home.invoice VALUES (7, 1), (8, 1)`)
	manager, err := rowlock.NewManager(db)
	if err != nil {
		t.Fatal(err)
	}
	try("rowlock Setup", manager.Setup(ctx))
	table, err := rowlock.New(db, "invoice", rowlock.WithManager(manager))
	if err != nil {
		t.Fatal(err)
	}
	try("rowlock Check", table.Check(ctx))
	_, err = table.Request(ctx, rowlock.Edit{ID: 7, User: "ada", Serial: 1, Session: "s"})
	try("Request", err)
	if _, err := table.Request(ctx, rowlock.Edit{ID: 7, User: "bob", Serial: 1}); err == nil {
		t.Error("Request of a row that another user holds")
	}
	if _, err := table.Request(ctx, rowlock.Edit{ID: 8, User: "ada", Serial: 2}); err == nil {
		t.Error("Request of another version")
	}
	try("SaveKeep", func() error {
		_, err := table.SaveKeep(ctx, rowlock.Edit{ID: 7, User: "ada", Serial: 1}, func(_ context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = 2, serial = 2 WHERE id OPERATOR(pg_catalog.=) 7")
			return err
		})
		return err
	}())
	locks, err := manager.Locks(ctx, rowlock.Filter{})
	if err != nil || len(locks) != 1 {
		t.Errorf("Locks: %v, %v", locks, err)
	}
	try("Heartbeat", manager.Heartbeat(ctx, "s"))
	if locked, err := table.IsLockedBy(ctx, 7, "bob"); err != nil || locked {
		t.Errorf("IsLockedBy: %v, %v", locked, err)
	}
	if _, err := table.Transfer(ctx, 7, "bob"); err != nil {
		t.Errorf("Transfer: %v", err)
	}
	n, err := manager.FreeUser(ctx, "bob")
	if err != nil || n != 1 {
		t.Errorf("FreeUser: %d, %v", n, err)
	}
}

func (h *hostile) changes(t *testing.T, db *sql.DB, try func(string, error)) {
	t.Helper()
	counter, err := changes.New(db)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		try("changes Setup", counter.Setup(t.Context(), "invoice"))
	}
	before, err := counter.Count(t.Context(), "invoice")
	try("Count", err)
	_, err = db.ExecContext(t.Context(), "UPDATE invoice SET total = 3")
	try("UPDATE", err)
	if after, err := counter.Count(t.Context(), "invoice"); err != nil || after <= before {
		t.Errorf("Count: %d behind %d, %v", after, before, err)
	}
}
