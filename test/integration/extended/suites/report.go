package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const intro = `Written by ` + "`make suites`" + `, which runs each driver's tests alone and then through sqlfence, with no registered table.
pgx's tests of its pool run through ` + "`fencepgx`" + `, with a registered table. Subtests count.

| driver | alone: passed | failed | skipped | with sqlfence: passed | left out | fail only there | time alone, with |
|---|---|---|---|---|---|---|---|
`

// report formats the outcomes as Markdown.
func report(done []outcome) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, o := range done {
		short := ""
		if o.short {
			short = ", -short"
		}
		fmt.Fprintf(&b, "| %s %s%s | %d | %d | %d | %d | %d | %d | %v, %v |\n", o.name, o.version, short,
			o.raw.count("pass"), o.raw.count("fail"), o.raw.count("skip"), o.wrapped.count("pass"),
			o.countLeft(), len(o.onlyWrapped()), o.rawDuration.Round(time.Second), o.wrapDuration.Round(time.Second))
	}
	b.WriteString("\nTests that fail alone need features that a throwaway server lacks, such as users of the\ndriver's own and TLS:\n\n")
	for _, o := range done {
		if names := o.failing(); names != nil {
			fmt.Fprintf(&b, "- %s: `%s`\n", o.name, strings.Join(names, "`, `"))
		}
	}
	b.WriteString("\nNot run, or left out with sqlfence:\n\n")
	for _, o := range done {
		for _, l := range o.skipped {
			fmt.Fprintf(&b, "- %s `%s`, not run: %s.\n", o.name, l.test, l.reason)
		}
		for _, l := range o.leftOut {
			fmt.Fprintf(&b, "- %s `%s`: %s.\n", o.name, l.test, l.reason)
		}
	}
	return b.String()
}

// failing returns the tests that fail alone, without their subtests.
func (o outcome) failing() (names []string) {
	for _, name := range o.raw.names() {
		if _, test, _ := strings.Cut(name, " "); o.raw[name] == "fail" && !strings.Contains(test, "/") {
			names = append(names, test)
		}
	}
	return names
}

// countLeft counts the tests that pass alone and are left out.
func (o outcome) countLeft() (n int) {
	for name, result := range o.raw {
		if result == "pass" && o.left(name) {
			n++
		}
	}
	return n
}

// writeSection writes a text into the page's section "suites".
func writeSection(page, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	const begin, end = "<!-- begin suites -->\n", "<!-- end suites -->"
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no section for the suites", page)
	}
	return os.WriteFile(page, []byte(head+begin+text+end+tail), 0o644)
}
