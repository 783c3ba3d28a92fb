package coverage

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// caller returns the place in the program that has sent the statement, such as store/books.go:42. It returns "" if the
// stack has no function of the program, for example because a goroutine of database/sql closes the rows.
func (c *Collector) caller() string {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])])
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !c.skips(frame) {
			dir, file := filepath.Split(frame.File)
			return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), file, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// skips reports whether a function doesn't belong to the program but to code between the program and the database: to
// sqlfence (except its tests), to a module in the module cache (its path has an @v), or to a vendor folder.
func (c *Collector) skips(frame runtime.Frame) bool {
	path := packageOf(frame.Function)
	own, isOwn := strings.CutPrefix(path, "github.com/sqlfence/sqlfence")
	return slices.Contains(between, path) || isOwn && slices.Contains(ownBetween, own) ||
		strings.Contains(frame.File, "@v") || strings.Contains(frame.File, "/vendor/") ||
		slices.ContainsFunc(c.skip, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

// packageOf returns the path of a function's package: the text before the first dot after the last slash.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/')
	if dot := strings.IndexByte(function[slash+1:], '.'); dot >= 0 {
		return function[:slash+1+dot]
	}
	return function
}

// between are the packages of the standard library that call a program's functions.
var between = []string{"database/sql", "runtime", "reflect", "sync", "context", "iter", "slices", "maps", "testing",
	"net/http"}

// ownBetween are the packages of sqlfence between a program and the driver.
var ownBetween = []string{"", "/internal/core", "/fencepgx", "/coverage", "/tokens", "/lease", "/rowlock"}
