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
// value, depending on the column, so the two have to be the same; and so it is with what has a method of
// pgx's such as Int64Value. bytesAreText is whether bytes are stored in a column of text as the text that they spell.
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

// agrees reports whether all methods of v that pgx may ask for a value give this text.
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

// givesValue reports whether a method is such as func() (pgtype.Int8, error), or BytesValue.
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

// MayChange reports whether an argument may have another value when the driver asks for it again: a
// Valuer, or what a pointer points to.
func MayChange(v any) bool {
	_, ok := v.(driver.Valuer)
	return ok || reflect.TypeOf(v).Kind() == reflect.Pointer
}
