package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &bar{w: &out, total: 4, what: "writes"}
	b.step()
	b.step()
	if want := eraseLine + "writes |" + strings.Repeat("#", 20) + strings.Repeat(" ", 20) + "| 2 of 4"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("drawn %q, want %q at the end", out.String(), want)
	}
	b.step()
	b.step()
	if !strings.HasSuffix(out.String(), "3 of 4"+eraseLine) {
		t.Errorf("drawn %q, want nothing left at the end", out.String())
	}
}

// An interrupted bar is erased once, and isn't drawn over what comes then.
func TestInterruptedBar(t *testing.T) {
	var out bytes.Buffer
	b := &bar{w: &out, total: 4, what: "writes"}
	b.step()
	b.close()
	drawn := out.String()
	if !strings.HasSuffix(drawn, "1 of 4"+eraseLine) {
		t.Errorf("drawn %q, want nothing left at the end", drawn)
	}
	for range 4 {
		b.step()
	}
	b.close()
	if out.String() != drawn {
		t.Errorf("drawn %q after it was closed", strings.TrimPrefix(out.String(), drawn))
	}
}
