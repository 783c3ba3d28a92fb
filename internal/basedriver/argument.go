package basedriver

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Text returns the text that a database stores for an integer, a string or a UUID, and in read the value without its
// type, such as the int64 of a named integer type. For a fmt.Stringer pgx sends the result of String or that value,
// depending on the column. So ok is false if the two differ, or if one of pgx's methods such as Int64Value returns
// another value. bytesAreText is set if a text column stores bytes as the text that they spell.
func Text(v any, bytesAreText bool) (text string, read any, ok bool) {
	text, read, ok = plainText(v, bytesAreText)
	if s, prints := v.(fmt.Stringer); ok && prints && s.String() != text {
		return "", nil, false
	}
	if ok && !agrees(v, text) {
		return "", nil, false
	}
	return text, read, ok
}

// agrees reports whether all methods of v from which pgx may get a value return this text.
func agrees(v any, text string) bool {
	switch v.(type) {
	case string, []byte, [16]byte, int64, int, int32, int16, int8, uint64, uint, uint32, uint16, uint8:
		return true
	}
	r := reflect.ValueOf(v)
	if ofPgx(r.Type()) {
		return true
	}
	for i := range r.NumMethod() {
		if !givesValue(r.Type().Method(i)) {
			continue
		}
		out := r.Method(i).Call(nil)
		if err, _ := out[1].Interface().(error); err != nil {
			return false
		}
		if given, _, ok := plainText(out[0].Interface(), true); !ok || given != text {
			return false
		}
	}
	return true
}

// givesValue reports whether a method is like func() (pgtype.Int8, error), or is BytesValue.
func givesValue(m reflect.Method) bool {
	t := m.Type // its receiver first
	return t.NumIn() == 1 && t.NumOut() == 2 && t.Out(1) == errorType && (ofPgx(t.Out(0)) || m.Name == "BytesValue")
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

// MayChange reports whether an argument may later give the driver another value, because it is a Valuer or a pointer.
func MayChange(v any) bool {
	_, ok := v.(driver.Valuer)
	return ok || reflect.TypeOf(v).Kind() == reflect.Pointer
}
