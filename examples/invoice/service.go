package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// A service holds invoices and the locks on them.
type service struct {
	db       *sql.DB
	manager  *rowlock.Manager
	invoices *rowlock.Table
	ttl      time.Duration // of a lock
}

// newService returns the service on db, and creates missing tables.
func newService(ctx context.Context, db *sql.DB, ttl time.Duration) (*service, error) {
	if _, err := db.ExecContext(sqlfence.Bypass(ctx, "create the invoices"), schema); err != nil {
		return nil, fmt.Errorf("create invoices: %w", err)
	}
	manager, err := rowlock.NewManager(db)
	if err != nil {
		return nil, err
	}
	if err := manager.Setup(ctx); err != nil {
		return nil, err
	}
	invoices, err := rowlock.New(db, "invoice", rowlock.WithTTL(ttl), rowlock.WithManager(manager))
	if err != nil {
		return nil, err
	}
	if err := invoices.Check(ctx); err != nil {
		return nil, err
	}
	// This is the only process that serves them, and no user is logged in yet.
	if _, err := manager.FreeAll(ctx); err != nil {
		return nil, err
	}
	return &service{db, manager, invoices, ttl}, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.list)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	mux.HandleFunc("GET /invoices/{id}", s.asUser(s.show))
	mux.HandleFunc("POST /invoices/{id}/edit", s.asUser(s.edit))
	mux.HandleFunc("POST /invoices/{id}/save", s.asUser(s.save))
	mux.HandleFunc("POST /invoices/{id}/cancel", s.asUser(s.cancel))
	return http.NewCrossOriginProtection().Handler(mux)
}

// asUser calls next for a user who has given a name, with the invoice's id. A real application would authenticate the
// user.
func (s *service) asUser(next func(w http.ResponseWriter, r *http.Request, id int64, user string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user := userOf(r)
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		switch {
		case user == "":
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case err != nil:
			http.NotFound(w, r)
		default:
			next(w, r.WithContext(sqlfence.WithEditor(r.Context(), user)), id, user)
		}
	}
}

func userOf(r *http.Request) string {
	cookie, err := r.Cookie("user")
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (s *service) list(w http.ResponseWriter, r *http.Request) {
	locks, err := s.manager.Locks(r.Context(), rowlock.Filter{Table: "invoice"})
	invoices, err2 := loadAll(r.Context(), s.db)
	if err := errors.Join(err, err2); err != nil {
		s.fail(w, r, 0, err)
		return
	}
	render(w, http.StatusOK, "list", page{User: userOf(r), Invoices: invoices, Locks: locks})
}

func (s *service) login(w http.ResponseWriter, r *http.Request) {
	user := r.PostFormValue("user")
	if user == "" || !plain(user) {
		http.Error(w, "a name is made of letters", http.StatusBadRequest)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "user", Value: user, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func plain(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// logout releases all locks of the user.
func (s *service) logout(w http.ResponseWriter, r *http.Request) {
	if user := userOf(r); user != "" {
		if _, err := s.manager.FreeUser(r.Context(), user); err != nil {
			s.fail(w, r, 0, err)
			return
		}
	}
	http.SetCookie(w, &http.Cookie{Name: "user", Path: "/", MaxAge: -1})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// fail answers a request that failed, unless the cause is another user.
func (s *service) fail(w http.ResponseWriter, r *http.Request, id int64, err error) {
	if errors.Is(err, sqlfence.ErrGone) {
		var deleted bool
		if deleted, err = existed(r.Context(), s.db, id); err == nil {
			s.gone(w, r, id, deleted)
			return
		}
	}
	// The error's text is for the operator, not for the client.
	slog.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}

// gone reports a missing invoice, and shows the submitted form.
func (s *service) gone(w http.ResponseWriter, r *http.Request, id int64, deleted bool) {
	d, _ := fromForm(r)
	render(w, http.StatusNotFound, "gone", page{User: userOf(r), ID: id, Form: d, Deleted: deleted})
}
