package memdb

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

func boolean(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}

// isTrue reports whether a condition is met: it is neither NULL nor zero.
func isTrue(v driver.Value) bool { return v != nil && !isFalse(v) }

func isFalse(v driver.Value) bool { return v != nil && number(v) == 0 }

// number returns a value as a number, zero for what is none.
func number(v driver.Value) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// compare orders values of any types: NULL, numbers, times, strings, bytes.
func compare(a, b driver.Value) int {
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra - rb
	}
	switch a := a.(type) {
	case nil:
		return 0
	case time.Time:
		return a.Compare(b.(time.Time))
	case string:
		return strings.Compare(a, b.(string))
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case int64:
		if b, ok := b.(int64); ok {
			return sign(a, b)
		}
	}
	return sign(number(a), number(b))
}

func rank(v driver.Value) int {
	switch v.(type) {
	case nil:
		return 0
	case time.Time:
		return 2
	case string:
		return 3
	case []byte:
		return 4
	}
	return 1
}

func sign[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func textOf(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// calculate applies an operator to two values that aren't NULL.
func calculate(op string, a, b driver.Value) driver.Value {
	switch op {
	case "=":
		return boolean(compare(a, b) == 0)
	case "<>", "!=":
		return boolean(compare(a, b) != 0)
	case "<":
		return boolean(compare(a, b) < 0)
	case "<=":
		return boolean(compare(a, b) <= 0)
	case ">":
		return boolean(compare(a, b) > 0)
	case ">=":
		return boolean(compare(a, b) >= 0)
	case "||":
		return textOf(a) + textOf(b)
	}
	x, isInt := a.(int64)
	y, areInts := b.(int64)
	if isInt && areInts {
		return arithmetic(op, x, y)
	}
	return arithmetic(op, number(a), number(b))
}

func arithmetic[N int64 | float64](op string, a, b N) N {
	switch {
	case op == "+":
		return a + b
	case op == "-":
		return a - b
	case op == "*":
		return a * b
	case b == 0:
		panic(errorf("division by zero"))
	}
	return a / b
}
