package harness

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// The tests write PostgreSQL's words, most of which SQLite reads, too. A translation writes a
// text in the words of a database that doesn't, before sqlfence sees it. order has the number
// of the argument, from 1, for each placeholder.
type translation func(query string) (text string, order []int)

// wordsOf returns the translation by pairs of an expression and its replacement, in which each
// $1 becomes a ?. What is quoted stays.
func wordsOf(pairs ...string) translation {
	var words []func(string) string
	for pair := range slices.Chunk(pairs, 2) {
		from := regexp.MustCompile(pair[0])
		words = append(words, func(text string) string {
			for from.MatchString(text) {
				text = from.ReplaceAllString(text, pair[1])
			}
			return text
		})
	}
	return remembered(func(query string) (text string, order []int) {
		for _, replace := range words {
			query = replace(query)
		}
		pieces := strings.Split(query, "'")
		for i := 0; i < len(pieces); i += 2 {
			pieces[i] = numbered.ReplaceAllStringFunc(pieces[i], func(placeholder string) string {
				number, _ := strconv.Atoi(placeholder[1:])
				order = append(order, number)
				return "?"
			})
		}
		return strings.Join(pieces, "'"), order
	})
}

// remembered makes each translation once: tests send few texts, and each of them often.
func remembered(translate translation) translation {
	type translated struct {
		text  string
		order []int
	}
	var known sync.Map // by the text
	return func(query string) (text string, order []int) {
		found, ok := known.Load(query)
		if !ok {
			text, order := translate(query)
			found, _ = known.LoadOrStore(query, translated{text, order})
		}
		is := found.(translated)
		return is.text, is.order
	}
}

var numbered = regexp.MustCompile(`\$[0-9]+`)

// translation returns what the texts of the tests go through; nil where they don't need it.
func (b Base) translation(t testing.TB) translation {
	t.Helper()
	if b.AsWritten {
		return nil
	}
	return b.dialect(t).translate
}

// Text returns what becomes of a test's text before sqlfence sees it.
func (b Base) Text(t testing.TB, query string) string {
	t.Helper()
	if translate := b.translation(t); translate != nil {
		query, _ = translate(query)
	}
	return query
}

// Translated returns a database as db, which is closed when the test ends, whose texts are translated. It is
// for what opens its databases itself.
func (b Base) Translated(t testing.TB, db *sql.DB, dsn string) *sql.DB {
	t.Helper()
	translate := b.translation(t)
	if translate == nil {
		return CloseAtEnd(t, db, nil)
	}
	again, err := openTranslated(db.Driver(), dsn, translate)
	CloseAtEnd(t, db, nil)
	return CloseAtEnd(t, again, err)
}

// openTranslated opens the database with a driver that may be fenced.
func openTranslated(d driver.Driver, dsn string, translate translation) (*sql.DB, error) {
	c := translatedConnector{d: d, translate: translate, open: func(context.Context) (driver.Conn, error) { return d.Open(dsn) }}
	if dc, ok := d.(driver.DriverContext); ok {
		connector, err := dc.OpenConnector(dsn)
		if err != nil {
			return nil, err
		}
		c.open = connector.Connect
	}
	return sql.OpenDB(c), nil
}

// fenceTranslated opens the database with sqlfence around a driver.
func (b Base) fenceTranslated(t testing.TB, d driver.Driver, dsn string, translate translation, opts []sqlfence.Option) *sql.DB {
	t.Helper()
	fenced, err := sqlfence.WrapDriver(d, b.options(opts)...)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openTranslated(fenced, dsn, translate)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// A translatedConnector answers for the driver beneath it.
type translatedConnector struct {
	d         driver.Driver
	open      func(context.Context) (driver.Conn, error)
	translate translation
}

func (c translatedConnector) Driver() driver.Driver { return c.d }

func (c translatedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	translated, ok := conn.(translatable)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("%T lacks an interface that a translated connection claims", conn)
	}
	return translatedConn{translated, c.translate}, nil
}

// translatable is what the connections of drivers have whose texts are translated.
type translatable interface {
	fullConn
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

type translatedConn struct {
	translatable
	translate translation
}

// Raw is for [sqlfence.BaseConn].
func (c translatedConn) Raw() driver.Conn { return c.translatable }

func (c translatedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	text, order := c.translate(query)
	return c.translatable.ExecContext(ctx, text, ordered(args, order))
}

func (c translatedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	text, order := c.translate(query)
	return c.translatable.QueryContext(ctx, text, ordered(args, order))
}

// Prepare is PrepareContext's older form.
func (c translatedConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c translatedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	text, order := c.translate(query)
	stmt, err := c.translatable.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	full, ok := stmt.(translatableStmt)
	if !ok {
		_ = stmt.Close()
		return nil, fmt.Errorf("%T lacks an interface that a translated statement claims", stmt)
	}
	return translatedStmt{full, order}, nil
}

type translatableStmt interface {
	fullStmt
	driver.NamedValueChecker
}

type translatedStmt struct {
	translatableStmt
	order []int
}

// NumInput counts arguments, of which a text may have used one twice.
func (s translatedStmt) NumInput() int {
	n := s.translatableStmt.NumInput()
	if n == len(s.order) {
		n = 0
		for _, number := range s.order {
			n = max(n, number)
		}
	}
	return n
}

func (s translatedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.translatableStmt.ExecContext(ctx, ordered(args, s.order))
}

func (s translatedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.translatableStmt.QueryContext(ctx, ordered(args, s.order))
}

// ordered returns the arguments in the order of the placeholders. With a wrong number of arguments ordered returns args
// unchanged, and the driver reports the error.
func ordered(args []driver.NamedValue, order []int) []driver.NamedValue {
	if len(order) == 0 {
		return args
	}
	list := make([]driver.NamedValue, len(order))
	used := 0
	for i, number := range order {
		if number > len(args) {
			return args
		}
		used = max(used, number)
		list[i] = args[number-1]
		list[i].Ordinal = i + 1
	}
	if used < len(args) {
		return args
	}
	return list
}
