package editlock

import "testing"

func TestIsNoHolder(t *testing.T) {
	for id, want := range map[string]bool{
		"": true, " ": true, "0": true, "-0": true, "+0": true, "00": true, " 0": true, "0 ": true, "0.0": true,
		"\t0\n": true, "0x0": true, "0b0": true, "0_0": true, "0e5": true, "-0x0p1": true, "1e-999": true,
		"1": false, "-1": false, "10": false, "01": false, "0.1": false, "0x1": false, "1e-300": false,
		"ada": false, "0a": false, "NULL": false, "nobody": false, "é": false,
		"-": false, ".": false, "+.": false, "0-0": false, "0.0.0": false, "0 0": false, "--0": false,
		"00000000-0000-0000-0000-000000000000": false,
	} {
		if got := IsNoHolder(id); got != want {
			t.Errorf("IsNoHolder(%q) = %v", id, got)
		}
	}
}
