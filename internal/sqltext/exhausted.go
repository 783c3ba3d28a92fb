package sqltext

import "fmt"

// Exhausted says why no token above value is issued for name: none is above limit, and a value
// beyond it is a name's that was retired.
func Exhausted(name string, value, limit int64) string {
	if value > limit {
		return fmt.Sprintf("%q was retired; take another name", name)
	}
	return fmt.Sprintf("%q stands at %d, the highest is %d; replace the name: tokens.Store.Rotate, "+
		"sqlfence tokens rotate", name, value, limit)
}
