// Package removal removes the objects that the examples have created.
package removal

import (
	"context"
	"time"
)

// Patience is how long the removal of an example's schema or database may take: long, because the server may be busy,
// but limited, because it may be gone.
const Patience = 5 * time.Minute

// Context returns a context to remove things in. They go, whether the example was interrupted or not.
func Context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}
