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

// bodyOf is the body of a function in a statement, behind a text that stands in front of it.
func bodyOf(statement, front string) string {
	_, behind, _ := strings.Cut(statement, front)
	_, body, _ := strings.Cut(behind, "$function$")
	body, _, found := strings.Cut(body, "$function$")
	if !found {
		panic("sqlfence: no body behind " + front) // it is a part of the program
	}
	return body
}
