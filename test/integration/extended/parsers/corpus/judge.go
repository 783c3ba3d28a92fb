package main

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A ruling is a way of registering tables.
type ruling struct {
	name  string
	keyed bool
	rules rewrite.Table // without name and key
}

const fenceColumn = "fence_token"

var rulings = []ruling{
	{"RowFence", false, rewrite.Table{FenceColumn: fenceColumn}},
	{"Ledger", false, rewrite.Table{Ledger: true}},
	{"RowFence, Key", true, rewrite.Table{FenceColumn: fenceColumn}},
	{"Ledger, Key", true, rewrite.Table{Ledger: true}},
	{"RowFence, Key, UnfencedInserts", true, rewrite.Table{FenceColumn: fenceColumn, UnfencedInserts: true}},
}

// A verdict is what becomes of a statement under a ruling.
type verdict struct {
	What  string `json:"what"`            // guarded, refused, passed; wrong for a fault of ours
	Class string `json:"class,omitempty"` // of a refusal or a fault
	Why   string `json:"why,omitempty"`
}

// judge registers all tables that a statement writes to and plans it. Without a column for
// Key it returns false.
func judge(o oracle, sql string, r reading, known tables, how ruling) (verdict, bool) {
	var registered []rewrite.Table
	for _, w := range r.writes {
		t := how.rules
		_, name, err := lang.ParseName(o.dialect(), `"`+strings.ReplaceAll(w.table, `"`, `""`)+`"`)
		if err != nil {
			return verdict{"wrong", "a name that can't be registered", err.Error()}, true
		}
		t.Name = name
		if how.keyed {
			if t.Key, _ = known.keyOf(w.table); t.Key == "" {
				return verdict{}, false
			}
		}
		if !slices.ContainsFunc(registered, func(other rewrite.Table) bool { return other.Name == name }) {
			registered = append(registered, t)
		}
	}
	rewriter, err := rewrite.New(o.dialect(), registered)
	if err != nil {
		return verdict{"wrong", "tables that can't be registered", err.Error()}, true
	}
	plan := rewriter.Plan(sql)
	switch plan.Verdict {
	case guard.Pass:
		return verdict{"passed", "", ""}, true
	case guard.Refuse:
		return verdict{"refused", classOf(plan.Refusal, r, known, how.keyed), plan.Refusal.Reason}, true
	}
	return guarded(o, r, plan), true
}

// guarded checks that a plan guards the writes that the parser finds, and that the guarded text is valid.
func guarded(o oracle, r reading, plan *rewrite.Plan) verdict {
	if len(plan.Targets) != len(r.writes) {
		return verdict{"wrong", "guarded with other targets than the parser finds", ""}
	}
	rendered, err := render(plan)
	if err != nil {
		return verdict{"refused", "while it is rendered: " + err.Error(), err.Error()}
	}
	if _, ok := o.read(rendered); !ok {
		return verdict{"wrong", "its guarded text isn't valid", rendered}
	}
	return verdict{"guarded", "", ""}
}

// render returns the guarded text for one token a table.
func render(p *rewrite.Plan) (string, error) {
	if p.Params {
		text, _, err := p.Default()
		return text, err
	}
	values := rewrite.Values{Literal: true, Tables: make([]rewrite.TableValues, len(p.Tables))}
	for i := range values.Tables {
		values.Tables[i].Tokens = []rewrite.Token{{Name: "n", Key: "k", Value: 7}}
	}
	text, _, err := p.Render(values)
	return text, err
}

// classOf puts a refusal into a class: its reason, and where rows' keys can't be seen what
// the key is.
func classOf(refusal guard.Refusal, r reading, known tables, keyed bool) string {
	reason, _, _ := strings.Cut(refusal.Reason, ";")
	for _, table := range r.writes {
		reason = strings.ReplaceAll(reason, `"`+table.table+`"`, "…")
	}
	reason, _, _ = strings.Cut(reason, ", which would move")
	if !keyed || !strings.Contains(reason, "before the statement runs") {
		return reason
	}
	for _, w := range r.writes {
		if w.verb != "INSERT" && w.verb != "REPLACE" {
			continue
		}
		if class := keyClass(w, known); class != "" {
			return "key: " + class
		}
	}
	return "key: not seen"
}

// keyClass says how the rows of an INSERT get their key, or "" if it can be seen.
func keyClass(w write, known tables) string {
	key, _ := known.keyOf(w.table)
	at := slices.Index(w.columns, key)
	switch {
	case w.rows == "DEFAULT VALUES":
		return "DEFAULT VALUES"
	case w.columns == nil:
		return "no list of columns, " + w.rows
	case at < 0:
		return "not named, " + w.rows + ": " + known.defaultOf(w.table, key)
	case slices.Contains(w.items, "*"), at >= len(w.items):
		return w.rows + " of *"
	case w.rows == "SELECT", w.items[at] != "argument" && w.items[at] != "constant":
		return w.rows + " of " + w.items[at]
	}
	return ""
}
