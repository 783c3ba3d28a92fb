package postgres

import (
	"fmt"
	"io/fs"
	"strings"
)

// shipped is the one statement of a migration file.
func shipped(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		panic(fmt.Sprintf("sqlfence: %v", err)) // it is a part of the program
	}
	statement := strings.TrimPrefix(string(text), "-- +goose Up\n-- +goose StatementBegin\n")
	return strings.TrimSuffix(statement, ";\n-- +goose StatementEnd\n")
}

// bodyOf is the body of a function in a statement, behind the first place of its name.
func bodyOf(statement, name string) string {
	_, behind, _ := strings.Cut(statement, name)
	_, body, _ := strings.Cut(behind, "$function$")
	body, _, _ = strings.Cut(body, "$function$")
	return body
}
