package main

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			open, dsn := openSQLite, ""
			if name == "PostgreSQL" {
				open, dsn = openPostgres, servers.PostgresURL(t)
			}
			d, err := open(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer d.drop()
			for _, a := range d.approaches {
				if !strings.HasPrefix(a.name, "sqlfence") {
					continue
				}
				if err := d.create(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				db, err := a.open(d)
				if err != nil {
					t.Fatal(err)
				}
				verified.Nothing(t, db)
				_ = db.Close()
			}
		})
	}
}
