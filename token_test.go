package sqlfence_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence"
)

func TestTokenText(t *testing.T) {
	tests := []struct {
		token sqlfence.Token
		text  string
	}{
		{sqlfence.Token{Name: "books", Value: 1}, "books:000000000000001"},
		{sqlfence.Token{Name: "books/42", Value: 42}, "books/42:000000000000042"},
		{sqlfence.Token{Name: "a:b:c", Value: 7}, "a:b:c:000000000000007"},
		{sqlfence.Token{Name: ":", Value: 7}, "::000000000000007"},
		{sqlfence.Token{Name: "x:000000000000009", Value: 7}, "x:000000000000009:000000000000007"},
		{sqlfence.Token{Name: "Bücher 本 '\"\\$1?", Value: 7}, "Bücher 本 '\"\\$1?:000000000000007"},
		{sqlfence.Token{Name: " \t\n", Value: 7}, " \t\n:000000000000007"},
		{sqlfence.Token{Name: strings.Repeat("n", 512), Value: sqlfence.MaxToken}, strings.Repeat("n", 512) + ":900000000000000"},
	}
	for _, tt := range tests {
		if got := tt.token.String(); got != tt.text {
			t.Errorf("String() = %q, want %q", got, tt.text)
		}
		if got, err := tt.token.MarshalText(); err != nil || string(got) != tt.text {
			t.Errorf("MarshalText() = %q, %v; want %q", got, err, tt.text)
		}
		if got, err := sqlfence.ParseToken(tt.text); err != nil || got != tt.token {
			t.Errorf("ParseToken(%q) = %v, %v; want %v", tt.text, got, err, tt.token)
		}
		var got sqlfence.Token
		if err := got.UnmarshalText([]byte(tt.text)); err != nil || got != tt.token {
			t.Errorf("UnmarshalText(%q) gives %v, %v; want %v", tt.text, got, err, tt.token)
		}
	}
}

func TestParseTokenErrors(t *testing.T) {
	const fence = ":000000000000001"
	tests := []struct {
		name, text string
		want       error // the sentinel, if the error has one
	}{
		{"empty", "", sqlfence.ErrInvalid},
		{"no colon", "books", sqlfence.ErrInvalid},
		{"no digits", "books:", sqlfence.ErrInvalid},
		{"short", "books:1", sqlfence.ErrInvalid},
		{"14 digits", "books:00000000000001", sqlfence.ErrInvalid},
		{"16 digits", "books:0000000000000001", sqlfence.ErrInvalid},
		{"letter", "books:00000000000000x", sqlfence.ErrInvalid},
		{"minus", "books:-00000000000001", sqlfence.ErrInvalid},
		{"plus", "books:+00000000000001", sqlfence.ErrInvalid},
		{"underscore", "books:0000000000_0001", sqlfence.ErrInvalid},
		{"blank before", "books: 00000000000001", sqlfence.ErrInvalid},
		{"newline after", "books" + fence + "\n", sqlfence.ErrInvalid},
		{"blank after", "books" + fence + " ", sqlfence.ErrInvalid},
		{"other digits", "books:٠٠٠٠٠٠٠٠٠٠٠٠٠٠١", sqlfence.ErrInvalid},
		{"no name", fence, sqlfence.ErrInvalid},
		{"zero", "books:000000000000000", sqlfence.ErrInvalid},
		{"over the limit", "books:900000000000001", sqlfence.ErrTokenLimit},
		{"most digits", "books:999999999999999", sqlfence.ErrTokenLimit},
		{"NUL", "bo\x00oks" + fence, sqlfence.ErrInvalid},
		{"invalid UTF-8", "bo\xffoks" + fence, sqlfence.ErrInvalid},
		{"513 bytes of name", strings.Repeat("n", 513) + fence, sqlfence.ErrInvalid},
		{"a megabyte", strings.Repeat("n", 1<<20) + fence, sqlfence.ErrInvalid},
		{"a megabyte of digits", "books:" + strings.Repeat("1", 1<<20), sqlfence.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sqlfence.ParseToken(tt.text)
			if err == nil || got != (sqlfence.Token{}) {
				t.Fatalf("ParseToken = %v, %v; want the zero token and an error", got, err)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
			if len(err.Error()) > 1500 || strings.ContainsAny(err.Error(), "\x00\n") || !utf8.ValidString(err.Error()) {
				t.Errorf("the error isn't fit for a log line (%d bytes): %.200q", len(err.Error()), err)
			}
			token := sqlfence.Token{Name: "kept", Value: 3}
			if err := token.UnmarshalText([]byte(tt.text)); err == nil || token != (sqlfence.Token{Name: "kept", Value: 3}) {
				t.Errorf("UnmarshalText: %v, token = %v; want an error and the token unchanged", err, token)
			}
		})
	}
}

func TestTokenMarshalRefusesInvalid(t *testing.T) {
	for _, tt := range []struct {
		token sqlfence.Token
		want  error
	}{
		{sqlfence.Token{}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: "books"}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: "books", Value: -1}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: "", Value: 1}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: strings.Repeat("n", 513), Value: 1}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: "a\x00", Value: 1}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: "a\xff", Value: 1}, sqlfence.ErrInvalid},
		{sqlfence.Token{Name: "books", Value: sqlfence.MaxToken + 1}, sqlfence.ErrTokenLimit},
	} {
		if text, err := tt.token.MarshalText(); text != nil || !errors.Is(err, tt.want) {
			t.Errorf("MarshalText of %.40v = %.40q, %v; want %v", tt.token, text, err, tt.want)
		}
		if _, err := json.Marshal(tt.token); !errors.Is(err, tt.want) {
			t.Errorf("json.Marshal of %.40v: %v; want %v", tt.token, err, tt.want)
		}
	}
}

func TestTokenInJSON(t *testing.T) {
	type message struct {
		Token   sqlfence.Token
		Pointer *sqlfence.Token           `json:",omitempty"`
		Prices  map[sqlfence.Token]int    `json:",omitempty"`
		Several []sqlfence.Token          `json:",omitempty"`
		ByName  map[string]sqlfence.Token `json:",omitempty"`
	}
	one := sqlfence.Token{Name: `bo"oks`, Value: 42}
	sent := message{
		Token: one, Pointer: &one,
		Prices:  map[sqlfence.Token]int{one: 30},
		Several: []sqlfence.Token{one, {Name: "shop", Value: sqlfence.MaxToken}},
		ByName:  map[string]sqlfence.Token{"x": one},
	}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Token":"bo\"oks:000000000000042","Pointer":"bo\"oks:000000000000042",` +
		`"Prices":{"bo\"oks:000000000000042":30},"Several":["bo\"oks:000000000000042","shop:900000000000000"],` +
		`"ByName":{"x":"bo\"oks:000000000000042"}}`
	if string(text) != want {
		t.Errorf("JSON = %s\nwant   %s", text, want)
	}
	var got message
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Token != one || *got.Pointer != one || got.Prices[one] != 30 || !slices.Equal(got.Several, sent.Several) || got.ByName["x"] != one {
		t.Errorf("read back: %+v", got)
	}
	// A number without a name isn't a token, and neither is an object.
	for _, bad := range []string{`{"Token":42}`, `{"Token":"42"}`, `{"Token":""}`, `{"Token":{"Name":"books","Value":1}}`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read as %v", bad, got.Token)
		}
	}
}

// The texts of two tokens of one name sort like the tokens, so that a store that knows only text can compare tokens.
func TestFenceOrder(t *testing.T) {
	values := []int64{1, 2, 9, 10, 11, 99, 100, 1 << 31, 1 << 32, sqlfence.WarnToken - 1, sqlfence.WarnToken, sqlfence.MaxToken - 1, sqlfence.MaxToken}
	var fences []string
	for _, v := range values {
		fence := sqlfence.Token{Name: "books", Value: v}.Fence()
		if len(fence) != 15 {
			t.Errorf("Fence of %d = %q, want 15 digits", v, fence)
		}
		fences = append(fences, fence)
	}
	if !slices.IsSorted(fences) || len(slices.Compact(slices.Clone(fences))) != len(fences) {
		t.Errorf("fences out of order: %q", fences)
	}
	if f := float64(sqlfence.MaxToken); int64(f) != sqlfence.MaxToken || int64(f-1) != sqlfence.MaxToken-1 {
		t.Error("a float64 doesn't hold MaxToken exactly")
	}
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"books:000000000000042", ":", "a:b:900000000000000", "books:900000000000001", "\xff:000000000000001", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := sqlfence.ParseToken(s)
		if err != nil {
			if token != (sqlfence.Token{}) {
				t.Errorf("ParseToken(%q) = %v with %v", s, token, err)
			}
			return
		}
		if token.Validate() != nil || token.String() != s {
			t.Errorf("ParseToken(%q) = %v, which reads %q; Validate: %v", s, token, token.String(), token.Validate())
		}
	})
}
