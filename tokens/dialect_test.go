package tokens

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A database without one of the statements would send an empty text.
func TestDialectsLackNothing(t *testing.T) {
	optional := []string{"unfit", "before", "narrow", "refused", "writers", "procedures", "hasProcedures"}
	for _, d := range dialects.All() {
		v := reflect.ValueOf(*d())
		for i := range v.NumField() {
			field := v.Type().Field(i)
			list := field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Func || field.Type.Kind() == reflect.Pointer
			if v.Field(i).IsZero() && !list && !slices.Contains(optional, field.Name) {
				t.Errorf("%v lacks %s", d().names, field.Name)
			}
		}
	}
}

// The files of package schema create the table that Setup creates.
func TestFilesOfSchemaCreateTheTable(t *testing.T) {
	var files, want []string
	paths, err := filepath.Glob("../schema/*/00001_fencing_tokens.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	for _, d := range dialects.All() {
		want = append(want, "-- +goose Up\n"+d().Capabilities().CreateLedger+";\n")
	}
	slices.Sort(files)
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the files have\n%s\nSetup sends\n%s", strings.Join(files, "\n"), strings.Join(want, "\n"))
	}
}
