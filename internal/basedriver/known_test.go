package basedriver

import "testing"

// Each known driver names the kind of its server.
func TestDriversAreComplete(t *testing.T) {
	for path, d := range drivers {
		if d.Server == 0 {
			t.Errorf("%s has no server", path)
		}
	}
}
