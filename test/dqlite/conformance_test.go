package dqlite_test

import (
	"database/sql/driver"
	"testing"

	"github.com/sqlfence/sqlfence/conformance"
)

func TestConformance(t *testing.T) {
	c := nodes(t)
	conformance.Run(t, conformance.Harness{Connector: func(t testing.TB) driver.Connector { return c.connector(t) }})
}
