package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sqlfence": main})
}

// Each script of testdata/script runs on each database, in one that is empty.
func TestScripts(t *testing.T) {
	for _, base := range []struct {
		name  string
		fresh func(t testing.TB, work string) (dsn string)
	}{
		{"sqlite", freshSQLite},
		{"postgres", freshPostgres},
		{"mysql", freshMySQL},
	} {
		t.Run(base.name, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Dir:                 "testdata/script",
				RequireExplicitExec: true,
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status, "await": await, "awaittext": awaitText, "sql": runSQL},
				Condition:           func(name string) (bool, error) { return name == base.name, nil },
				Setup: func(e *testscript.Env) error {
					e.Setenv("SQLFENCE_DSN", base.fresh(e.T().(testing.TB), e.WorkDir))
					e.Setenv("DIALECT", base.name)
					return nil
				},
			})
		})
	}
}

// Scripts that need no database.
func TestPlainScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/plain",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}
