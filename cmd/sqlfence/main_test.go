package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sqlfence": main})
}

// Each script of testdata/script runs on each kind of database, in an empty database.
func TestScripts(t *testing.T) {
	for name, fresh := range map[string]func(t testing.TB) (dsn string){
		"sqlite": freshSQLite, "postgres": freshPostgres, "mysql": freshMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			runScripts(t, testscript.Params{
				RequireExplicitExec: true,
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status, "await": await, "awaittext": awaitText, "sql": runSQL},
				Condition:           func(condition string) (bool, error) { return condition == name, nil },
			}, name, fresh)
		})
	}
}

// These scripts run without a database.
func TestPlainScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/plain",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}
