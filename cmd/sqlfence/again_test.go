package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// runScripts runs each script of testdata/script as a subtest, in a fresh database. If a script fails after a
// standstill of the machine or the server, it is run again from its beginning: during a standstill sqlfence rightly
// gives up steps, such as the release of a lease.
func runScripts(t *testing.T, p testscript.Params, dialect string, fresh func(t testing.TB) (dsn string)) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			p := p
			p.Files = []string{file}
			for try := 1; ; try++ {
				dsn := fresh(t)
				p.Setup = func(e *testscript.Env) error {
					e.Setenv("SQLFENCE_DSN", dsn)
					e.Setenv("DIALECT", dialect)
					return nil
				}
				longest := watch(t, dsn)
				a := &attempt{T: t}
				testscript.RunT(a, p)
				pause := longest()
				if !a.failed {
					return
				}
				if pause < standstill || try == 10 {
					t.Fatalf("failed at try %d, while nothing stood still for more than %v", try, pause)
				}
				t.Logf("once more, because something stood still for %v", pause)
			}
		})
	}
}

// An attempt is a test of one script, which may fail without the test failing.
type attempt struct {
	*testing.T
	failed bool
}

func (a *attempt) Parallel() {}

func (a *attempt) Run(_ string, f func(testscript.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(a)
	}()
	<-done
}

func (a *attempt) FailNow() {
	a.failed = true
	runtime.Goexit()
}

func (a *attempt) Fatal(args ...any) {
	a.Log(args...)
	a.FailNow()
}

func (a *attempt) Verbose() bool { return testing.Verbose() }

// standstill is the shortest pause that a script may fail by.
const standstill = 250 * time.Millisecond

// watch measures pauses of this process and of dsn's server. The returned function ends the measurement, and returns
// the longest pause.
func watch(t *testing.T, dsn string) (longest func() time.Duration) {
	source, err := database.Parse(dsn, false)
	if err != nil {
		t.Fatal(err)
	}
	db, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan time.Duration)
	go func() {
		defer db.Close()
		var most time.Duration
		for {
			const pause = standstill / 10
			before := time.Now()
			err := db.Ping()
			select {
			case <-end:
			case <-time.After(pause):
			}
			if most = max(most, time.Since(before)-pause); err != nil {
				most = max(most, standstill) // it refuses connections
			}
			select {
			case <-end:
				ended <- most
				return
			default:
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-ended
	}
}
