// Package removal removes the objects that the examples have created.
package removal

import (
	"context"
	"time"
)

// Patience is how long a removal may take: a server that is busy, with the machine, may take its time,
// and one that is gone isn't waited for for ever.
const Patience = 5 * time.Minute

// Context returns a context to remove things in. They go, whether the example was interrupted or not.
func Context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}
