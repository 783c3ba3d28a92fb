// Tests of package fencehttp: one program holds leases and sends requests, and an HTTP service writes to the database.
package fencehttp_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencehttp"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A service sets prices. It holds no lease.
type service struct {
	db     *sql.DB
	client *http.Client
	url    string
}

// newService starts a service on the shop's books. The service is fenced unless db is the shop's plain database.
func newService(t *testing.T, db *sql.DB) *service {
	t.Helper()
	signer, err := fencehttp.NewSigner([][]byte{[]byte(strings.Repeat("s", fencehttp.MinSecret))})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{db: db}
	server := httptest.NewServer(fencehttp.Handler(s, signer))
	t.Cleanup(server.Close)
	s.client, s.url = &http.Client{Transport: fencehttp.Transport(server.Client().Transport, signer)}, server.URL
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, err := s.db.ExecContext(r.Context(), "UPDATE books SET price = "+r.URL.Query().Get("price")+" WHERE id = 1")
	if err != nil && !fencehttp.WriteError(w, err) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// set requests a price from the service, and returns the service's refusal as an error.
func (s *service) set(ctx context.Context, t *testing.T, price int, match ...string) error {
	t.Helper()
	// The request isn't cancelled with the lease's context, because a paused holder doesn't notice the end of its
	// lease.
	r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPut, fmt.Sprint(s.url, "/?price=", price), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["If-Match"] = match
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := fencehttp.CheckResponse(answer); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// A holder sends its request after another holder has taken over. The fenced service must refuse the write.
func TestPausedHolder(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
		leases, err := lease.New(sh.DB)
		if err != nil {
			t.Fatal(err)
		}
		if err := leases.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, unfenced := newService(t, sh.DB), newService(t, sh.Plain)
		sh.Exec(t, "INSERT INTO books (id, price, fence_token) VALUES (1, 10, 0)")
		hold := func() (held context.Context) {
			t.Helper()
			if err := leases.Do(t.Context(), "books", func(ctx context.Context) error {
				held = ctx
				return s.set(ctx, t, 20)
			}); err != nil {
				t.Fatal(err)
			}
			return held
		}
		first, second := hold(), hold()
		for what, tt := range map[string]struct {
			ctx  context.Context
			want error
		}{
			"replaced":        {first, sqlfence.ErrStale},
			"never issued":    {sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 1 << 40}), sqlfence.ErrNotIssued},
			"without a token": {t.Context(), sqlfence.ErrNoFence},
		} {
			if err := s.set(tt.ctx, t, 30); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if price := priceOf(t, sh); price != 20 {
			t.Errorf("the price is %d", price)
		}
		if err := s.set(second, t, 40); err != nil {
			t.Error("the holder:", err)
		}
		if err := unfenced.set(first, t, 50); err != nil || priceOf(t, sh) != 50 {
			t.Error("without the fence the late write lands:", err)
		}
	})
}

// A client sends the row version that it has read as If-Match.
func TestIfMatch(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.Serial("writer", sqlfence.Required()))
		s := newService(t, sh.DB)
		sh.Exec(t, "INSERT INTO books (id, price, writer) VALUES (1, 10, 7)")
		if err := s.set(t.Context(), t, 20); !errors.Is(err, sqlfence.ErrNoSerial) {
			t.Error("without:", err)
		}
		if err := s.set(t.Context(), t, 20, fencehttp.ETag(7)); err != nil {
			t.Error(err)
		}
		if err := s.set(t.Context(), t, 30, fencehttp.ETag(7)); !errors.Is(err, sqlfence.ErrConflict) || priceOf(t, sh) != 20 {
			t.Error("an old version:", err)
		}
		sh.Exec(t, "DELETE FROM books")
		if err := s.set(t.Context(), t, 30, fencehttp.ETag(8)); !errors.Is(err, sqlfence.ErrGone) {
			t.Error("no row:", err)
		}
	})
}

func priceOf(t *testing.T, sh *harness.Shop) (price int) {
	t.Helper()
	if err := sh.Plain.QueryRowContext(t.Context(), "SELECT price FROM books WHERE id = 1").Scan(&price); err != nil {
		t.Fatal(err)
	}
	return price
}
