package basedriver

import "testing"

// Each known driver is for a server.
func TestDriversAreComplete(t *testing.T) {
	for path, d := range drivers {
		if d.Server == 0 {
			t.Errorf("%s has no server", path)
		}
	}
}
