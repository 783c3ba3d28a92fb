//go:build !unix

package child

import (
	"os"
	"os/exec"
)

const groups = false

func prepare(*exec.Cmd, bool) {}

func signalGroup(int, os.Signal) {}

func groupLives(int) bool { return false }

func leads(int) bool { return false }

func inOurGroup(int) bool { return false }

func killedBy(*os.ProcessState) (status int, ok bool) { return 0, false }

// Signals are the signals that are passed on to a command.
var Signals = []os.Signal{os.Interrupt}
