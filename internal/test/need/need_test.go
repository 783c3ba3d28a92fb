package need

import (
	"runtime"
	"testing"
)

func TestListRequiresNames(t *testing.T) {
	for _, c := range []struct {
		name, variable string
		want           bool
	}{
		{"postgres", "", false},
		{"postgres", "mysql postgres", true},
		{"mysql", "postgres", false},
		{"mysql", "all", true},
		{"mysql", "all -tidb", true},
		{"tidb", "all -litestream -tidb", false},
	} {
		if got := required(c.name, c.variable); got != c.want {
			t.Errorf("%q requires %s: %v, want %v", c.variable, c.name, got, c.want)
		}
	}
}

// A test without its program is skipped, or fails if SQLFENCE_REQUIRE requires the program.
func TestMissingProgramSkipsOrFails(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	for variable, want := range map[string]string{"": "skipped", "all": "failed", "all -no-such-program": "skipped"} {
		t.Setenv("SQLFENCE_REQUIRE", variable)
		r := &recorder{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Program(r, "no-such-program", "nor-this-one")
		}()
		<-ended
		if r.ended != want {
			t.Errorf("with %q the test is %q, want %q", variable, r.ended, want)
		}
	}
}

// A recorder is a testing.TB that records how the test ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(...any) {
	r.ended = "skipped"
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) {
	r.ended = "failed"
	runtime.Goexit()
}
