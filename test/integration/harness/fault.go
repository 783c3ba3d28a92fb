package harness

import "github.com/sqlfence/sqlfence/internal/fault"

// A panic of sqlfence's ends a test: as a refusal it would pass for a statement that can't be guarded.
func init() { fault.Crashes = true }
