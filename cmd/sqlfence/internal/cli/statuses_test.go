package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A missing object is reported in one line, with the remedy.
func TestMessagesOfMissingObjectsHaveOneLine(t *testing.T) {
	lacks := func(missing, sql string) error {
		return fmt.Errorf("lease: lookup: %w", &sqlfence.SetupError{Missing: missing, SQL: sql, Err: errors.New("denied")})
	}
	for _, test := range []struct {
		err    error
		want   string
		status int
	}{
		{lacks("table fencing_leases", "CREATE TABLE fencing_leases (\n\tkey text\n)"),
			"lease: lookup: the database has no table fencing_leases (denied); sqlfence init prints the SQL of sqlfence's tables, and creates them with --apply", statusNotSetUp},
		{lacks("privileges on table fencing_leases", "GRANT SELECT ON TABLE fencing_leases TO <role>"),
			"lease: lookup: missing privileges on table fencing_leases (denied); the owner may run: GRANT SELECT ON TABLE fencing_leases TO <role>", statusNotSetUp},
		{stateError("3D000"), "3D000; the data source name ends with the database's name, as in mysql://user@host/shop", statusFailed},
		{stateError("42501"), "42501", statusFailed},
	} {
		if got, status := message(test.err), (&app{}).status(test.err); got != test.want || status != test.status {
			t.Errorf("%q, status %d; want %q, %d", got, status, test.want, test.status)
		}
	}
}

type stateError string

func (e stateError) Error() string    { return string(e) }
func (e stateError) SQLState() string { return string(e) }
