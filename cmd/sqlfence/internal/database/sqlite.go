package database

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver sqlite, which needs no C compiler

	"github.com/sqlfence/sqlfence"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

var sqlite = &Database{
	Name:    "sqlite",
	schemes: []string{"sqlite:"},
	driver:  "sqlite",
	nowhere: ":memory:",
	Dialect: sqlfence.SQLite,
	Text:    lite.Text,
	parse:   parseSQLite,
	LaterFiles: map[string]string{
		"00004_ledger_triggers.up.sql": "SELECT 1 WHERE (SELECT COUNT(*) FROM sqlite_master " +
			"WHERE type = 'trigger' AND name LIKE 'sqlfence_ledger_%' AND " +
			"name NOT LIKE '" + sqltext.IssuersPrefix + "%') >= " +
			strconv.Itoa(len(lite.Text.Capabilities().LedgerTriggers)),
	},
}

// parseSQLite turns sqlite:PATH?PARAMETERS into an SQLite URI, by default with a busy timeout of 5 s. Unless create is
// set, a missing file is an error, because SQLite would create an empty database for a mistyped path.
func parseSQLite(dsn string, create bool) (string, []string, error) {
	path, parameters, _ := strings.Cut(strings.TrimPrefix(dsn, "sqlite:"), "?")
	path, err := url.PathUnescape(strings.TrimPrefix(path, "//"))
	if err != nil {
		return "", nil, errURL
	}
	query, err := url.ParseQuery(parameters)
	if err != nil {
		return "", nil, errURL
	}
	if err := lookAt(path, create || query.Has("mode")); err != nil {
		return "", nil, err
	}
	if !query.Has("mode") && !create {
		query.Set("mode", "rw")
	}
	if !strings.Contains(strings.Join(query["_pragma"], ""), "busy_timeout") {
		query.Add("_pragma", "busy_timeout(5000)")
	}
	var secrets []string
	for key, values := range query {
		if isSecret(key) {
			secrets = append(secrets, values...)
		}
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode(), secrets, nil
}

// lookAt refuses a path that SQLite would fail at without saying why.
func lookAt(path string, create bool) error {
	if path == "" {
		return errors.New("the data source name has no file after sqlite:, as in sqlite:books.db")
	}
	found, err := os.Stat(path)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case path == ":memory:", err != nil && !missing:
	case err == nil && found.IsDir():
		return fmt.Errorf("%s is a folder, want a file", path)
	case missing && !create:
		return fmt.Errorf("there is no database %s; sqlfence init --apply makes one", path)
	case missing:
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no folder %s for the database", filepath.Dir(path))
		}
	}
	return nil
}
