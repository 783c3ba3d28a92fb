package database

import "testing"

// FuzzParse shows that any data source name is read or refused, and hides no empty secret.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"sqlite:books.db", "sqlite://%2e?_pragma=busy_timeout(1)&mode=rw", "postgres://ada:secret@[::1]:5432/books?sslmode=disable&password=x", "postgresql://%zz",
		"mysql://ada:secret@tcp(127.0.0.1:3306)/books?tls=true", "mysql://ada:p@ss@/", "mysql://", "postgres://user=ada password='x", "postgres:///books?host=/tmp", "sqlite::memory:",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		source, err := Parse(dsn, false)
		if err != nil {
			return
		}
		NewRedactor(t.Output()).Hide(source.Secrets)
		if source.Database == nil {
			t.Errorf("%q has no database", dsn)
		}
	})
}
