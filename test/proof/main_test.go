//go:build linux

package proof

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/others"
	"github.com/sqlfence/sqlfence/test/proof/ours"
)

var (
	length = flag.Duration("for", 6*time.Minute, "how long the storms on sqlfence last, all of them together")
	seed   = flag.Uint64("seed", 1, "where the storms begin")
	rate   = flag.Float64("faults", 0.3, "how many faults there are: 1 is about 20 a second where there is a network")
	docs   = flag.String("write", "", "folder of the docs, which get the results; none by default")
	tables = flag.String("tables", "", "tables of the storms on sqlfence, separated by commas; all by default")
	only   = flag.String("databases", "", "databases of the storms, separated by commas; all by default")
)

// asFence is an environment variable of the processes that run a fence. They run this test program.
const asFence = "SQLFENCE_PROOF_FENCE"

func TestMain(m *testing.M) {
	switch name := os.Getenv(asFence); name {
	case "":
		harness.Main(m)
	case "sqlfence", observed:
		ours.Main(name == observed)
	default:
		f, ok := others.Find(name)
		if !ok {
			os.Exit(2)
		}
		others.Main(f)
	}
}

// observed is the name of the fence that uses sqlfence in Observe mode.
const observed = "sqlfence, observed"

// inProcess returns a fence that is part of this test program.
func inProcess(name string, lanes int) fence.Program {
	return fence.Program{Name: name, Command: []string{os.Args[0]}, Env: []string{asFence + "=" + name}, Lanes: lanes}
}
