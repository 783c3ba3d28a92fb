package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// patience is how long a test waits for an expected event on a busy machine.
const patience = 2 * time.Minute

// status N PROGRAM ARG... runs a program that has to end with a status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// await FILE... waits until files exist and have something in them.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await FILE...")
	}
	for _, name := range args {
		awaitFile(ts, name, func(text string) bool { return text != "" })
	}
}

// awaittext FILE TEXT waits until a file has a text.
func awaitText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaittext FILE TEXT")
	}
	awaitFile(ts, args[0], func(text string) bool { return strings.Contains(text, args[1]) })
}

func awaitFile(ts *testscript.TestScript, name string, ready func(text string) bool) {
	limit := time.Now().Add(patience)
	for {
		text, err := os.ReadFile(ts.MkAbs(name))
		if err == nil && ready(string(text)) {
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("%s isn't as awaited: %s, %v", name, text, err)
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
}

// sql STATEMENT... sends statements to the script's database, without sqlfence.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	source, err := database.Parse(ts.Getenv("SQLFENCE_DSN"), true)
	ts.Check(err)
	db, err := source.Open()
	ts.Check(err)
	defer db.Close()
	for _, statement := range args {
		_, err := db.Exec(statement)
		switch {
		case neg && err == nil:
			ts.Fatalf("it passed: %s", statement)
		case neg:
			ts.Logf("%v", err)
		default:
			ts.Check(err)
		}
	}
}
