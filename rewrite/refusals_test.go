package rewrite

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// refusalsFile has each sentence of a sample's refusal, in order, for a reader.
const refusalsFile = "testdata/refusals.txt"

// The page has each reason for a refusal once, with the shortest refused sample and the dialects that refuse it.
func TestRefusalsPage(t *testing.T) {
	type refused struct {
		sql string
		by  map[databases.Dialect]bool
	}
	all := make(map[string]*refused)
	whole := eachSample(t, func(t *testing.T, d databases.Dialect, s *sample, rules string) {
		p := s.plan(t, d, rules)
		if p.Verdict != guard.Refuse {
			return
		}
		r := all[p.Refusal.Reason]
		if r == nil {
			r = &refused{s.sql, make(map[databases.Dialect]bool)}
			all[p.Refusal.Reason] = r
		}
		r.by[d] = true
		if cmp.Or(cmp.Compare(len(s.sql), len(r.sql)), strings.Compare(s.sql, r.sql)) < 0 {
			r.sql = s.sql
		}
	})
	if !whole {
		t.Skip("some samples haven't run")
	}
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(all)) {
		r := all[reason]
		var by []string
		for _, d := range slices.Sorted(maps.Keys(r.by)) {
			by = append(by, d.String())
		}
		sql := strings.Join(strings.Fields(r.sql), " ")
		if visible(sql) != sql || len(sql) > 150 {
			sql = fmt.Sprintf("%.150q", sql)
		}
		fmt.Fprintf(&b, "%s\n    %s: %s\n", reason, strings.Join(by, ", "), sql)
	}
	if *update {
		if err := os.WriteFile(refusalsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(refusalsFile); err != nil || string(want) != b.String() {
		t.Errorf("%s differs from what is refused (%v); run go test ./rewrite -run TestRefusalsPage -update, and read it", refusalsFile, err)
	}
}

// unsampled are the reasons for which no sample is refused. Statements for them are in other tests.
var unsampled = strings.Fields(`TooDeep ExpectedValues ExpectedWhen ExpectedMatched ExpectedThen ExpectedArmAction BadWith OtherLanguage
	CodeMayWrite ColumnNamedWith Failed FenceIsUnique NameFoldsByLocale AmbiguousTable OwnObject OwnSchema OwnSetting ReplaceOfMany
	ReplaceUnknown RowidMayBeKey SettingsMayChange MultiWithSerial TooLong UniqueValueUnknown ViewInPlace WordFoldsByLocale Readable`)

// Every sentence of package advise is on the page, or in unsampled.
func TestEverySentenceIsOnThePage(t *testing.T) {
	page, err := os.ReadFile(refusalsFile)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for name, src := range map[string]any{"internal/advise/reading.go": nil, "internal/advise/rules.go": nil, "code.go": "package advise\ntype Code string"} {
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	advise, err := new(types.Config).Check("advise", fset, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	named, sentences := regexp.MustCompile(`%[sdv]`), 0
	for _, name := range advise.Scope().Names() {
		code, ok := advise.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		sentences++
		pattern := named.ReplaceAllString(regexp.QuoteMeta(constant.StringVal(code.Val())), ".*")
		if shown := regexp.MustCompile("(?m)^" + pattern + "$").Match(page); shown == slices.Contains(unsampled, name) && name != "Readable" {
			t.Errorf("%s: it is on the page: %v", name, shown)
		}
	}
	if sentences < 100 {
		t.Errorf("%d sentences", sentences)
	}
}
