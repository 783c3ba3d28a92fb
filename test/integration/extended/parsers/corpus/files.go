package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A file is one of a module's that may hold SQL.
type file struct {
	name      string // in the module, with slashes
	text      string
	migration bool // it changes the schema, and the rows with it
}

// maxFile is the size above which a file isn't read: generated, or data.
const maxFile = 4 << 20

// readFiles returns the module's Go and SQL files: not those of tests and examples, copies
// of other modules, and modules inside of it.
func readFiles(dir string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != dir && isOutside(name, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(name)
		if ext != ".go" && ext != ".sql" || strings.HasSuffix(name, "_test.go") || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxFile {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		within = filepath.ToSlash(within)
		files = append(files, file{within, string(text), isMigration(within)})
		return nil
	})
	return files, err
}

// outside are folders with what is no part of the program.
var outside = []string{"vendor", "third_party", "node_modules", "testdata", "test", "tests", "testing", "testutil",
	"testutils", "sqltest", "testrig", "mocks", "e2e", "integration", "examples", "example", "_examples", "sample",
	"samples", "benchmark", "benchmarks", "docs", "hack"}

func isOutside(dir, name string) bool {
	if slices.Contains(outside, strings.ToLower(name)) || strings.HasPrefix(name, ".") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

var upgrade = regexp.MustCompile(`(?i)from_?v\d`)

// isMigration holds for a file or a function whose path or name calls it one.
func isMigration(name string) bool {
	if upgrade.MatchString(name) {
		return true
	}
	for _, word := range words(name) {
		if slices.Contains([]string{"migration", "migrations", "migrate", "migrator", "migrates", "migratable", "schema", "schemas", "upgrade", "upgrades", "updates", "patches", "seed", "seeds", "fixtures", "delta", "deltas"}, word) {
			return true
		}
	}
	return strings.HasSuffix(name, ".up.sql") || strings.HasSuffix(name, ".down.sql")
}

// isTest holds for a file or a function that is there for tests.
func isTest(name string) bool {
	return slices.ContainsFunc(words(name), func(w string) bool { return w == "test" || w == "tests" || w == "testing" })
}

// databasesOf narrows what a module supports to what a file's path and the names around
// a statement say. Nothing remains for a statement of another database.
func databasesOf(m module, file string, names ...string) set {
	var named set
	other := false
	for _, name := range append(names, file) {
		for _, word := range words(strings.TrimSuffix(name, path.Ext(name))) {
			of, isOther := namedIn(word)
			named, other = named.or(of), other || isOther
		}
	}
	switch {
	case named != set{}:
		return named.and(m.supports(file))
	case other:
		return set{}
	}
	return m.supports(file)
}

// words splits a name at what isn't a letter or a digit, and where camel case does.
func words(name string) (words []string) {
	var word []byte
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	for i := range len(name) {
		c := name[i]
		letter, upper := c|0x20 >= 'a' && c|0x20 <= 'z', c >= 'A' && c <= 'Z'
		switch {
		case !letter && (c < '0' || c > '9'):
			flush()
			continue
		case upper && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z':
			flush()
		}
		word = append(word, c)
	}
	flush()
	return words
}
