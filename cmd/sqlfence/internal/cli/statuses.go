package cli

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/lease"
)

// The exit statuses of the program. `run` exits with its command's status unless run itself fails.
const (
	statusDone     = 0
	statusFailed   = 1
	statusUsage    = 2
	statusNo       = 3 // the answer is no
	statusNotSetUp = 4

	statusHeld       = 75 // run: another holder has the lease
	statusLost       = 76 // run: the lease was lost, and the command ended
	statusRunFailed  = 125
	statusNoExec     = 126 // run: the command can't be executed
	statusNotFound   = 127 // run: there is no such command
	statusSignalBase = 128
)

// errNo reports that the answer is no, and that the answer has been written.
var errNo = errors.New("no")

// no ends a command with the answer no; err is the error of writing the answer.
func no(err error) error {
	if err != nil {
		return err
	}
	return errNo
}

type usageError struct{ err error }

func usage(err error) error { return &usageError{err} }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// A signalError reports that a signal has ended this program.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "ended by signal: " + e.signal.String() }

// An exitError has the status of a command that has ended, or why it can't be run.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func notRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &exitError{statusNotFound, err}
	}
	return &exitError{statusNoExec, err}
}

type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

// message returns an error's text; empty if the answer or the command has reported the error.
func message(err error) string {
	var signal *signalError
	var lacks *sqlfence.SetupError
	switch {
	case err == nil, errors.Is(err, errNo), errors.As(err, &signal), errors.As(err, new(*reportedError)):
		return ""
	case errors.As(err, &lacks):
		return strings.Replace(err.Error(), lacks.Error(), shortly(lacks), 1)
	case dberr.SQLState(err) == noDatabase:
		return err.Error() + "; the data source name ends with the database's name, as in mysql://user@host/shop"
	}
	return err.Error()
}

// shortly describes in one line the object that is missing.
func shortly(lacks *sqlfence.SetupError) string {
	if remedy, _, _ := strings.Cut(lacks.Remedy, "; "); strings.HasPrefix(remedy, "there is") {
		return "the database has no " + lacks.Missing + " (" + lacks.Err.Error() + "; " +
			strings.Replace(remedy, "(sqlfence.WithSchema, sqlfence --schema)", "by --schema", 1) +
			"); sqlfence init creates one of your own, if that is another application's, with --apply"
	}
	if strings.HasPrefix(lacks.Missing, "table ") {
		return "the database has no " + lacks.Missing + " (" + lacks.Err.Error() +
			"); sqlfence init prints the SQL of " +
			"sqlfence's tables, and creates them with --apply"
	}
	return "missing " + lacks.Missing + " (" + lacks.Err.Error() + "); the owner may run: " + lacks.SQL
}

// noDatabase is the code of the errors that a database doesn't exist, and that none was named.
const noDatabase = "3D000"

func (a *app) status(err error) int {
	var signal *signalError
	var exit *exitError
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &exit):
		return exit.status
	case errors.As(err, &signal):
		if number, ok := signal.signal.(syscall.Signal); ok {
			return statusSignalBase + int(number)
		}
		return statusFailed
	case a.runs:
		return runStatus(err)
	case errors.As(err, new(*usageError)), errors.Is(err, sqlfence.ErrInvalid):
		return statusUsage
	case errors.Is(err, errNo):
		return statusNo
	case errors.Is(err, sqlfence.ErrNotSetUp):
		return statusNotSetUp
	}
	return statusFailed
}

func runStatus(err error) int {
	switch {
	case errors.Is(err, lease.ErrHeld):
		return statusHeld
	case errors.Is(err, lease.ErrLeaseLost):
		return statusLost
	}
	return statusRunFailed
}
