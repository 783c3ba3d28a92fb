package read

import (
	"fmt"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"strings"
)

// show writes the parsed text, with a line for each part and clause. A span is written as its text. A single token is
// written as ^ and its text.
func show(t *Text) string {
	var b strings.Builder
	for t.Next() {
		fmt.Fprintf(&b, "statement at %d", t.CTEAt)
		if t.HasWith {
			b.WriteString(", behind WITH")
		}
		if t.Explained {
			b.WriteString(", explained")
		}
		if t.NeedsSCSOn {
			b.WriteString(", needs scs on")
		}
		b.WriteByte('\n')
		for _, p := range t.Parts {
			showPart(&b, t, p)
		}
	}
	return b.String()
}

func showPart(b *strings.Builder, t *Text, p Part) {
	switch p.Kind {
	case WritePart:
		showWrite(b, t, &t.Writes[p.Write])
	case NamePart:
		fmt.Fprintf(b, "name %s ^%s\n", p.Name, t.TokenText(p.At))
	case IntoPart:
		fmt.Fprintf(b, "into %s: %s\n", p.Name, t.piece(p.Range))
	case HiddenPart:
		fmt.Fprintf(b, "hidden ^%s in: %s\n", t.TokenText(p.At), t.piece(p.Range))
	case UnreadablePart:
		fmt.Fprintf(b, "unreadable: %s\n", t.piece(p.Range))
	case TooDeepPart:
		fmt.Fprintf(b, "too deep at %d\n", t.Offset(p.At))
	case OtherPart:
		classes := [...]string{"unknown", "no rows", "reading", "definition", "joins", "do", "call", "unseen"}
		fmt.Fprintf(b, "%s\n", classes[p.Class])
	}
}

// piece returns the text of a span.
func (t *Text) piece(s lex.Range) string {
	if s.Empty() {
		return ""
	}
	return strings.Join(strings.Fields(t.Src[t.Offset(s.Lo):t.After(s.Hi)]), " ")
}

func (t *Text) pieces(spans []lex.Range) string {
	var parts []string
	for _, s := range spans {
		parts = append(parts, t.piece(s))
	}
	return strings.Join(parts, " | ")
}

var verbNames = [...]string{"nothing", "insert", "replace", "update", "delete", "merge"}

func showWrite(b *strings.Builder, t *Text, w *Write) {
	fmt.Fprintf(b, "%s ^%s", verbNames[w.Verb], t.TokenText(w.At))
	if w.Or != OrNone {
		fmt.Fprintf(b, " or %s(%d)", t.TokenText(w.OrAt), w.Or)
	}
	if w.Target.Schema != "" {
		fmt.Fprintf(b, " %s.", w.Target.Schema)
	}
	fmt.Fprintf(b, " %s", w.Target.Name)
	if w.Target.Alias != "" {
		fmt.Fprintf(b, " as %s", w.Target.Alias)
	}
	if w.Joined {
		b.WriteString(", joined")
	}
	if w.Depth > 0 {
		fmt.Fprintf(b, ", depth %d", w.Depth)
	}
	b.WriteByte('\n')
	showSet(b, t, "  ", &w.Set)
	if w.From > 0 {
		fmt.Fprintf(b, "  from ^%s\n", t.TokenText(w.From))
	}
	showCondition(b, t, "  where", w.Where)
	showInsertion(b, t, "  ", &w.Insertion)
	for i := range w.Conflicts {
		c := &w.Conflicts[i]
		fmt.Fprintf(b, "  conflict %v\n", map[bool]string{true: "update", false: "nothing"}[c.Update])
		showSet(b, t, "    ", &c.Set)
		showCondition(b, t, "    where", c.Where)
	}
	if len(w.Conflicts) > 0 {
		fmt.Fprintf(b, "  conflicts: %s\n", t.piece(lex.Range{Lo: w.ConflictsAt, Hi: w.ConflictsEnd}))
	}
	for i := range w.Arms {
		a := &w.Arms[i]
		kinds := [...]string{"matched", "not matched", "not matched by source"}
		fmt.Fprintf(b, "  arm %s %s\n", kinds[a.Kind], verbNames[a.Action])
		showCondition(b, t, "    and", a.When)
		showSet(b, t, "    ", &a.Set)
		showInsertion(b, t, "    ", &a.Insertion)
	}
	if w.Limit > 0 {
		fmt.Fprintf(b, "  limit ^%s\n", t.TokenText(w.Limit))
	}
	if w.Returning > 0 {
		fmt.Fprintf(b, "  returning ^%s\n", t.TokenText(w.Returning))
	}
	if w.Failure.Reason != advise.Readable {
		fmt.Fprintf(b, "  can't be read at %d ^%s: %s\n", t.Offset(w.Failure.At), t.TokenText(w.Failure.At), w.Failure.Reason)
	}
}

func showSet(b *strings.Builder, t *Text, indent string, set *Assignments) {
	for _, a := range set.Items {
		fmt.Fprintf(b, "%sset %s: %s\n", indent, t.piece(a.Names), t.piece(a.Range))
	}
	if !set.Empty() {
		fmt.Fprintf(b, "%slist: %s\n", indent, t.piece(set.Range))
	}
}

func showCondition(b *strings.Builder, t *Text, name string, c Condition) {
	if c.At > 0 {
		fmt.Fprintf(b, "%s ^%s: %s\n", name, t.TokenText(c.At), t.piece(c.Range))
	}
}

func showInsertion(b *strings.Builder, t *Text, indent string, ins *Insertion) {
	if len(ins.Columns) > 0 {
		fmt.Fprintf(b, "%scolumns %s; in brackets: %s\n", indent, t.pieces(ins.Columns), t.piece(ins.List))
	}
	if ins.Overriding > 0 {
		fmt.Fprintf(b, "%soverriding ^%s\n", indent, t.TokenText(ins.Overriding))
	}
	if ins.SourceAt > 0 {
		sources := [...]string{"no source", "defaults", "values", "query", "assigned"}
		fmt.Fprintf(b, "%s%s ^%s: %s\n", indent, sources[ins.Source], t.TokenText(ins.SourceAt), t.piece(ins.Rows))
	}
	if ins.RowAlias != "" {
		fmt.Fprintf(b, "%salias of the rows %s (%s)\n", indent, ins.RowAlias, t.piece(ins.RowColumns))
	}
	for _, a := range ins.Arms {
		switch {
		case a.Select && a.Empty:
			fmt.Fprintf(b, "%s  select nothing ^%s\n", indent, t.TokenText(a.After))
		case a.Select:
			fmt.Fprintf(b, "%s  select %s ^%s\n", indent, t.piece(a.Columns), t.TokenText(a.After))
		default:
			fmt.Fprintf(b, "%s  rows %s ^%s", indent, t.pieces(a.Rows), t.TokenText(a.After))
			if a.Last {
				b.WriteString(", the last")
			}
			b.WriteByte('\n')
		}
	}
}
