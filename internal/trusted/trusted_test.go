package trusted

import (
	"context"
	"testing"
)

// A context is for one statement, with at most a comment after the statement.
func TestIsTrueForOneStatementOnly(t *testing.T) {
	const query = "DELETE FROM rowlocks"
	ctx := Context(context.Background(), query)
	for sent, want := range map[string]bool{
		query:                                   true,
		query + " /*trace='1'*/":                true,
		query + "\n/**/ ":                       true,
		"":                                      false,
		query + " ":                             false,
		query + "x":                             false,
		query + " WHERE true":                   false,
		query + "; DELETE FROM books":           false,
		query + " /**/; DELETE FROM books /**/": false,
		query + " -- ":                          false,
		query + " /*":                           false,
		query + " /*/":                          false,
		"DELETE FROM books":                     false,
		"/*trace='1'*/ DELETE FROM books":       false,
		"INSERT INTO log VALUES ('" + query + "')": false,
	} {
		if got := Is(ctx, sent); got != want {
			t.Errorf("Is(%q) = %v", sent, got)
		}
	}
	if Is(context.Background(), query) || Is(context.Background(), "") {
		t.Error("a context that nobody marked is marked")
	}
}
