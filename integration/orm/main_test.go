package orm_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
)

// The tests of MySQL are those of EachProgram: an ORM writes what its database reads.
func TestMain(m *testing.M) {
	harness.Without("mysql")
	harness.Main(m)
}
