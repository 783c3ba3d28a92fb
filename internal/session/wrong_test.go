package session

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Only certain errors mean that the ledger's function is missing; the others leave the session as it is.
func TestLedgerFunctionIsNotLost(t *testing.T) {
	d := new(Database)
	if d.missesFunction(says("42883", "")) {
		t.Error("lost before it was found")
	}
	schema := "shop"
	d.last.Store(&schema)
	for _, err := range []error{
		nil, errors.New(sqltext.LedgerFunction), codedError("22P02"), codedError("40001"),
		says("3F000", `schema "other" does not exist`),
		says("42P01", `relation "fencing_tokens" does not exist`),
		says("42501", "permission denied for table fencing_tokens"),
		says("42501", "permission denied for schema other"),
		says("42501", "permission denied for table shop"),

		// Errors about values.
		quoted(`function "shop.` + sqltext.LedgerFunction + `(text)" does not exist`),
		quoted(`function "" shop.` + sqltext.LedgerFunction + `(" (text)" does not exist`),
		says("3F000", `schema "shops" does not exist`),
		says("42P01", `relation "shop.fencing_tokens2" does not exist`),
	} {
		if d.missesFunction(err) {
			t.Errorf("lost by %v", err)
		}
	}
	for _, err := range []error{
		codedError("42501"), codedError("42883"),
		says("3F000", `schema "shop" does not exist`),
		says("42501", "permission denied for schema shop"),
		says("42P01", `relation "shop.fencing_tokens" does not exist`),
	} {
		if !d.missesFunction(err) {
			t.Errorf("not lost by %v", err)
		}
	}
}

// quoted is an error about a function that a value names.
type quoted string

func (e quoted) Error() string  { return string(e) }
func (quoted) SQLState() string { return "42883" }

// says returns a server's error with this code and text.
func says(code, text string) error { return fmt.Errorf("%s: %w", text, coded(code)) }

type coded string

func (e coded) Error() string    { return "ERROR " + string(e) }
func (e coded) SQLState() string { return string(e) }

// A codedError is about the function.
type codedError string

func (e codedError) Error() string {
	return "function shop." + sqltext.LedgerFunction + "(text, bigint) does not exist: " + string(e)
}
func (e codedError) SQLState() string { return string(e) }
