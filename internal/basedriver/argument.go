package basedriver

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Text returns the text that a database makes of an integer, a string or a UUID,
// and the plain value behind it. Of a fmt.Stringer pgx may send the text or the plain
// value, depending on the column, so the two have to be the same. bytesAreText is whether bytes
// are stored in a column of text as the text that they spell.
func Text(v any, bytesAreText bool) (text string, read any, ok bool) {
	text, read, ok = plainText(v, bytesAreText)
	if s, prints := v.(fmt.Stringer); ok && prints && s.String() != text {
		return "", nil, false
	}
	return text, read, ok
}

// plainText is Text without regard to v's method String.
func plainText(v any, bytesAreText bool) (text string, read any, ok bool) {
	if valuer, ok := v.(driver.Valuer); ok && !isNil(v) {
		plain, err := valuer.Value()
		if err != nil {
			return "", nil, false
		}
		v = plain
	}
	switch v := v.(type) {
	case string:
		return v, v, true
	case []byte:
		return string(v), slices.Clone(v), bytesAreText
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]), v, true
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && !r.IsNil() {
		return Text(r.Elem().Interface(), bytesAreText)
	}
	switch {
	case r.CanInt():
		return strconv.FormatInt(r.Int(), 10), v, true
	case r.CanUint():
		return strconv.FormatUint(r.Uint(), 10), v, true
	case r.Kind() == reflect.String:
		return r.String(), v, true
	}
	return "", nil, false
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// MayChange reports whether an argument may have another value when the driver asks for it again: a
// Valuer, or what a pointer points to.
func MayChange(v any) bool {
	_, ok := v.(driver.Valuer)
	return ok || reflect.TypeOf(v).Kind() == reflect.Pointer
}
