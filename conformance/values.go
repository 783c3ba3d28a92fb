package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

var valueChecks = []check{
	{name: "values", steps: values,
		explanation: "Arguments of each Go type are stored, compared and read back, or refused, as by the driver alone, " +
			"by exec, query and prepared statements."},
	{name: "valuers", steps: valuers,
		explanation: "A driver.Valuer is asked as often, and its errors arrive, as with the driver alone."},
	{name: "named arguments", steps: namedArguments,
		explanation: "sql.Named and sql.Out are accepted or refused as by the driver alone."},
	{name: "argument counts", steps: argumentCounts,
		explanation: "Too few and too many arguments are refused as by the driver alone."},
	{name: "scanning", steps: scanning,
		explanation: "Rows are scanned into each Go type, or refused, as with the driver alone."},
}

type (
	ownInt    int
	ownText   string
	ownBytes  []byte
	ownStruct struct{ N int }
)

// sentValues are arguments of all kinds, including values that drivers refuse.
func sentValues() []any {
	n, s := 7, "seven"
	var none *int
	return []any{
		nil, 1, int8(-2), int16(3), int32(4), int64(math.MaxInt64), uint(5), uint8(6), uint32(7), uint64(8),
		uint64(math.MaxUint64),
		1.25, float32(0.5), math.Inf(1), true, false, "", "text", "it's \\ \"quoted\" ? $1 :x -- é", "12", []byte{},
		[]byte("bytes"), []byte(nil), []byte{0, 255},
		time.Date(2020, 2, 29, 12, 30, 15, 123456000, time.UTC), time.Date(2020, 1, 2, 0, 0, 0, 0,
			time.FixedZone("east", 7200)), time.Time{},
		&n, &s, none, ownInt(9), ownText("own"), ownBytes("own bytes"), ownStruct{1}, &ownStruct{2}, []int{1,
			2}, []string{"a"},
		map[string]int{"a": 1}, complex(1, 2), time.Second, func() {}, make(chan int), [2]byte{1, 2},
		sql.NullString{String: "null?", Valid: true}, sql.NullInt64{}, sql.NullTime{}, sql.Null[float64]{V: 2.5,
			Valid: true}, sql.RawBytes("raw"),
	}
}

func values(s *side) {
	columns := []string{"isbn", "price", "weight", "cover", "printed", "list"}
	for _, column := range columns {
		update := s.bind("UPDATE books SET " + column + " = ? WHERE id = 1")
		read := "SELECT " + column + " FROM books WHERE id = 1"
		s.prepared(update, func(prepared *sql.Stmt) {
			for i, v := range sentValues() {
				step := fmt.Sprintf("%T (value %d) into %s", v, i, column)
				s.show(step, resultText(s.db.ExecContext(s.ctx, update, v)))
				s.show(step+", read back", rowsText(s.db.QueryContext(s.ctx, read)))
				s.show(step+", prepared", resultText(prepared.ExecContext(s.ctx, v)))
				s.show(step+", prepared, read back", rowsText(s.db.QueryContext(s.ctx, read)))
			}
		})
	}
	query := s.bind("SELECT id, isbn FROM books WHERE isbn = ? ORDER BY id")
	s.prepared(query, func(prepared *sql.Stmt) {
		for i, v := range append(sentValues(), "i2") {
			step := fmt.Sprintf("%T (value %d) in a query", v, i)
			s.show(step, rowsText(s.db.QueryContext(s.ctx, query, v)))
			s.show(step+", prepared", rowsText(prepared.QueryContext(s.ctx, v)))
		}
	})
}

// A counting is a Valuer that counts the calls of Value.
type counting struct {
	value driver.Value
	err   error
	asked *int
}

func (c counting) Value() (driver.Value, error) { *c.asked++; return c.value, c.err }

var errValuer = errors.New("no value today")

func valuers(s *side) {
	update := s.bind("UPDATE books SET price = ? WHERE id = 1")
	prepared := must(s.db.PrepareContext(s.ctx, update))
	var asked int
	var none *counting
	for i, v := range []driver.Valuer{
		counting{int64(1), nil, &asked}, counting{nil, errValuer, &asked}, counting{"2", nil, &asked},
		counting{int(3), nil, &asked}, counting{ownStruct{}, nil, &asked}, counting{[]byte("4"), nil, &asked}, none,
	} {
		for how, run := range []func() (sql.Result, error){
			func() (sql.Result, error) { return s.db.ExecContext(s.ctx, update, v) },
			func() (sql.Result, error) { return prepared.ExecContext(s.ctx, v) },
		} {
			asked = 0
			res, err := run()
			s.show(fmt.Sprintf("valuer %d, way %d", i, how), resultText(res, err), asked, errors.Is(err, errValuer))
		}
	}
	s.show("closing", prepared.Close())
}

func namedArguments(s *side) {
	var out int
	for _, query := range []string{
		"UPDATE books SET price = :price WHERE id = :id", "UPDATE books SET price = @price WHERE id = @id",
		s.bind("UPDATE books SET price = ? WHERE id = ?"), "SELECT id, price FROM books WHERE price = :price AND id = :id",
	} {
		for i, args := range [][]any{
			{sql.Named("price", 11), sql.Named("id", 1)}, {sql.Named("id", 1), sql.Named("price", 12)},
			{sql.Named("price", 13), 1}, {14, 1}, {sql.Named("", 15), 1}, {sql.Out{Dest: &out}, 1}, {sql.Named("other", 1), 1},
		} {
			step := fmt.Sprintf("arguments %d of %s", i, query)
			s.show(step, resultText(s.db.ExecContext(s.ctx, query, args...)))
			s.show(step+", query", rowsText(s.db.QueryContext(s.ctx, query, args...)))
			s.prepared(query, func(prepared *sql.Stmt) {
				s.show(step+", prepared", resultText(prepared.ExecContext(s.ctx, args...)))
			})
			s.show(step+", left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
		}
	}
}

func argumentCounts(s *side) {
	for _, query := range []string{
		"UPDATE books SET price = ? WHERE id = ?", "DELETE FROM books WHERE id = ? AND price = ?",
		"INSERT INTO books (id, price) VALUES (?, ?)", "SELECT id FROM books WHERE price = ? AND id = ?",
	} {
		query = s.bind(query)
		for _, args := range [][]any{nil, {90}, {91, 92}, {93, 94, 95}, {nil, nil, nil, nil}} {
			step := fmt.Sprintf("%d arguments for %s", len(args), query)
			// go-sql-driver/mysql waits for ever if Exec runs a prepared SELECT.
			executable := !strings.HasPrefix(query, "SELECT")
			if executable {
				s.show(step, resultText(s.db.ExecContext(s.ctx, query, args...)))
			}
			s.show(step+", query", rowsText(s.db.QueryContext(s.ctx, query, args...)))
			s.prepared(query, func(prepared *sql.Stmt) {
				if executable {
					s.show(step+", prepared exec", resultText(prepared.ExecContext(s.ctx, args...)))
				}
				s.show(step+", prepared query", rowsText(prepared.QueryContext(s.ctx, args...)))
			})
		}
	}
}

func scanning(s *side) {
	s.exec("UPDATE books SET printed = '2020-01-02 03:04:05', list = 12.5 WHERE id = 1")
	targets := func() []any {
		return []any{
			new(int), new(int8), new(int64), new(uint), new(float64), new(bool), new(string), new([]byte), new(any),
			new(time.Time), new(*int), new(*string),
			new(sql.NullString), new(sql.NullInt64), new(sql.NullTime), new(sql.Null[int16]), new(ownInt), new(ownText),
			new(ownStruct), new(sql.RawBytes), 1,
		}
	}
	for _, column := range []string{"id", "isbn", "weight", "cover", "printed", "list"} {
		for i := range targets() {
			rows := must(s.db.QueryContext(context.Background(), "SELECT "+column+" FROM books ORDER BY id"))
			for rows.Next() {
				target := targets()[i]
				err := rows.Scan(target)
				s.show(fmt.Sprintf("%s into %T", column, target), err, pointedAt(target))
			}
			s.show("closing", rows.Err(), rows.Close())
		}
	}
}

// pointedAt formats the value that a target points at.
func pointedAt(target any) string {
	v := reflect.ValueOf(target)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer {
		return "nil"
	}
	return text(v.Interface())
}
