package cli

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// A folder has migrations for one tool.
type folder struct{ dir, format string }

// The tools, by what their files are called.
const (
	golangMigrate = "golang-migrate" // 00001_name.up.sql and 00001_name.down.sql; also bun's
	goose         = "goose"          // 00001_name.sql, with both
)

func (f *folder) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "", "write the SQL into this folder of migrations, with the next numbers")
	cmd.Flags().StringVar(&f.format, "format", golangMigrate,
		"with --dir, the tool that reads the files: "+golangMigrate+" or "+goose)
	cmd.MarkFlagsMutuallyExclusive("apply", "dir")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{golangMigrate, goose},
		cobra.ShellCompDirectiveNoFileComp))
}

// writeMigrations writes changes into the folder, or prints the changes if there is no folder. It skips a change if a
// file's name in the folder has the change's title, so that the command can run again.
func (a *app) writeMigrations(f folder, changes []change) error {
	switch {
	case f.dir == "":
		return a.writeSQL(changes)
	case f.format != golangMigrate && f.format != goose:
		return usage(fmt.Errorf("--format %s: want %s or %s", f.format, golangMigrate, goose))
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	next, there := numbering(entries)
	var written []change
	var lines []string
	for _, c := range changes {
		if name, ok := there[c.title]; ok {
			lines = append(lines, visible(filepath.Join(f.dir, name))+" is there")
			continue
		}
		for _, file := range f.files(next(), c) {
			path := filepath.Join(f.dir, file.name)
			if err := create(path, file.text); err != nil {
				return err
			}
			c.Files = append(c.Files, path)
			lines = append(lines, "wrote "+visible(path))
		}
		written = append(written, c)
	}
	return a.writeChanges(written, func() { fmt.Fprintln(a.out, strings.Join(lines, "\n")) })
}

type file struct{ name, text string }

func (f *folder) files(number string, c change) []file {
	name, down := number+"_"+c.title, c.Down
	if down != "" {
		down = "-- Take the table's registration out of the programs first: they fail without the column.\n" +
			down + ";\n"
	}
	up := c.SQL
	if len(c.Statements) > 0 {
		up = "-- +goose Up\n"
		for _, s := range c.Statements {
			up += "-- +goose StatementBegin\n" + strings.TrimRight(s, "; \n\t") + ";\n-- +goose StatementEnd\n"
		}
	}
	switch {
	case f.format == goose && down != "":
		return []file{{name + ".sql", up + "-- +goose Down\n" + down}}
	case f.format == goose:
		return []file{{name + ".sql", up}}
	case down != "":
		return []file{{name + ".up.sql", up}, {name + ".down.sql", down}}
	}
	return []file{{name + ".up.sql", up}}
}

func create(path, text string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.WriteString(text)
	return err
}

// numbered is the name of a file of a migration.
var numbered = regexp.MustCompile(`^([0-9]{1,18})_(.+?)(\.up|\.down)?\.sql$`)

// numbering returns a function for the next numbers of a folder's files, with as many digits as the highest number, and
// the files by title: the part of the name after the number, without .up.sql, .down.sql or .sql.
func numbering(entries []os.DirEntry) (next func() string, there map[string]string) {
	last, digits := int64(0), 5
	there = make(map[string]string)
	for _, e := range entries {
		m := numbered.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		there[m[2]] = e.Name()
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil && n >= last {
			last, digits = n, len(m[1])
		}
	}
	return func() string {
		last++
		return fmt.Sprintf("%0*d", digits, last)
	}, there
}

// odd matches characters that a file's name must not contain.
var odd = regexp.MustCompile(`[^a-z0-9_]+`)

// titleOf turns the name of a table or a column into a part of a file's name. Different names have different titles.
func titleOf(name string) string {
	parts := strings.Split(name, ".")
	if !slices.ContainsFunc(parts, odd.MatchString) {
		return strings.Join(parts, "-")
	}
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return fmt.Sprintf("%s_%08x", strings.Trim(odd.ReplaceAllString(strings.ToLower(name), "_"), "_"), sum.Sum32())
}
