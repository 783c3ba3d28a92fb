//go:build unix

package main

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	servers.Each(t, func(t *testing.T, dsn string) {
		source, err := scratch.New(t.Context(), "worker", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Drop()
		bare, err := create(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		defer bare.Close()
		db, err := sqlfence.Open(source.Driver, source.DSN, sqlfence.WithTable("jobs"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		verified.Nothing(t, db)
	})
}
