//go:build linux

package pgbouncer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// In pgbouncer's transaction mode, a client's next transaction may run on another server connection. Guards work there,
// because their locks belong to the transaction.

// A pooling is a driver and its parameters on a connection through pgbouncer.
type pooling struct {
	name, base, params string
	shared             bool
}

// poolings are the drivers' modes. shared is set if the mode works while several clients share server connections: then
// the driver must prepare and execute a statement in one message, or use named statements with pgbouncer 1.21 or later.
// The other modes work only with a single client.
var poolings = sync.OnceValue(func() []pooling {
	return []pooling{
		{"pq", "pq", "", false},
		{"pq binary_parameters", "pq", "&binary_parameters=yes", true},
		{"pgx", "pgx", "", keepsNames()},
		{"pgx describe_exec", "pgx", "&default_query_exec_mode=describe_exec", false},
		{"pgx cache_describe", "pgx", "&default_query_exec_mode=cache_describe", true},
		{"pgx exec", "pgx", "&default_query_exec_mode=exec", true},
		{"pgx simple_protocol", "pgx", "&default_query_exec_mode=simple_protocol", true},
	}
})

// keepsNames reports whether pgbouncer supports named prepared statements in transaction mode.
func keepsNames() bool {
	path := need.Find("pgbouncer")
	if path == "" {
		return false
	}
	out, err := exec.Command(path, "--version").Output()
	var major, minor int
	if _, scanErr := fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor); err != nil || scanErr != nil {
		panic(fmt.Sprintf("which version %s is: %s, %v", path, out, errors.Join(err, scanErr)))
	}
	return major > 1 || minor >= 21
}

func baseNamed(name string) harness.Base {
	return harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == name })]
}

// eachPooling runs test with a shop whose DB goes through pgbouncer, and with the base driver on the same connection
// path. If shared is set, it omits poolings that work only with a single client.
func eachPooling(t *testing.T, shared bool, test func(t *testing.T, s *harness.Shop, raw *sql.DB)) {
	t.Helper()
	harness.NeedPostgres(t)
	for _, p := range poolings() {
		if shared && !p.shared {
			continue
		}
		b := baseNamed(p.base)
		for _, fence := range harness.Fences {
			t.Run(p.name+" "+fence.Name, func(t *testing.T) {
				s := harness.NewShop(t, b, fence.Rule)
				s.Source = behindPgbouncer(t, s.Source) + p.params
				s.DB = b.Fenced(t, s.Source, harness.Books(fence.Rule))
				test(t, s, b.Raw(t, s.Source))
			})
		}
	}
}

// A statement that succeeds through pgbouncer without sqlfence must succeed with sqlfence under the newest token, and
// must be refused under an older token or none.
func TestPgbouncerForms(t *testing.T) {
	eachPooling(t, false, func(t *testing.T, s *harness.Shop, raw *sql.DB) {
		raw.SetMaxOpenConns(1)
		s.DB.SetMaxOpenConns(1)
		for _, f := range harness.Forms {
			for _, inTx := range []bool{false, true} {
				send := func(ctx context.Context, db *sql.DB, w harness.Write) (n int64, err error) {
					if !inTx {
						return f.Run(ctx, db, w)
					}
					err = (&harness.Shop{DB: db}).InTx(ctx, func(tx *sql.Tx) error {
						n, err = f.Run(ctx, tx, w)
						return err
					})
					return n, err
				}
				for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
					name := fmt.Sprintf("%s by %s, in a transaction: %v", w.Name, f.Name, inTx)
					s.Reset(t, 9)
					nRaw, errRaw := send(t.Context(), raw, w)
					if errRaw != nil {
						t.Logf("%s: the base driver alone: %v", name, errRaw)
					}
					want := s.State(t, false)
					s.Reset(t, 9)
					n, err := send(harness.Holding(t, 9), s.DB, w)
					if got := s.State(t, false); n != nRaw || got != want || harness.ErrorText(err) != harness.ErrorText(errRaw) {
						t.Errorf("%s: %d rows, %v, left %s\nalone: %d rows, %v, left %s", name, n, err, got, nRaw, errRaw, want)
					}
					s.Reset(t, 9)
					unchanged := s.Unchanged(t)
					_, err = send(t.Context(), s.DB, w)
					harness.WantError(t, err, sqlfence.ErrNoFence)
					// A row fence has no stored token to compare with an inserted row, so a stale insert isn't refused.
					if _, err = send(harness.Holding(t, 8), s.DB, w); slices.ContainsFunc(harness.RowWrites, func(r harness.Write) bool { return r.Name == w.Name }) {
						harness.WantStale(t, err, 8, 9)
						unchanged()
					}
					if t.Failed() {
						t.Fatal(name)
					}
				}
			}
		}
	})
}

// More clients than server connections take tokens and write. The final price must be that of the highest token whose
// write succeeded.
func TestPgbouncerClients(t *testing.T) {
	eachPooling(t, true, func(t *testing.T, s *harness.Shop, raw *sql.DB) {
		const clients, rounds = 16, 8
		s.Reset(t, 0)
		s.DB.SetMaxOpenConns(clients)
		s.DB.SetMaxIdleConns(clients)
		store, err := tokens.New(s.DB)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var highest int64
		var refused int
		others := make(chan struct{}) // closed after client 1 has finished
		for client := range clients {
			wg.Go(func() {
				if client == 1 {
					defer close(others)
				}
				for round := range rounds {
					token, err := store.Issue(t.Context(), "books")
					if err != nil {
						t.Errorf("issue: %v", err)
						return
					}
					if client == 0 && round == 0 {
						<-others // makes this token stale
					}
					ctx := sqlfence.WithFence(t.Context(), token)
					n, err := setPrice(ctx, s, token.Value, client+round)
					mu.Lock()
					switch {
					case err == nil && n == 1:
						highest = max(highest, token.Value)
					case errors.Is(err, sqlfence.ErrStale):
						refused++
					default:
						t.Errorf("token %v: %d rows, %v", token, n, err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		var price int64
		if err := raw.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&price); err != nil || price != highest {
			t.Errorf("the price is %d, %v; the highest token that got through is %d", price, err, highest)
		}
		if refused == 0 {
			t.Error("nobody was refused: the test tests nothing")
		}
		if n := serverSessions(t, s); n > pgbouncerConns {
			t.Errorf("%d connections to the server, so the clients shared none", n)
		}
	})
}

// setPrice sets a book's price. way selects the form of the call, and whether it runs in a transaction.
func setPrice(ctx context.Context, s *harness.Shop, price int64, way int) (n int64, err error) {
	shared := []string{"exec", "exec without arguments", "query", "query row"}
	inTx := append(shared, "prepared exec", "prepared query")
	w := harness.Write{Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{price, 1}}
	if way%2 == 0 {
		return formNamed(shared[way/2%len(shared)]).Run(ctx, s.DB, w)
	}
	err = s.InTx(ctx, func(tx *sql.Tx) (err error) {
		n, err = formNamed(inTx[way/2%len(inTx)]).Run(ctx, tx, w)
		return err
	})
	return n, err
}

func formNamed(name string) harness.Form {
	return harness.Forms[slices.IndexFunc(harness.Forms, func(f harness.Form) bool { return f.Name == name })]
}

// serverSessions opens several clients at once and counts the distinct server sessions that they use.
func serverSessions(t *testing.T, s *harness.Shop) int {
	t.Helper()
	seen := make(map[int]bool)
	for range 4 * pgbouncerConns {
		c, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var pid int
		if err := c.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		seen[pid] = true
	}
	return len(seen)
}

func TestPgbouncerTokens(t *testing.T) {
	eachPooling(t, true, func(t *testing.T, s *harness.Shop, _ *sql.DB) {
		for _, db := range []*sql.DB{s.DB, s.Fenced(t, s.Source)} {
			s.Exec(t, "DROP TABLE IF EXISTS fencing_tokens")
			store, err := tokens.New(db)
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if err := errors.Join(store.Setup(ctx), store.Setup(ctx), store.Ensure(ctx, "books", "pens")); err != nil {
				t.Fatal(err)
			}
			for want := int64(1); want <= 3; want++ {
				if token, err := store.Issue(ctx, "books"); err != nil || token.Value != want {
					t.Errorf("issued %v, %v; want %d", token, err, want)
				}
			}
			if err := store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: 40}); err != nil {
				t.Error(err)
			}
			harness.WantError(t, store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: 39}), sqlfence.ErrStale)
			if token, err := store.Current(ctx, "pens"); err != nil || token.Value != 40 {
				t.Errorf("current: %v, %v", token, err)
			}
		}
	})
}
