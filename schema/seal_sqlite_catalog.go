package schema

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// run seals or unseals a table as it is found, in a transaction of its own. What the statements of
// a migration have to assume is looked at.
func (d sealSQLite) run(ctx context.Context, conn *sql.Conn, s sealing, unseals bool) error {
	c := sqliteCatalog{ctx: ctx, conn: conn, sqliteSeal: newSQLiteSeal(s)}
	return c.asWriter(func() error {
		if err := c.dropSeal(); err != nil {
			return err
		}
		if err := c.nameTriggers(); err != nil {
			return err
		}
		if unseals {
			return c.send(c.unseal()...)
		}
		if err := c.read(); err != nil {
			return err
		}
		return c.send(c.seal()...)
	})
}

// plan looks at the table as run does, and undoes what it did.
func (d sealSQLite) plan(ctx context.Context, conn *sql.Conn, s sealing, unseals bool) (stmts []string, err error) {
	c := sqliteCatalog{ctx: ctx, conn: conn, sqliteSeal: newSQLiteSeal(s)}
	if err := c.send("BEGIN"); err != nil {
		return nil, err
	}
	defer func() {
		c.ctx = context.WithoutCancel(ctx)
		err = errors.Join(err, c.send("ROLLBACK"))
	}()
	c.sent = nil
	if err := c.dropSeal(); err != nil {
		return nil, err
	}
	if err := c.nameTriggers(); err != nil {
		return nil, err
	}
	stmts = append([]string{"BEGIN IMMEDIATE"}, c.sent...)
	if unseals {
		return append(append(stmts, c.unseal()...), "COMMIT"), nil
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	return append(append(stmts, c.seal()...), "COMMIT"), nil
}

// A sqliteCatalog reads what a seal has to know of a table.
type sqliteCatalog struct {
	ctx  context.Context
	conn *sql.Conn
	*sqliteSeal
	sent     []string          // what was sent to change something
	numbered bool              // it isn't WITHOUT ROWID
	columns  map[string]string // by their names in lower case: what REPLACE stores instead of NULL
}

// asWriter calls f as the file's one writer, and undoes what it did if it fails.
func (c *sqliteCatalog) asWriter(f func() error) error {
	err := c.send("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	if err = f(); err == nil {
		if err = c.send("COMMIT"); err == nil {
			return nil
		}
	}
	c.ctx = context.WithoutCancel(c.ctx)
	return errors.Join(err, c.send("ROLLBACK"))
}

func (c *sqliteCatalog) send(stmts ...string) error {
	for _, stmt := range stmts {
		c.sent = append(c.sent, stmt)
		if _, err := c.conn.ExecContext(trusted.Context(c.ctx, stmt), stmt); err != nil {
			return err
		}
	}
	return nil
}

// dropSeal drops the table's triggers that are a seal's, also those with the name that it had
// before, and none of another table's.
func (c *sqliteCatalog) dropSeal() error {
	triggers, err := c.triggersOf()
	for _, t := range triggers {
		if err == nil && isSealSQLite(t.name) {
			err = c.send("DROP TRIGGER " + c.named(t.name))
		}
	}
	return err
}

func isSealSQLite(trigger string) bool {
	return strings.HasPrefix(trigger, sqltext.SQLiteSeal) || strings.HasPrefix(trigger, sqltext.SQLiteUnsealed)
}

// read reads the shape of a table that isn't sealed, and refuses one that can't be.
func (c *sqliteCatalog) read() error {
	for _, read := range []func() error{c.readKind, c.readColumns, c.nameNumber, c.readUnique, c.checkDefaults, c.readTriggers} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for each row of a query, with its columns as text.
func (c *sqliteCatalog) each(query string, f func(row []string) error) error {
	rows, err := c.conn.QueryContext(trusted.Context(c.ctx, query), query)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := make([]string, len(values))
		for i := range values {
			row[i] = values[i].String
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// args returns the arguments of a pragma's function that say the table.
func (c *sqliteCatalog) args() string {
	args := textSQLite(c.name)
	if c.schema != "" {
		args += ", " + textSQLite(c.schema)
	}
	return args
}

func (c *sqliteCatalog) refuse(format string, args ...any) error {
	return fmt.Errorf("it can't be sealed: "+format, args...)
}

// readKind finds out what kind of table it is.
func (c *sqliteCatalog) readKind() error {
	kind, without := "", ""
	err := c.each("SELECT l.type, l.wr, m.sql FROM pragma_table_list("+textSQLite(c.name)+") AS l LEFT JOIN "+quoteSQLite(c.inSchema())+".sqlite_master AS m ON m.type = 'table' AND m.name = l.name WHERE l.schema = "+textSQLite(c.inSchema()), func(row []string) error {
		kind, without, c.declared = row[0], row[1], row[2]
		return nil
	})
	c.numbered = without != "1"
	c.replacesNone = !strings.Contains(c.declared, "--") && !strings.Contains(c.declared, "/*") // else a comment may be within
	switch {
	case err == nil && kind == "":
		return c.refuse("there is no such table")
	case err == nil && kind != "table":
		return c.refuse("it is a %s table, and only a plain one has triggers of rows", kind)
	case err == nil && replaces.MatchString(notNull.ReplaceAllString(c.declared, "")):
		return c.refuse("a unique key of it is declared ON CONFLICT REPLACE, by which any INSERT deletes rows; say OR REPLACE in the statements that shall")
	}
	return err
}

var (
	notNull  = regexp.MustCompile(`(?i)\bnot\s+null\s+on\s+conflict\s+replace\b`)
	replaces = regexp.MustCompile(`(?i)\bon\s+conflict\s+replace\b`)
)

// readColumns: hidden is 2 or 3 for a generated column. For a column that is NOT NULL, REPLACE
// stores the default instead of NULL, behind the triggers.
func (c *sqliteCatalog) readColumns() error {
	c.columns = make(map[string]string)
	marks, generated := 0, false
	err := c.each(`SELECT name, type, CASE WHEN "notnull" THEN dflt_value END, hidden FROM pragma_table_xinfo(`+c.args()+")", func(row []string) error {
		c.columns[strings.ToLower(row[0])] = row[2]
		if row[3] == "2" || row[3] == "3" {
			generated = true
		} else {
			c.computedOf = append(c.computedOf, row[0])
		}
		if row[3] != "2" && row[3] != "3" && !slices.ContainsFunc([]string{c.Lock.By, c.Lock.Since, c.Lock.Expiry}, func(lock string) bool { return strings.EqualFold(lock, row[0]) }) {
			c.kept = append(c.kept, row[0])
		}
		if !strings.EqualFold(row[0], c.stored) {
			return nil
		}
		marks++
		if !strings.Contains(strings.ToUpper(row[1]), "INT") || row[3] != "0" {
			return c.refuse("the fence column %s has to be a plain column of a type with INT in its name, as integer", c.stored)
		}
		return nil
	})
	if err == nil && marks == 0 {
		return c.refuse("it has no column %s; schema.AddFence or sqlfence add-fence adds it", c.stored)
	}
	if !generated {
		c.computedOf = nil
	}
	return err
}

// nameNumber finds a name for the rows' number.
func (c *sqliteCatalog) nameNumber() error {
	if !c.numbered {
		return nil
	}
	for _, name := range []string{"rowid", "_rowid_", "oid"} {
		if _, taken := c.columns[name]; !taken {
			c.rowNumber, c.kept = name, append(c.kept, name)
			return nil
		}
	}
	return c.refuse("its columns have all names of the rows' number; rename the column oid")
}

func (c *sqliteCatalog) inSchema() string {
	if c.schema == "" {
		return "main"
	}
	return c.schema
}

// readUnique reads the unique indexes, that of the primary key first.
func (c *sqliteCatalog) readUnique() error {
	args := ""
	if c.schema != "" {
		args = ", " + textSQLite(c.schema)
	}
	last := ""
	return c.each("SELECT l.name, x.name, x.coll, x.cid, m.sql FROM pragma_index_list("+c.args()+") AS l, pragma_index_xinfo(l.name"+args+") AS x LEFT JOIN "+
		quoteSQLite(c.inSchema())+`.sqlite_master AS m ON l.partial AND m.type = 'index' AND m.name = l.name
WHERE l."unique" AND x."key" ORDER BY l.origin = 'pk' DESC, l.seq, x.seqno`, func(row []string) error {
		switch column := strings.ToLower(row[1]); {
		case row[3] == "-2":
			return c.refuse("the unique index %s is on an expression, so what REPLACE deletes by it can't be seen; make it one on a generated column", row[0])
		case row[3] == "-1":
			row[1] = c.rowNumber
		case strings.EqualFold(column, c.stored):
			return c.refuse("the fence column %s is in the unique index %s", c.stored, row[0])
		}
		if row[0] != last {
			within := c.within(row[4])
			last, c.indexes = row[0], append(c.indexes, sqliteUnique{chosen: c.namedBy(cmp.Or(within, row[4])), within: within})
		}
		u := &c.indexes[len(c.indexes)-1]
		u.columns = append(u.columns, sqliteColumn{name: row[1], collation: row[2], instead: c.columns[strings.ToLower(row[1])]})
		return nil
	})
}

// namedBy returns all columns that the text of a partial index may name, and more in doubt.
func (c *sqliteCatalog) namedBy(index string) (columns []sqliteColumn) {
	if index == "" {
		return nil
	}
	index = strings.ToLower(index)
	for _, name := range slices.Sorted(maps.Keys(c.columns)) {
		if strings.Contains(index, name) || strings.ContainsAny(name, "\"]`'") {
			columns = append(columns, sqliteColumn{name: name, collation: "BINARY"})
		}
	}
	if c.numbered {
		columns = append(columns, sqliteColumn{name: c.rowNumber})
	}
	return columns
}

// within returns the condition of a partial index, or nothing in doubt: then all rows count as being in it.
func (c *sqliteCatalog) within(index string) string {
	within := sqltext.SQLiteWithin(index)
	if within == "" {
		return ""
	}
	err := c.each("SELECT 1 FROM "+c.qualified()+" AS way WHERE ("+within+") LIMIT 0", func([]string) error { return nil })
	if err != nil {
		return ""
	}
	return within
}

// checkDefaults refuses a unique column whose default isn't an expression that a trigger understands:
// SQLite also takes a bare word, or one in double quotes, for a text there.
func (c *sqliteCatalog) checkDefaults() error {
	for _, u := range c.indexes {
		for _, column := range u.columns {
			if column.instead == "" {
				continue
			}
			err := c.each("SELECT "+column.instead, func([]string) error { return nil })
			if err != nil || strings.HasPrefix(column.instead, `"`) {
				return c.refuse("the default of %s, which is unique, is %s; write a text in single quotes", column.name, column.instead)
			}
		}
	}
	return nil
}

// readTriggers reads the application's triggers. They are created anew behind the seal's, and
// so fired before them: one that writes the row again does so while its mark still is the
// proof.
//
// A table is refused whose triggers an UPDATE of the mark alone fires: they would see one besides
// each INSERT, UPDATE and DELETE. SQLite itself says whether there are any.
func (c *sqliteCatalog) readTriggers() (err error) {
	if c.triggers, err = c.triggersOf(); err != nil {
		return err
	}
	for _, t := range c.triggers {
		if t.skips() {
			return c.refuse("the trigger %s may skip the seal's by RAISE(IGNORE) or RAISE(FAIL), which only a BEFORE trigger may, and RAISE(FAIL) none of DELETE; write RAISE(ABORT)", t.name)
		}
		c.writesAgain = true
	}
	mark, fired := quoteSQLite(c.stored), false
	err = c.each("EXPLAIN UPDATE "+c.qualified()+" SET "+mark+" = "+mark, func(row []string) error {
		fired = fired || row[1] == "Program"
		return nil
	})
	if err != nil || !fired {
		return err
	}
	return c.refuse("a trigger of it is fired by every UPDATE, also by the one by which the seal stores the mark; "+
		"say in the trigger which columns it is about, without the fence column: UPDATE OF column, ... ON %s", c.name)
}

// skips reports whether a trigger may skip those that are fired behind it. A BEFORE trigger
// skips the row, too; but the DELETE is within the UPDATE by which the row was marked.
func (t sqliteTrigger) skips() bool {
	begin := begins.FindStringIndex(t.sql)
	if begin == nil {
		return false
	}
	head, body := t.sql[:begin[0]], t.sql[begin[1]:]
	return !before.MatchString(head) && ignores.MatchString(body) || beforeDelete.MatchString(head) && fails.MatchString(body)
}

var (
	begins       = regexp.MustCompile(`(?i)\bbegin\b`)
	before       = regexp.MustCompile(`(?i)\bbefore\b`)
	beforeDelete = regexp.MustCompile(`(?i)\bbefore\s+delete\b`)
	ignores      = regexp.MustCompile(`(?is)\braise\b.*\b(ignore|fail)\b`)
	fails        = regexp.MustCompile(`(?is)\braise\b.*\bfail\b`)
)

// triggersOf returns the table's triggers, in the order in which they were created.
func (c *sqliteCatalog) triggersOf() (triggers []sqliteTrigger, err error) {
	err = c.each("SELECT name, sql FROM "+quoteSQLite(c.inSchema())+".sqlite_master WHERE type = 'trigger' AND tbl_name = "+
		textSQLite(c.name)+" COLLATE NOCASE ORDER BY rowid", func(row []string) error {
		triggers = append(triggers, sqliteTrigger{name: row[0], sql: row[1]})
		return nil
	})
	return triggers, err
}
