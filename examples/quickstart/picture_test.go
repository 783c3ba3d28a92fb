package quickstart

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture of the README")

const pictureFile = "../../docs/start/paused-holder.svg"

// TestPicture draws the picture of the README, and compares it with the file.
func TestPicture(t *testing.T) {
	if *update {
		check(t, os.WriteFile(pictureFile, []byte(picture()), 0o644))
	}
	file, err := os.ReadFile(pictureFile)
	check(t, err)
	if string(file) != picture() {
		t.Errorf("%s isn't what this test draws; go test -run TestPicture -update writes it anew", pictureFile)
	}
}

// The lanes of the picture, by their middle.
const holderA, database, holderB = 40, 125, 210

// picture returns the SVG of a holder that is paused past the end of its lease, with time from left to right.
func picture() string {
	var b strings.Builder
	draw := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text := func(x, y int, class, words string) {
		draw(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, words)
	}
	bar := func(x, y, width int, class, words string) {
		draw(`<rect x="%d" y="%d" width="%d" height="28" rx="4" class="%s"/>`, x, y-14, width, class)
		text(x+width/2, y+5, "middle", words)
	}
	arrow := func(x, from, to int, class string) {
		head := 6
		if to < from {
			head = -6
		}
		draw(`<path d="M%d %dV%dm-5 %dl5 %dl5 %d" class="%s"/>`, x, from, to, -head, head, -head, class)
	}
	draw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 250" role="img" aria-labelledby="title">`)
	draw(`<title id="title">Holder A is paused past the end of its lease. Holder B takes over with token 2 and writes. A's write with token 1 is refused by the database.</title>`)
	draw(`<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.middle { text-anchor: middle }
rect { stroke: #59636e; fill: #ddf4ff }
.paused { fill: none; stroke-dasharray: 4 4 }
.stored { fill: #fff8c5 }
path { fill: none; stroke: #59636e; stroke-width: 2 }
.good { stroke: #1a7f37 } text.good { fill: #1a7f37; stroke: none }
.bad { stroke: #cf222e } text.bad { fill: #cf222e; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } rect { stroke: #9198a1; fill: #0c2d6b } .paused { fill: none } .stored { fill: #4b2900 } path { stroke: #9198a1 }
.good { stroke: #3fb950 } text.good { fill: #3fb950 } .bad { stroke: #f85149 } text.bad { fill: #f85149 }
}
</style>`)
	text(4, holderA+5, "", "holder A")
	text(4, database+5, "", "database")
	text(4, holderB+5, "", "holder B")
	bar(90, holderA, 150, "held", "lease, token 1")
	bar(240, holderA, 300, "paused", "paused; the lease ends")
	bar(540, holderA, 110, "held", "wakes up")
	bar(90, database, 240, "stored", "newest token: 1")
	bar(330, database, 420, "stored", "newest token: 2")
	bar(330, holderB, 320, "held", "lease, token 2")
	arrow(165, holderA+14, database-16, "good")
	text(175, holderA+44, "good", "write with 1")
	arrow(430, holderB-14, database+16, "good")
	text(440, holderB-38, "good", "write with 2")
	arrow(590, holderA+14, database-16, "bad")
	text(600, holderA+44, "bad", "write with 1: refused")
	draw(`</svg>`)
	return b.String()
}
