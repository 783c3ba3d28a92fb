package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// tokenHeader carries a token both ways, as "books:000000000000042".
const tokenHeader = "Fencing-Token"

// resources are the names that tokens are issued for, so that callers can't fill the ledger with arbitrary names.
var resources = []string{"books"}

// A service holds books. None of its statements mentions a token.
type service struct {
	db     *sql.DB
	tokens *tokens.Store
}

// openDB opens the database with the table books registered. In addition to RowFence it has Ledger, because a client
// can make up a token in a header, and only the ledger knows the issued tokens.
func openDB(driver, dsn string) (*sql.DB, error) {
	return sqlfence.Open(driver, dsn,
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
}

// newService returns the service on db, and creates missing tables.
func newService(ctx context.Context, db *sql.DB) (*service, error) {
	store, err := tokens.New(db)
	if err != nil {
		return nil, err
	}
	if err := store.Setup(ctx); err != nil {
		return nil, err
	}
	// At start-up no process holds a token yet; the first row comes without one.
	setup := sqlfence.Bypass(ctx, "create the first book")
	for _, stmt := range []string{
		`CREATE TABLE IF NOT EXISTS books (
			id          bigint PRIMARY KEY,
			name        text   NOT NULL,
			price       bigint NOT NULL,
			fence_token bigint NOT NULL DEFAULT 0
		)`,
		`INSERT INTO books (id, name, price) VALUES (1, 'Fencing for beginners', 10) ON CONFLICT DO NOTHING`,
	} {
		if _, err := db.ExecContext(setup, stmt); err != nil {
			return nil, fmt.Errorf("create books: %w", err)
		}
	}
	return &service{db, store}, nil
}

// handler returns the service's routes. The middleware wraps all routes, so a new route that writes is fenced without
// additional code.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tokens/{name}", s.issueToken)
	mux.HandleFunc("GET /books/{id}", s.getBook)
	mux.HandleFunc("PUT /books/{id}/price", s.setPrice)
	return withFence(mux)
}

type book struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Price int64  `json:"price"`
}

func (s *service) getBook(w http.ResponseWriter, r *http.Request) {
	id, ok := bookID(w, r)
	if !ok {
		return
	}
	b := book{ID: id}
	err := s.db.QueryRowContext(r.Context(), `SELECT name, price FROM books WHERE id = $1`, id).Scan(&b.Name, &b.Price)
	if err != nil {
		fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, b)
}

func (s *service) setPrice(w http.ResponseWriter, r *http.Request) {
	id, ok := bookID(w, r)
	if !ok {
		return
	}
	var body struct {
		Price *int64 `json:"price"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&body); err != nil || body.Price == nil {
		http.Error(w, `want a body like {"price": 30}`, http.StatusBadRequest)
		return
	}
	result, err := s.db.ExecContext(r.Context(), `UPDATE books SET price = $1 WHERE id = $2`, *body.Price, id)
	if err != nil {
		fail(w, r, err)
		return
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		fail(w, r, err)
		return
	case n == 0: // no such book: a stale token would have been an error
		fail(w, r, sql.ErrNoRows)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *service) issueToken(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !slices.Contains(resources, name) {
		http.NotFound(w, r)
		return
	}
	token, err := s.tokens.Issue(r.Context(), name)
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set(tokenHeader, token.String())
	reply(w, http.StatusCreated, map[string]sqlfence.Token{"token": token})
}

func bookID(w http.ResponseWriter, r *http.Request) (int64, bool) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		http.Error(w, "a book's id is a number", http.StatusBadRequest)
	}
	return id, err == nil
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Debug("the client went away", "error", err)
	}
}
