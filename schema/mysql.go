package schema

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
)

// mysql is MySQL and MariaDB. SHOW COLUMNS finds the table as the server does, whether or not the server distinguishes
// case in table names. Column names ignore case but not accents; the CAST is there because SHOW alone ignores accents.
var mysql = dialect{
	Dialect: my.Text,
	names:   sqlfence.MySQL,

	find: func(f fence) string {
		return "SHOW COLUMNS FROM " + f.table + " WHERE CAST(LOWER(Field) AS BINARY) = CAST(LOWER(" +
			my.Text.Text(f.stored) + ") AS BINARY)"
	},
	scan:    scanMySQL,
	fits:    func(typ string) bool { return signed.MatchString(typ) },
	typ:     "bigint",
	steps:   stepsMySQL,
	backoff: 2 * time.Second,

	explain: explainMySQL,
}

// signed is a bigint as the servers write it.
var signed = regexp.MustCompile(`^bigint(\([0-9]+\))?$`)

// stepsMySQL returns statements that wait at most a second for other sessions, MySQL's shortest lock timeout, which
// only a session variable can set. With ALGORITHM=INSTANT the server fails if it would have to copy the table.
func stepsMySQL(f fence, _ int) steps {
	return steps{
		before: []string{
			"SET @sqlfence_lock_wait_timeout = @@SESSION.lock_wait_timeout",
			"SET SESSION lock_wait_timeout = 1",
		},
		add:   "ALTER TABLE " + f.table + " ADD COLUMN " + f.column + " bigint NOT NULL DEFAULT 0, ALGORITHM=INSTANT",
		after: []string{"SET SESSION lock_wait_timeout = @sqlfence_lock_wait_timeout"},
	}
}

// scanMySQL reads Field, Type, Null, Key, Default and Extra.
func scanMySQL(rows *sql.Rows) (string, error) {
	var typ, extra string
	var other sql.RawBytes
	err := rows.Scan(&other, &typ, &other, &other, &other, &extra)
	extra = strings.ToUpper(extra)
	computed := strings.Contains(extra, "GENERATED") && !strings.Contains(extra, "DEFAULT_GENERATED")
	if computed || strings.Contains(extra, "AUTO_INCREMENT") {
		typ += " " + extra
	}
	return strings.ToLower(typ), err
}

// notInstant are the errors of a server that would have to copy the table: it can't do such a change (1845, or 1846
// with a reason), or has done too many.
var notInstant = []uint16{1845, 1846, 4092}

func explainMySQL(err error) error {
	if number, ok := dberr.MySQLNumber(err); ok && slices.Contains(notInstant, number) {
		return fmt.Errorf("the server would have to copy the table, and hold up all who write to it; run the "+
			"ALTER TABLE of AddFenceSQL without ALGORITHM=INSTANT when no client does: %w", err)
	}
	return err
}
