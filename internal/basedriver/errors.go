package basedriver

import (
	"reflect"
	"strings"
)

// ConstraintName returns the name of the violated constraint from a field of a PostgreSQL error, because the error's
// text may contain a user's input. It is empty if the error names no constraint.
func ConstraintName(err error) string {
	v, ok := fields(err)
	if !ok {
		return ""
	}
	for _, field := range []string{"ConstraintName", "Constraint"} { // pgx, lib/pq
		if name := v.FieldByName(field); name.IsValid() && name.Kind() == reflect.String {
			return name.String()
		}
	}
	return ""
}

// MySQLCode returns the number and the SQLSTATE of an error of github.com/go-sql-driver/mysql; ok is false for other
// errors.
func MySQLCode(err error) (number uint16, state string, ok bool) {
	v, ok := fields(err)
	if !ok {
		return 0, "", false
	}
	field := v.FieldByName("Number")
	if !field.IsValid() || field.Kind() != reflect.Uint16 || !v.FieldByName("Message").IsValid() {
		return 0, "", false
	}
	if own := v.FieldByName("SQLState"); own.IsValid() && own.CanInterface() {
		if bytes, _ := own.Interface().([5]byte); bytes != [5]byte{} {
			state = string(bytes[:])
		}
	}
	return uint16(field.Uint()), state, true
}

// SQLiteCode returns the result code of a SQLite error, if possible the extended code. ncruces/go-sqlite3 has a method
// with a result of its own type, mattn/go-sqlite3 a field. ok is false for other errors. modernc.org/sqlite has a
// method Code, which needs no reflection.
func SQLiteCode(err error) (code int, ok bool) {
	if v := reflect.ValueOf(err); packageOf(v.Type()) == "github.com/ncruces/go-sqlite3" && v.CanUint() {
		return int(v.Uint()), true // the code itself is the error
	}
	m := reflect.ValueOf(err).MethodByName("ExtendedCode")
	if isGetter(m) && m.Type().Out(0).Kind() == reflect.Uint16 {
		return int(m.Call(nil)[0].Uint()), true
	}
	v, ok := fields(err)
	if !ok {
		return 0, false
	}
	if code := v.FieldByName("Code"); strings.HasPrefix(packageOf(v.Type()), dqlite+"/") && code.CanInt() {
		return int(code.Int()), true
	}
	extended := v.FieldByName("ExtendedCode")
	if !extended.IsValid() || !extended.CanInt() {
		return 0, false
	}
	if plain := v.FieldByName("Code"); extended.Int() == 0 && plain.IsValid() && plain.CanInt() {
		return int(plain.Int()), true
	}
	return int(extended.Int()), true
}

// fields returns the struct of an error that is a struct or a pointer to one.
func fields(err error) (reflect.Value, bool) {
	v := reflect.Indirect(reflect.ValueOf(err))
	return v, v.Kind() == reflect.Struct
}
