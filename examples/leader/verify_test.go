package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "", "pgx": os.Getenv("SQLFENCE_POSTGRES_DSN")} {
		t.Run(name, func(t *testing.T) {
			if name == "pgx" && dsn == "" {
				t.Skip("SQLFENCE_POSTGRES_DSN is not set")
			}
			source, err := scratch.New(t.Context(), "leader", dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer source.Drop()
			if err := create(t.Context(), source); err != nil {
				t.Fatal(err)
			}
			c, err := newCandidate(t.Context(), "A", source)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			if _, err := c.wins(t.Context(), new(bytes.Buffer)); err != nil {
				t.Fatal(err)
			}
			c.setPrice(new(bytes.Buffer), 20)
			verified.Nothing(t, c.db)
		})
	}
}
