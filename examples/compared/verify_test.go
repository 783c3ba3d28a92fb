package main

import (
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	for name, dsn := range map[string]string{"SQLite": "", "PostgreSQL": os.Getenv("SQLFENCE_POSTGRES_DSN")} {
		t.Run(name, func(t *testing.T) {
			if name == "PostgreSQL" && dsn == "" {
				t.Skip("SQLFENCE_POSTGRES_DSN is not set")
			}
			open := openSQLite
			if dsn != "" {
				open = openPostgres
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
