package tokens

import (
	"reflect"
	"slices"
	"testing"
)

// A database without one of the statements would send an empty text.
func TestDialectsLackNothing(t *testing.T) {
	optional := []string{"unfit", "before", "narrow", "refused", "writers", "procedures", "hasProcedures"}
	for _, d := range dialects.All() {
		v := reflect.ValueOf(*d)
		for i := range v.NumField() {
			field := v.Type().Field(i)
			list := field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Func || field.Type.Kind() == reflect.Pointer
			if v.Field(i).IsZero() && !list && !slices.Contains(optional, field.Name) {
				t.Errorf("%v lacks %s", d.names, field.Name)
			}
		}
	}
}
