package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// rootHelp is the help of the program.
const rootHelp = `Sqlfence manages the tables, tokens and leases that package sqlfence keeps in a database, shows what
becomes of a statement, and runs commands under a lease. Without --apply no command changes the schema.

The database is named by the environment variable SQLFENCE_DSN, by --dsn-file, or by --dsn without a password, because
other users of the machine see the command line:

  postgres://user:password@host/database   parameters of pgx; libpq's PGPASSWORD
                                           and .pgpass work
  mysql://user:password@host/database      MySQL and MariaDB, with parameters of
                                           go-sql-driver/mysql, and socket=PATH
  sqlite:path/to/file.db                   parameters of modernc.org/sqlite;
                                           only init --apply creates the file

Percent-encode special characters of a password: %40 for @, %2F for /. Errors show a password as xxxxx.

The status of the program:

  0         done
  1         failed, for example because the database can't be reached
  2         a mistake in the command line or in the data source name
  3         the answer is no: verify or status has found a fault, explain a
            refusal, leases release no lease, tokens adopt a newer token,
            tokens delete a name that it keeps
  4         the database lacks sqlfence's tables, or privileges on them
  75        run: another holder has the lease, and the command wasn't run
  76        run: the lease was lost, and the command was ended
  125       run: this program has failed, as for 1, 2 and 4
  126, 127  run: the command can't be executed, or can't be found
  128 + n   ended by the signal n: 130 after Ctrl-C

With --json a command writes one JSON document and a line end; watch writes one for each line. Errors are text on the
standard error. Fields are added, never renamed or removed. Times are RFC 3339 in UTC, with milliseconds.`

// What several JSON documents have in common.
const (
	tokenJSON  = `"name", "value", "fence"`
	recordJSON = `"at", "by", "reason"`
	leaseJSON  = `"key", "token", "fence", "holder", "acquired_at", "expires_at", "ephemeral"`
	sqlJSON    = `{"applied": false, "changes": [{"name", "sql", "statements", "down", "files"}]}`
	appliedOf  = `; with --apply {"applied": true}`
)

// jsonHelp describes the output of a command with --json.
var jsonHelp = map[string]string{
	"init": sqlJSON + `; statements has the statements of sql one by one, except for sqlfence's own tables; down ` +
		`drops a fence column; files are the files of --dir` + appliedOf + `, with created if something was missing`,
	"migrate":   sqlJSON + appliedOf + `, with created if something was missing`,
	"add-fence": sqlJSON + appliedOf,
	"seal":      sqlJSON + appliedOf,
	"unseal":    sqlJSON + appliedOf,
	"verify": `a list of {"severity", "code", "table", "problem", "remedy", "sql"}, the worst first; severity is ` +
		`note, warning or fault; table is empty for the database`,
	"status": `{"server": {"version", "known"}, "ledger": {"table", "triggers", "names", "highest": {` + tokenJSON +
		`}, "near_limit", "retired"}, "leases": {"live", "ended"}, "tables", "settings", "missing", "unshown", ` +
		`"findings"}; live is as in leases list, findings as in verify; table is empty without a ledger; triggers is ` +
		`right, wrong or unseen; unshown has texts that name what couldn't be read`,
	"version": `{"version"}`,
	"explain": `{"verdict", "tables", "sql"}; verdict is guarded, passed or refused. A refusal also has "table", ` +
		`"reason", "offset", "line", "column": offset counts bytes from 0 and is -1 without a place, line and column ` +
		`count characters from 1`,
	"tokens list": `a list of {` + tokenJSON + `, "issued_by", "issued_at"}; fence is the value as a text of 15 ` +
		`digits; the last two exist if the database records issuers`,
	"tokens issue": `{` + tokenJSON + `, ` + recordJSON + `}`,
	"tokens adopt": `{"adopted": true, ` + tokenJSON + `, ` + recordJSON + `}; or {"adopted": false, ` + tokenJSON +
		`} with the newest token. If the name has no token, value is 0, and the first token must be above "floor"`,
	"tokens rotate": `{"name", "rows", "retired": [{"name", "token", "holder", "leased"}], ` + recordJSON + `}; rows is ` +
		`the number of stored tokens that were reset; with --dry-run {"retired"}`,
	"tokens delete": `{"left", "missing", ` + recordJSON + `}; left has the names that were kept, missing the names ` +
		`that the ledger doesn't have`,
	"tokens repair": `{"floor", "raised": [{"name", "from", "to"}], "new_above", ` + recordJSON + `}; with --dry-run ` +
		`without ` + recordJSON,
	"leases list":    `a list of {` + leaseJSON + `}, by the server's clock`,
	"leases release": `{"released": true, ` + leaseJSON + `, ` + recordJSON + `}; or {"released": false, "key"}`,
	"watch": `for each line {"at", "event": "token", ` + tokenJSON + `, "lease", "holder", "acquired_at", "gone"}: ` +
		`lease is held or none, and missing if no leases are kept; or {"at", "event": "wait", "name", "who", ` +
		`"since", "for", "does", "began", "gone"}: for is the session that must end first, does its state, began the ` +
		`start of its transaction`,
	"run": `nothing: the output is the command's`,
}

// helpOf returns the help of a command in lines that a terminal shows.
func helpOf(cmd *cobra.Command) string {
	long := cmd.Long
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if text, ok := jsonHelp[name]; ok {
		if long == "" {
			long = cmd.Short + "."
		}
		long += "\n\nWith --json: " + text + "."
	}
	paragraphs := strings.Split(long, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = folded(strings.ReplaceAll(p, "\n", " "), screenColumns, "")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
