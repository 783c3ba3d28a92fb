package main

import (
	"context"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, fresh func(context.Context) (*source, error)) {
		err := withService(t.Context(), fresh, fenced, func(s *service) error {
			token, err := s.takeToken(t.Context())
			if err == nil {
				_, err = s.setPrice(t.Context(), token, 20)
			}
			verified.Nothing(t, s.db)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
