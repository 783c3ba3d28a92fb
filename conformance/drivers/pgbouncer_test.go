//go:build linux

package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// Behind pgbouncer in transaction mode a session ends with each transaction, and
// the next may be on another connection. Guards need nothing beyond: their locks
// are the transaction's.

// poolings are the ways to go through pgbouncer. What a driver prepares on its
// own must be in one message with its execution where clients share connections;
// the others work only as long as a client is alone.
var poolings = []struct {
	name, base, params string
	shared             bool
}{
	{"pq", "pq", "", false},
	{"pq binary_parameters", "pq", "&binary_parameters=yes", true},
	{"pgx", "pgx", "", false},
	{"pgx describe_exec", "pgx", "&default_query_exec_mode=describe_exec", false},
	{"pgx cache_describe", "pgx", "&default_query_exec_mode=cache_describe", true},
	{"pgx exec", "pgx", "&default_query_exec_mode=exec", true},
	{"pgx simple_protocol", "pgx", "&default_query_exec_mode=simple_protocol", true},
}

// eachPooling runs test with a shop whose db goes through pgbouncer, and the
// base driver alone on the same way. Only those for shared connections, if shared.
func eachPooling(t *testing.T, shared bool, test func(t *testing.T, s *shop, raw *sql.DB)) {
	t.Helper()
	postgresDSN(t)
	for _, p := range poolings {
		if shared && !p.shared {
			continue
		}
		b := bases[slices.IndexFunc(bases, func(b base) bool { return b.name == p.base })]
		for _, fence := range fences {
			t.Run(p.name+" "+fence.name, func(t *testing.T) {
				s := newShop(t, b, fence.rule)
				s.source = behindPgbouncer(t, s.source) + p.params
				s.db = b.fenced(t, s.source, books(fence.rule))
				test(t, s, b.raw(t, s.source))
			})
		}
	}
}

// Whatever goes through pgbouncer without sqlfence goes through with it, if the
// token is good, and is refused if not.
func TestPgbouncerForms(t *testing.T) {
	eachPooling(t, false, func(t *testing.T, s *shop, raw *sql.DB) {
		raw.SetMaxOpenConns(1)
		s.db.SetMaxOpenConns(1)
		for _, f := range forms {
			for _, inTx := range []bool{false, true} {
				send := func(ctx context.Context, db *sql.DB, w write) (n int64, err error) {
					if !inTx {
						return f.run(ctx, db, w)
					}
					err = (&shop{db: db}).inTx(ctx, func(tx *sql.Tx) error {
						n, err = f.run(ctx, tx, w)
						return err
					})
					return n, err
				}
				for _, w := range slices.Concat(rowWrites, freshInserts) {
					name := fmt.Sprintf("%s by %s, in a transaction: %v", w.name, f.name, inTx)
					s.reset(t, 9)
					nRaw, errRaw := send(t.Context(), raw, w)
					if errRaw != nil {
						t.Logf("%s: the base driver alone: %v", name, errRaw)
					}
					want := s.state(t, false)
					s.reset(t, 9)
					n, err := send(holding(t, 9), s.db, w)
					if got := s.state(t, false); n != nRaw || got != want || said(err) != said(errRaw) {
						t.Errorf("%s: %d rows, %v, left %s\nalone: %d rows, %v, left %s", name, n, err, got, nRaw, errRaw, want)
					}
					s.reset(t, 9)
					unchanged := s.unchanged(t)
					_, err = send(t.Context(), s.db, w)
					wantError(t, err, sqlfence.ErrNoFence)
					// A row fence has nothing to compare a new row with.
					if _, err = send(holding(t, 8), s.db, w); slices.ContainsFunc(rowWrites, func(r write) bool { return r.name == w.name }) {
						wantStale(t, err, 8, 9)
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

// Clients that are more than the connections take tokens and write. The price
// that stays is that of the highest token that got through.
func TestPgbouncerClients(t *testing.T) {
	eachPooling(t, true, func(t *testing.T, s *shop, raw *sql.DB) {
		const clients, rounds = 16, 8
		s.reset(t, 0)
		s.db.SetMaxOpenConns(clients)
		s.db.SetMaxIdleConns(clients)
		store, err := tokens.New(s.db)
		if err != nil {
			t.Fatal(err)
		}
		shared := []string{"exec", "exec without arguments", "query", "query row"}
		inTx := append(shared, "prepared exec", "prepared query")

		var wg sync.WaitGroup
		var mu sync.Mutex
		var highest int64
		var refused int
		others := make(chan struct{}) // closed when client 1 is done
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
						<-others // this one will be stale
					}
					ctx := sqlfence.WithFence(t.Context(), token)
					w := write{query: "UPDATE books SET price = $1 WHERE id = $2", args: []any{token.Value, 1}}
					var n int64
					if i := client + round; i%2 == 0 {
						n, err = formNamed(shared[i/2%len(shared)]).run(ctx, s.db, w)
					} else {
						err = s.inTx(ctx, func(tx *sql.Tx) error {
							n, err = formNamed(inTx[i/2%len(inTx)]).run(ctx, tx, w)
							return err
						})
					}
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

func formNamed(name string) form {
	return forms[slices.IndexFunc(forms, func(f form) bool { return f.name == name })]
}

// serverSessions counts the different sessions that as many clients meet as are
// connected at once.
func serverSessions(t *testing.T, s *shop) int {
	t.Helper()
	seen := make(map[int]bool)
	for range 4 * pgbouncerConns {
		c, err := s.db.Conn(t.Context())
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
	eachPooling(t, true, func(t *testing.T, s *shop, _ *sql.DB) {
		for _, db := range []*sql.DB{s.db, s.fenced(t, s.source)} {
			s.exec(t, "DROP TABLE IF EXISTS fencing_tokens")
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
			wantError(t, store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: 39}), sqlfence.ErrStale)
			if token, err := store.Current(ctx, "pens"); err != nil || token.Value != 40 {
				t.Errorf("current: %v, %v", token, err)
			}
		}
	})
}
