package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A summary is what came out of all modules.
type summary struct {
	modules    int
	missing    []string       // modules that couldn't be had
	accepted   map[string]int // valid writes, by database
	left       map[string]int // texts that look like writes and aren't counted, by the reason
	gaps       map[string]int // those with a gap that can be anything, by the word before it
	seen       map[string]bool
	statements []statement
}

func newSummary() *summary {
	return &summary{accepted: map[string]int{}, left: map[string]int{}, gaps: map[string]int{}, seen: map[string]bool{}}
}

// write writes the three files.
func (s *summary) write(out string) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var lines strings.Builder
	e := json.NewEncoder(&lines)
	e.SetEscapeHTML(false)
	for _, st := range s.statements {
		if err := e.Encode(st); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"counts.md":        s.report(false),
		"report.md":        s.report(true),
		"statements.jsonl": lines.String(),
	} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// report is a page of counts, with or without an example of each class.
func (s *summary) report(examples bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Writes of real programs\n\n%d modules; %d distinct statements.\n", s.modules, len(s.statements))
	fmt.Fprintf(&b, "\n| database | valid writes found | distinct |\n|---|--:|--:|\n")
	for _, db := range databases {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", db.name, s.accepted[db.name], s.count(func(st statement) bool { return st.Database == db.name }))
	}
	fmt.Fprint(&b, "\nLeft out, though they look like writes:\n\n")
	counts(&b, s.left)
	for _, db := range databases {
		s.verdicts(&b, db.name)
	}
	for _, db := range databases {
		before := ""
		for _, how := range rulings {
			section := s.classes(db.name, how, examples)
			if section == before {
				section = "The same as before.\n"
			} else {
				before = section
			}
			fmt.Fprintf(&b, "\n### %s, %s\n\n%s", db.name, how.name, section)
		}
	}
	if examples {
		fmt.Fprint(&b, "\n## The word before a gap\n\n")
		counts(&b, s.gaps)
		fmt.Fprintf(&b, "\nNot to be had: %s\n", strings.Join(s.missing, ", "))
	}
	return b.String()
}

func (s *summary) count(holds func(statement) bool) (n int) {
	for _, st := range s.statements {
		n += b2i(holds(st))
	}
	return n
}

// verdicts writes a table of one database: a line a ruling, and for Key one for each way
// in which the key is known.
func (s *summary) verdicts(b *strings.Builder, database string) {
	fmt.Fprintf(b, "\n## %s\n\n| rule | statements | guarded | refused | passed | wrong | refused, %% |\n|---|--:|--:|--:|--:|--:|--:|\n", database)
	for _, how := range rulings {
		s.line(b, how.name, database, how, "")
		known := map[string]int{}
		for _, st := range s.statements {
			if _, asked := st.Verdicts[how.name]; asked && st.Database == database && how.keyed {
				known[st.Known]++
			}
		}
		for _, k := range slices.Sorted(maps.Keys(known)) {
			s.line(b, "– "+k, database, how, k)
		}
	}
	fmt.Fprint(b, "\nBy kind, refused under RowFence and under RowFence with Key:\n\n| kind | statements | RowFence | with Key |\n|---|--:|--:|--:|\n")
	kinds := map[string]int{}
	for _, st := range s.statements {
		if st.Database == database {
			kinds[st.Verb]++
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(kinds)) {
		refused := func(rule string) int {
			return s.count(func(st statement) bool {
				return st.Database == database && st.Verb == verb && st.Verdicts[rule].What == "refused"
			})
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d |\n", verb, kinds[verb], refused("RowFence"), refused("RowFence, Key"))
	}
}

func (s *summary) line(b *strings.Builder, name, database string, how ruling, known string) {
	what, all := map[string]int{}, 0
	for _, st := range s.statements {
		v, asked := st.Verdicts[how.name]
		if asked && st.Database == database && (known == "" || st.Known == known) {
			what[v.What]++
			all++
		}
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %.2f |\n", name, all, what["guarded"], what["refused"], what["passed"], what["wrong"],
		100*float64(what["refused"])/float64(max(all, 1)))
}

// classes says why statements were refused, the most frequent class first.
func (s *summary) classes(database string, how ruling, examples bool) string {
	found, shortest := map[string]int{}, map[string]statement{}
	for _, st := range s.statements {
		if v := st.Verdicts[how.name]; st.Database == database && v.Class != "" {
			class := v.What + ": " + v.Class
			found[class]++
			if old, has := shortest[class]; !has || len(st.SQL) < len(old.SQL) {
				shortest[class] = st
			}
		}
	}
	var b strings.Builder
	counts(&b, found)
	for _, class := range byCount(found) {
		if st := shortest[class]; examples {
			fmt.Fprintf(&b, "\n%s (%s, %s):\n```\n%s\n```\n", class, st.Module, st.File, st.SQL)
		}
	}
	return b.String()
}

func byCount(n map[string]int) []string {
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(n[b]-n[a], strings.Compare(a, b)) })
}

// counts writes a table, the highest count first.
func counts(b *strings.Builder, n map[string]int) {
	fmt.Fprint(b, "| | |\n|---|--:|\n")
	for _, name := range byCount(n) {
		fmt.Fprintf(b, "| %s | %d |\n", strings.ReplaceAll(name, "|", "\\|"), n[name])
	}
}
