package conformance

import (
	"database/sql"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// addresses are how %#v prints pointers, which some drivers have in their errors.
var addresses = regexp.MustCompile(`\(0x[0-9a-f]+\)`)

// positions match an error's position in the statement, in the errors of drivers.
var positions = regexp.MustCompile(`(column|position|line|character|offset) \d+(:\d+)?`)

// rests match the rest of the statement, from the error's position, in MySQL's errors.
var rests = regexp.MustCompile(`(?s)right syntax to use near '.*' at line`)

// A plain is a text that needs no quotes in the log.
type plain string

// text formats a value with its Go type, so that a difference in either shows in the log. Addresses don't appear in it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case error:
		return fmt.Sprintf("%q %s", addresses.ReplaceAllString(v.Error(), "(address)"), chain(v))
	case time.Time:
		return "time.Time " + v.Format(time.RFC3339Nano) + " " + v.Location().String()
	case []byte:
		return fmt.Sprintf("[]byte(%q)", v)
	case reflect.Type:
		return v.String()
	case plain:
		return string(v)
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%T(%+v)", v, v)
}

// chain lists the types of an error and of all wrapped errors.
func chain(err error) string {
	if err == nil {
		return "nil"
	}
	name := fmt.Sprintf("%T", err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return name + " > " + chain(inner)
		}
	case interface{ Unwrap() []error }:
		var all []string
		for _, inner := range e.Unwrap() {
			all = append(all, chain(inner))
		}
		return name + " > (" + strings.Join(all, ", ") + ")"
	}
	return name
}

// resultText formats a result. Some drivers return a nil result for an empty statement, on which database/sql panics;
// resultText logs the panic.
func resultText(res sql.Result, err error) (t plain) {
	if err != nil {
		return plain(text(err))
	}
	defer func() {
		if r := recover(); r != nil {
			t = plain(fmt.Sprint("panic: ", r))
		}
	}()
	id, idErr := res.LastInsertId()
	n, nErr := res.RowsAffected()
	return plain(fmt.Sprintf("last id %d %s, affected %d %s", id, text(idErr), n, text(nErr)))
}

// resultAffected is resultText without the last id, which depends on concurrent inserts.
func resultAffected(res sql.Result, err error) string {
	if err != nil {
		return text(err)
	}
	n, err := res.RowsAffected()
	return fmt.Sprintf("%d %s", n, text(err))
}

// rowsText reads all rows, of all result sets, and formats their values and the error that ended them.
func rowsText(rows *sql.Rows, err error) plain {
	return stoppedRowsText(rows, err, func(err error) error { return err })
}

// stoppedRowsText is rowsText with of(err) in the place of the error that ended the rows.
func stoppedRowsText(rows *sql.Rows, err error, of func(error) error) plain {
	if err != nil {
		return plain(text(of(err)))
	}
	var b strings.Builder
	for {
		columns, err := rows.Columns()
		fmt.Fprint(&b, columns, text(err))
		for rows.Next() {
			values := make([]any, len(columns))
			targets := make([]any, len(columns))
			for i := range values {
				targets[i] = &values[i]
			}
			if err := rows.Scan(targets...); err != nil {
				fmt.Fprint(&b, " scan: ", text(err))
			}
			b.WriteString(" (")
			for i, v := range values {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString(text(v))
			}
			b.WriteString(")")
		}
		if !rows.NextResultSet() {
			break
		}
		b.WriteString("; next result: ")
	}
	fmt.Fprintf(&b, "; err %s, close %s", text(of(rows.Err())), text(rows.Close()))
	return plain(b.String())
}

// statsText formats the pool statistics that don't vary between runs.
func statsText(s sql.DBStats) plain {
	return plain(fmt.Sprintf("max %d, open %d, in use %d, idle %d, closed: %d idle, %d idle time, %d lifetime",
		s.MaxOpenConnections, s.OpenConnections, s.InUse, s.Idle, s.MaxIdleClosed, s.MaxIdleTimeClosed, s.MaxLifetimeClosed))
}
