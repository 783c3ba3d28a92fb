package main

import (
	"database/sql"
	"errors"
	"log/slog"
	"net/http"

	"github.com/sqlfence/sqlfence"
)

// withFence puts the request's tokens into its context, where sqlfence finds them. The ledger decides whether the
// tokens were issued. A request may carry several tokens, one for each resource. A request without a token is passed
// on, because only a write on a guarded table needs a token.
func withFence(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		for _, text := range r.Header.Values(tokenHeader) {
			token, err := sqlfence.ParseToken(text)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			ctx = sqlfence.WithFence(ctx, token)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// fail answers a request after its statement has failed.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, sqlfence.ErrStale):
		// Someone newer has taken over; the same token can't succeed again.
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, sqlfence.ErrNotIssued), errors.Is(err, sqlfence.ErrUnknownName):
		http.Error(w, "the token in the header "+tokenHeader+" was not issued here", http.StatusForbidden)
	case errors.Is(err, sqlfence.ErrNoFence):
		http.Error(w, "this write needs a token for the resource in the header "+tokenHeader, http.StatusPreconditionRequired)
	case errors.Is(err, sql.ErrNoRows):
		http.NotFound(w, r)
	default:
		// The error's text is for the operator, not for the client.
		slog.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}
