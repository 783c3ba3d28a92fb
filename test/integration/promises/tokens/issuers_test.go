package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A recorded is a ledger with RecordIssuers, with the packages that write to it.
type recorded struct {
	harness.Base
	plain, fenced *sql.DB
	store         *tokens.Store
	leases        *lease.Leases
}

func newRecorded(t *testing.T, b harness.Base, dsn string, db *sql.DB) *recorded {
	t.Helper()
	r := &recorded{Base: b, plain: b.Raw(t, dsn), store: setupStore(t, db), leases: harness.NewLeases(t, db),
		fenced: b.Fenced(t, dsn, harness.Books(sqlfence.Ledger()))}
	harness.MustExec(t, r.plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer)")
	harness.MustExec(t, r.plain, "INSERT INTO books VALUES (1, 10)")
	return r
}

// A way is a call or a statement that may increase a name's token.
type way struct {
	name string
	do   func(ctx context.Context, r *recorded, name string) error
}

// raises are the ways that increase it, or that issue the first token of a name without a row.
var raises = []way{
	{"issue", func(ctx context.Context, r *recorded, name string) error {
		_, err := r.store.Issue(ctx, name)
		return err
	}},
	{"issue several", func(ctx context.Context, r *recorded, name string) error {
		_, err := r.store.IssueMany(ctx, name, name+"/1")
		return err
	}},
	{"issue beside others", func(ctx context.Context, r *recorded, name string) error {
		errs := make([]error, 16)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = r.store.Issue(ctx, name+[]string{"", "/1", "/2", "/3"}[i%4]) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}},
	{"adopt", func(ctx context.Context, r *recorded, name string) error {
		return r.store.Adopt(ctx, sqlfence.Token{Name: name, Value: r.stored(ctx, name) + 1000})
	}},
	{"lease", func(ctx context.Context, r *recorded, name string) error {
		l, ok, err := r.leases.TryAcquire(ctx, name)
		if err != nil || !ok {
			return fmt.Errorf("taken %t, %w", ok, err)
		}
		return l.Release(ctx)
	}},
	{"leases at once", func(ctx context.Context, r *recorded, name string) error {
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				l, err := r.leases.Acquire(ctx, fmt.Sprint(name, []string{"", "/1", "/2", "/3"}[i%4]))
				if errs[i] = err; err == nil {
					errs[i] = l.Release(ctx)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}},
	{"another client", func(ctx context.Context, r *recorded, name string) error {
		changed, err := r.plain.ExecContext(ctx, "UPDATE fencing_tokens SET token = token + 1 WHERE name = '"+name+"'")
		if err != nil {
			return err
		}
		if n, err := changed.RowsAffected(); n > 0 || err != nil {
			return err
		}
		_, err = r.plain.ExecContext(ctx, "INSERT INTO fencing_tokens (name, token) VALUES ('"+name+"', 1)")
		return err
	}},
}

// raisesLater are the ways that need an existing token, or increment the tokens of all names.
var raisesLater = []way{
	{"repair", func(ctx context.Context, r *recorded, name string) error {
		_, err := r.store.Repair(ctx, r.stored(ctx, name)+1, tokens.AboveWarnToken())
		return err
	}},
	{"rotate", func(ctx context.Context, r *recorded, name string) error {
		_, err := r.store.Rotate(ctx, name)
		return err
	}},
}

// raisesNone leave a name's token as it is, which is above 0.
var raisesNone = []way{
	{"ensure", func(ctx context.Context, r *recorded, name string) error { return r.store.Ensure(ctx, name) }},
	{"adopt again", func(ctx context.Context, r *recorded, name string) error {
		return r.store.Adopt(ctx, sqlfence.Token{Name: name, Value: r.stored(ctx, name)})
	}},
	{"repair below it", func(ctx context.Context, r *recorded, name string) error {
		_, err := r.store.Repair(ctx, 1)
		return err
	}},
	{"the same token", func(ctx context.Context, r *recorded, name string) error {
		_, err := r.plain.ExecContext(ctx, "UPDATE fencing_tokens SET token = token")
		return err
	}},
	{"guarded write", func(ctx context.Context, r *recorded, name string) error {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: r.stored(ctx, name)})
		_, err := r.fenced.ExecContext(ctx, "UPDATE books SET price = price + 1 WHERE id = 1")
		return err
	}},
	{"setup", func(ctx context.Context, r *recorded, name string) error { return r.store.Setup(ctx) }},
	{"record again", func(ctx context.Context, r *recorded, name string) error { return r.store.RecordIssuers(ctx) }},
}

func (r *recorded) stored(ctx context.Context, name string) int64 {
	token, err := r.store.Current(ctx, name)
	if err != nil && !errors.Is(err, sqlfence.ErrUnknownName) {
		panic(err)
	}
	return token.Value
}

// issued returns the ledger's record of a name.
func (r *recorded) issued(t *testing.T, name string) (found tokens.Issued) {
	t.Helper()
	for issued, err := range r.store.ListIssued(t.Context(), name) {
		if err != nil {
			t.Fatal(err)
		}
		if issued.Token.Name == name {
			found = issued
		}
	}
	return found
}

// forget removes a name's record, so that a test sees whether it is written again.
func (r *recorded) forget(t *testing.T, name string) {
	t.Helper()
	who := "issued_by = NULL, "
	if r.Dialect == sqlfence.SQLite {
		who = ""
	}
	harness.MustExec(t, r.plain, "UPDATE fencing_tokens SET "+who+"issued_at = NULL")
	if i := r.issued(t, name); i.By != "" || !i.At.IsZero() {
		t.Fatalf("forgotten, and there is %+v", i)
	}
}

// now is the database's clock, in microseconds.
func (r *recorded) now(t *testing.T) (now int64) {
	t.Helper()
	text := map[sqlfence.Dialect]string{
		sqlfence.Postgres: "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		sqlfence.MySQL:    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
		sqlfence.SQLite:   "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) * 1000 AS INTEGER)",
	}[r.Dialect]
	if err := r.plain.QueryRow(text).Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now
}

// wantRecord fails the test unless a way leaves a record.
func (r *recorded) wantRecord(t *testing.T, w way, name string) {
	t.Helper()
	began := r.now(t)
	if err := w.do(t.Context(), r, name); err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	i := r.issued(t, name)
	if at := i.At.UnixMicro(); at < began || at > r.now(t) {
		t.Errorf("%s: %+v, want a time since %d", w.name, i, began)
	}
	part := map[sqlfence.Dialect]string{sqlfence.Postgres: ", pid ", sqlfence.MySQL: ", connection "}[r.Dialect]
	if !strings.Contains(i.By, part) || strings.Contains(i.By, "@") == (r.Dialect == sqlfence.SQLite) {
		t.Errorf("%s: by %q", w.name, i.By)
	}
}

// RecordIssuers works on a ledger that an older Setup or another program has created. Several callers may call it at
// once, while others issue tokens on open connections. Before RecordIssuers, ListIssued returns what List returns.
func TestRecordIssuersOnALedgerInUse(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		if b.Dialect != sqlfence.MySQL { // MySQL would compare their names by a collation
			blogTable(t, b, db)
		}
		r := newRecorded(t, b, dsn, db)
		if err := r.store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range raises {
			r.wantRecord(t, w, "books")
		}
	})
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		r := newRecorded(t, b, dsn, db)
		old := issueMany(t, r.store, "a", "books", "c")
		var listed []string
		for i, err := range r.store.ListIssued(t.Context(), "") {
			if err != nil || i.By != "" || !i.At.IsZero() {
				t.Errorf("%+v, %v", i, err)
			}
			listed = append(listed, fmt.Sprintf("%s=%d", i.Token.Name, i.Token.Value))
		}
		wantIssued(t, listed, old...)
		stop := make(chan struct{})
		var others, recorders sync.WaitGroup
		for name, w := range map[string]way{"issued": raises[0], "leased": raises[4], "books": raisesNone[4]} {
			others.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := w.do(t.Context(), r, name); err != nil && !(b.Dialect == sqlfence.SQLite && dberr.IsBusy(err)) {
						t.Errorf("%s: %v", w.name, err)
						return
					}
				}
			})
		}
		for range 4 {
			store := harness.NewStore(t, b.Raw(t, dsn))
			recorders.Go(func() {
				if err := store.RecordIssuers(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		recorders.Wait()
		close(stop)
		others.Wait()
		if i := r.issued(t, "books"); i.Token.Value != 1 || i.By != "" || !i.At.IsZero() {
			t.Errorf("of a token from before: %+v", i)
		}
		for _, w := range raises[:5] {
			r.wantRecord(t, w, "books")
		}
	})
}

// Every increase of a token is recorded, beginning with a name's first token. A statement that keeps the token isn't
// recorded.
func TestRecordIssuers(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		r := newRecorded(t, b, dsn, db)
		if err := r.store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range raises {
			name := strings.ReplaceAll(w.name, " ", "-")
			r.wantRecord(t, w, name)
			for range 2 {
				r.forget(t, name)
				r.wantRecord(t, w, name)
			}
		}
		if err := r.store.Ensure(t.Context(), "empty", "books"); err != nil {
			t.Fatal(err)
		}
		if i := r.issued(t, "empty"); i.By != "" || !i.At.IsZero() {
			t.Errorf("of a name without a token: %+v", i)
		}
		r.wantRecord(t, raises[0], "books") // the first token of an existing row
		for _, w := range raisesNone {
			before := r.issued(t, "books")
			if err := w.do(t.Context(), r, "books"); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			if i := r.issued(t, "books"); i != before {
				t.Errorf("%s: there is %+v, there was %+v", w.name, i, before)
			}
		}
		for _, w := range raisesLater {
			r.wantRecord(t, w, "books")
		}
	})
}

// nonces are different in each statement; on MySQL also the tag of a token, and the mark of IssueMany's variable.
var nonces = regexp.MustCompile(`/\* sqlfence-\w+ \*/|\b\d{16,19}\b|'[A-Z2-7]{16}'`)

// With a record Issue sends no more statements.
func TestRecordIssuersSendsNothing(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db, sent := b.Counted(t, b.DSN(t))
		store := setupStore(t, db)
		issue := func() []string {
			issueMany(t, store, "books", "pens")
			sent.Reset()
			harness.IssueToken(t, store, "books")
			issueMany(t, store, "books", "pens")
			return strings.Split(nonces.ReplaceAllString(strings.Join(sent.Texts(), "\n\n"), ""), "\n\n")
		}
		before := issue()
		if err := store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := issue(); !slices.Equal(after, before) || len(after) == 0 {
			t.Errorf("with the record\n%q\nare sent, without it\n%q", after, before)
		}
		sent.Reset()
		if err := store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, text := range sent.Texts() {
			if strings.HasPrefix(text, "ALTER") || strings.HasPrefix(text, "CREATE") || strings.HasPrefix(text, "DROP") {
				t.Errorf("again it sends %s", text)
			}
		}
	})
}

// others are foreign columns with the names issued_by and issued_at.
var others = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {"issued_by integer", "issued_at timestamp", "issued_at bigint"},
	sqlfence.MySQL:    {"issued_by varchar(100)", "issued_by varbinary(100)", "issued_at datetime"},
	sqlfence.SQLite:   {"issued_at text"},
}

// A column of another type stays unchanged, and tokens stay unchanged. If one of the two columns exists, the missing
// column is added. A row that a client inserts with a record keeps this record. Objects that the triggers need can't be
// dropped.
func TestRecordIssuersBesideOtherColumns(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		store := setupStore(t, db)
		for _, column := range others[b.Dialect] {
			harness.MustExec(t, db, "ALTER TABLE fencing_tokens ADD COLUMN "+column)
			name, _, _ := strings.Cut(column, " ")
			if err := store.RecordIssuers(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("with %s: %v", column, err)
			}
			harness.IssueToken(t, store, "books")
			for i, err := range store.ListIssued(t.Context(), "") {
				if err != nil || i.By != "" || !i.At.IsZero() {
					t.Errorf("with %s: %+v, %v", column, i, err)
				}
			}
			harness.MustExec(t, db, "ALTER TABLE fencing_tokens DROP COLUMN "+name)
		}
		at := map[sqlfence.Dialect]string{sqlfence.Postgres: "timestamptz"}[b.Dialect]
		if at == "" {
			at = "bigint"
		}
		harness.MustExec(t, db, "ALTER TABLE fencing_tokens ADD COLUMN issued_at "+at)
		if err := store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := &recorded{Base: b, plain: db, store: store}
		r.wantRecord(t, raises[0], "books")
		was := r.issued(t, "books")
		columns := "name, token, issued_at"
		if b.Dialect != sqlfence.SQLite {
			columns += ", issued_by"
		}
		copied := strings.Replace(columns, "name", "'copy'", 1)
		harness.MustExec(t, db, "INSERT INTO fencing_tokens ("+columns+") SELECT "+copied+" FROM fencing_tokens WHERE name = 'books'")
		if i := r.issued(t, "copy"); i.By != was.By || !i.At.Equal(was.At) {
			t.Errorf("copied %+v to %+v", was, i)
		}
		if b.Dialect == sqlfence.MySQL {
			return // MySQL can drop the column
		}
		if _, err := db.Exec("ALTER TABLE fencing_tokens DROP COLUMN issued_at"); err == nil {
			t.Error("the column can be dropped without the triggers")
		}
		r.wantRecord(t, raises[0], "books")
	})
}

// Without a ledger, RecordIssuers and ListIssued return ErrNotSetUp.
func TestRecordIssuersWithoutALedger(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := harness.NewStore(t, db)
		harness.WantError(t, store.RecordIssuers(t.Context()), sqlfence.ErrNotSetUp)
		for _, err := range store.ListIssued(t.Context(), "") {
			harness.WantError(t, err, sqlfence.ErrNotSetUp)
		}
	})
}
