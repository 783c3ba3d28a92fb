package sqlfence_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// On an error WrapDriver returns no driver: a typed nil in the interface would
// look like one to a caller that tests it, and panic when it is used.
func TestWrapDriverReturnsNoDriverOnError(t *testing.T) {
	if d, err := sqlfence.WrapDriver(&fakedb.Recorder{}); d != nil || err == nil {
		t.Errorf("WrapDriver = %T, %v; want nil and an error", d, err)
	}
}
