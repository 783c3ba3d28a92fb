package main

import (
	"bytes"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	for _, name := range []string{"sqlite", "pgx"} {
		t.Run(name, func(t *testing.T) {
			dsn := ""
			if name == "pgx" {
				dsn = servers.PostgresURL(t)
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
