package render

import (
	"testing"
	"unsafe"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// The counted bytes of a plan are at least the plan's real size, and at most twice this size.
func TestCountedBytes(t *testing.T) {
	for name, part := range map[string]struct {
		size    uintptr
		counted int
	}{
		"plan":     {unsafe.Sizeof(Plan{}), planBytes},
		"planned":  {unsafe.Sizeof(Planned{}), plannedBytes},
		"arg":      {unsafe.Sizeof(Arg{}), argBytes},
		"target":   {unsafe.Sizeof(Written{}), targetBytes},
		"keyValue": {unsafe.Sizeof(guard.KeyValue{}), keyValueBytes},
		"bare":     {unsafe.Sizeof(Bare{}), bareBytes},
		"edit":     {unsafe.Sizeof(Fragment{}), fragmentBytes},
		"table":    {unsafe.Sizeof(Registered{}), tableBytes},
		"number":   {unsafe.Sizeof(0), numberBytes},
		"given":    {unsafe.Sizeof(ColumnValue{}), valueBytes},
	} {
		if size := int(part.size); part.counted < size || part.counted > 2*size && unsafe.Sizeof(0) == 8 {
			t.Errorf("a %s takes %d bytes and is counted as %d", name, size, part.counted)
		}
	}
}
